//! From a JSON Schema to nodes.
//!
//! Keywords that no prefix can decide are passed over: what they forbid is for
//! full validation.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::leaf::{Leaves, count, invalid};
use super::literal;
use super::node::{ALWAYS, ArrayRules, NEVER, Node, NodeId, ObjectRules, types};
use super::refusal::SchemaError;

const NODES_MAX: usize = 20_000;
/// As deep as `serde_json` reads.
const SCHEMA_DEPTH_MAX: usize = 128;

/// All nodes of a schema, and those that list their values beside other demands.
pub(super) struct Compiled {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
    pub(super) listed: Vec<(NodeId, Vec<Value>)>,
}

pub(super) fn compile(schema: &Value) -> Result<Compiled, SchemaError> {
    if !shallow(schema, SCHEMA_DEPTH_MAX) {
        return Err(SchemaError::TooLarge { what: "levels", max: SCHEMA_DEPTH_MAX });
    }
    let mut compiler = Compiler {
        nodes: vec![Node::of(types::ANY), Node::of(0)],
        known: BTreeMap::new(),
        waiting: Vec::new(),
        listed: Vec::new(),
        leaves: Leaves::new(schema),
        root: schema,
    };
    let root = compiler.id(schema, schema)?;
    while let Some((id, map, base)) = compiler.waiting.pop() {
        let node = compiler.node(id, map, base)?;
        if let Some(place) = compiler.nodes.get_mut(id) {
            *place = node;
        }
    }
    Ok(Compiled { nodes: compiler.nodes, root, listed: compiler.listed })
}

fn shallow(value: &Value, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| shallow(item, left)),
        Value::Object(map) => map.values().all(|item| shallow(item, left)),
        _ => true,
    }
}

struct Compiler<'s> {
    nodes: Vec<Node>,
    /// By address: where a schema lies is which schema it is.
    known: BTreeMap<usize, NodeId>,
    /// Not recursion, for a chain of references may be long.
    waiting: Vec<(NodeId, &'s Map<String, Value>, &'s Value)>,
    listed: Vec<(NodeId, Vec<Value>)>,
    leaves: Leaves,
    root: &'s Value,
}

impl<'s> Compiler<'s> {
    /// The node of a schema, made later if it is new. `base` is what `#` means in it.
    fn id(&mut self, schema: &'s Value, base: &'s Value) -> Result<NodeId, SchemaError> {
        let map = match schema {
            Value::Bool(false) => return Ok(NEVER),
            Value::Object(map) if !map.is_empty() => map,
            _ => return Ok(ALWAYS),
        };
        let address = std::ptr::from_ref(schema).addr();
        if let Some(id) = self.known.get(&address) {
            return Ok(*id);
        }
        let id = add(&mut self.nodes, Node::of(types::ANY))?;
        self.known.insert(address, id);
        let base = if map.get("$id").is_some_and(Value::is_string) { schema } else { base };
        self.waiting.push((id, map, base));
        Ok(id)
    }

    fn ids(
        &mut self,
        map: &'s Map<String, Value>,
        key: &str,
        base: &'s Value,
    ) -> Result<Option<Vec<NodeId>>, SchemaError> {
        let Some(Value::Array(list)) = map.get(key) else { return Ok(None) };
        list.iter().map(|schema| self.id(schema, base)).collect::<Result<_, _>>().map(Some)
    }

    fn node(
        &mut self,
        id: NodeId,
        map: &'s Map<String, Value>,
        base: &'s Value,
    ) -> Result<Node, SchemaError> {
        let mut node = Node::of(types::ANY);
        if let Some(Value::String(reference)) = map.get("$ref") {
            if let Some((target, base)) = self.resolve(reference, base)? {
                node.all.push(self.id(target, base)?);
            }
            if self.leaves.references_stand_alone() {
                return Ok(node);
            }
        }
        node.types = Leaves::types(map);
        node.text = self.leaves.text(map)?;
        node.number = self.leaves.number(map)?;
        node.object = self.object(map, base)?;
        node.array = self.array(map, base)?;
        node.all.extend(self.ids(map, "allOf", base)?.unwrap_or_default());
        node.any.extend(self.ids(map, "anyOf", base)?);
        node.one.extend(self.ids(map, "oneOf", base)?);
        self.list(id, &mut node, map)?;
        Ok(node)
    }

    /// `enum` and `const`; beside other keywords they are narrowed by these later.
    fn list(
        &mut self,
        id: NodeId,
        node: &mut Node,
        map: &Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let mut values = None;
        if let Some(Value::Array(list)) = map.get("enum") {
            let listed = literal::node(list, &mut self.nodes, &self.leaves)?;
            node.all.push(add(&mut self.nodes, listed)?);
            values = Some(list.clone());
        }
        if let Some(only) = map.get("const") {
            let only = std::slice::from_ref(only);
            let listed = literal::node(only, &mut self.nodes, &self.leaves)?;
            node.all.push(add(&mut self.nodes, listed)?);
            values = Some(only.to_vec());
        }
        if let Some(values) = values {
            self.listed.push((id, values));
        }
        Ok(())
    }

    fn object(
        &mut self,
        map: &'s Map<String, Value>,
        base: &'s Value,
    ) -> Result<Option<Box<ObjectRules>>, SchemaError> {
        const KEYS: [&str; 7] = [
            "properties",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "required",
            "minProperties",
            "maxProperties",
        ];
        if !KEYS.iter().any(|key| map.contains_key(*key)) {
            return Ok(None);
        }
        let mut rules = ObjectRules {
            properties: Vec::new(),
            patterns: Vec::new(),
            additional: ALWAYS,
            names: Vec::new(),
            closed: None,
            demanded: Vec::new(),
            required: Vec::new(),
            min: map.get("minProperties").and_then(count).unwrap_or(0),
            max: map.get("maxProperties").and_then(count),
        };
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, schema) in properties {
                rules.properties.push((name.clone(), self.id(schema, base)?));
            }
            rules.properties.sort_by(|left, right| left.0.cmp(&right.0));
        }
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            for (pattern, schema) in patterns {
                rules.patterns.push((self.leaves.pattern(pattern)?, self.id(schema, base)?));
            }
        }
        if let Some(schema) = map.get("additionalProperties") {
            rules.additional = self.id(schema, base)?;
        }
        if let Some(schema) = map.get("propertyNames") {
            rules.names.push(self.id(schema, base)?);
        }
        if let Some(Value::Array(names)) = map.get("required") {
            rules.required = names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        Ok(Some(Box::new(rules)))
    }

    fn array(
        &mut self,
        map: &'s Map<String, Value>,
        base: &'s Value,
    ) -> Result<Option<Box<ArrayRules>>, SchemaError> {
        const KEYS: [&str; 4] = ["items", "prefixItems", "minItems", "maxItems"];
        if !KEYS.iter().any(|key| map.contains_key(*key)) {
            return Ok(None);
        }
        // Older drafts have lists in `items`, and the rest elsewhere.
        let (prefix, rest) = if map.get("items").is_some_and(Value::is_array) {
            ("items", "additionalItems")
        } else {
            ("prefixItems", "items")
        };
        Ok(Some(Box::new(ArrayRules {
            prefix: self.ids(map, prefix, base)?.unwrap_or_default(),
            items: map.get(rest).map_or(Ok(ALWAYS), |schema| self.id(schema, base))?,
            min: map.get("minItems").and_then(count).unwrap_or(0),
            max: map.get("maxItems").and_then(count),
        })))
    }

    /// What a reference within the schema leads to. One that leads elsewhere, or
    /// to a place by its name, is left to full validation.
    fn resolve(
        &self,
        reference: &str,
        base: &'s Value,
    ) -> Result<Option<(&'s Value, &'s Value)>, SchemaError> {
        let Some(pointer) = reference.strip_prefix('#') else { return Ok(None) };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Ok(None);
        }
        let missing = || invalid(reference, "there is no such place in the schema");
        let pointer = percent_decoded(pointer).ok_or_else(missing)?;
        let mut target = base;
        let mut base = if base.is_object() { base } else { self.root };
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            target = match target {
                Value::Object(map) => map.get(&token),
                Value::Array(list) => token.parse().ok().and_then(|at: usize| list.get(at)),
                _ => None,
            }
            .ok_or_else(missing)?;
            if target.get("$id").is_some_and(Value::is_string) {
                base = target;
            }
        }
        Ok(Some((target, base)))
    }
}

/// Adds a node, within bounds.
pub(super) fn add(nodes: &mut Vec<Node>, node: Node) -> Result<NodeId, SchemaError> {
    if nodes.len() >= NODES_MAX {
        return Err(SchemaError::TooLarge { what: "schemas", max: NODES_MAX });
    }
    nodes.push(node);
    Ok(nodes.len() - 1)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}
