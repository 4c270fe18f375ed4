//! Compiles a JSON Schema into nodes.
//!
//! Keywords that cannot be decided on a prefix are ignored here. Full validation checks
//! them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::keyword_rules::{KeywordRules, invalid_schema, read_count};
use super::listed_values;
use super::refusal::StreamSchemaError;
use super::schema_node::{ALWAYS, ArrayRules, NEVER, NodeId, ObjectRules, SchemaNode, types};

const NODES_MAX: usize = 20_000;
/// The depth limit of `serde_json`.
const SCHEMA_DEPTH_MAX: usize = 128;

/// All nodes of a schema, and the nodes with listed values.
pub(super) struct CompiledNodes {
    pub(super) nodes: Vec<SchemaNode>,
    pub(super) root: NodeId,
    pub(super) listed_values: Vec<(NodeId, Vec<Value>)>,
}

pub(super) fn compile_nodes(schema: &Value) -> Result<CompiledNodes, StreamSchemaError> {
    if !is_shallow(schema, SCHEMA_DEPTH_MAX) {
        return Err(StreamSchemaError::TooLarge { what: "levels", max: SCHEMA_DEPTH_MAX });
    }
    let mut compiler = NodeCompiler {
        nodes: vec![SchemaNode::with_types(types::ANY), SchemaNode::with_types(0)],
        nodes_by_address: BTreeMap::new(),
        queue: Vec::new(),
        listed_values: Vec::new(),
        leaves: KeywordRules::new(schema),
        root: schema,
    };
    let root = compiler.node_id(schema, schema)?;
    while let Some((id, map, base)) = compiler.queue.pop() {
        let node = compiler.compile_node(id, map, base)?;
        if let Some(slot) = compiler.nodes.get_mut(id) {
            *slot = node;
        }
    }
    Ok(CompiledNodes { nodes: compiler.nodes, root, listed_values: compiler.listed_values })
}

fn is_shallow(value: &Value, left: usize) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, left)),
        Value::Object(map) => map.values().all(|item| is_shallow(item, left)),
        _ => true,
    }
}

struct NodeCompiler<'s> {
    nodes: Vec<SchemaNode>,
    /// Nodes by the memory address of their source.
    nodes_by_address: BTreeMap<usize, NodeId>,
    /// A queue instead of recursion, because a chain of references may be long.
    queue: Vec<(NodeId, &'s Map<String, Value>, &'s Value)>,
    listed_values: Vec<(NodeId, Vec<Value>)>,
    leaves: KeywordRules,
    root: &'s Value,
}

impl<'s> NodeCompiler<'s> {
    /// The id of a schema's node; a new node is filled in later. `base` is the schema to
    /// which `#` refers.
    fn node_id(&mut self, schema: &'s Value, base: &'s Value) -> Result<NodeId, StreamSchemaError> {
        let map = match schema {
            Value::Bool(false) => return Ok(NEVER),
            Value::Object(map) if !map.is_empty() => map,
            _ => return Ok(ALWAYS),
        };
        let address = std::ptr::from_ref(schema).addr();
        if let Some(id) = self.nodes_by_address.get(&address) {
            return Ok(*id);
        }
        let id = add_node(&mut self.nodes, SchemaNode::with_types(types::ANY))?;
        self.nodes_by_address.insert(address, id);
        let base = if map.get("$id").is_some_and(Value::is_string) { schema } else { base };
        self.queue.push((id, map, base));
        Ok(id)
    }

    fn node_ids(
        &mut self,
        map: &'s Map<String, Value>,
        key: &str,
        base: &'s Value,
    ) -> Result<Option<Vec<NodeId>>, StreamSchemaError> {
        let Some(Value::Array(list)) = map.get(key) else { return Ok(None) };
        list.iter().map(|schema| self.node_id(schema, base)).collect::<Result<_, _>>().map(Some)
    }

    fn compile_node(
        &mut self,
        id: NodeId,
        map: &'s Map<String, Value>,
        base: &'s Value,
    ) -> Result<SchemaNode, StreamSchemaError> {
        let mut node = SchemaNode::with_types(types::ANY);
        if let Some(Value::String(reference)) = map.get("$ref") {
            if let Some((target, base)) = self.resolve_reference(reference, base)? {
                node.all_of.push(self.node_id(target, base)?);
            }
            if self.leaves.ignores_siblings_of_references() {
                return Ok(node);
            }
        }
        node.types = KeywordRules::type_mask(map);
        node.text = self.leaves.text_rules(map)?;
        node.number = self.leaves.number_rules(map)?;
        node.object = self.compile_object(map, base)?;
        node.array = self.compile_array(map, base)?;
        node.all_of.extend(self.node_ids(map, "allOf", base)?.unwrap_or_default());
        node.any_of.extend(self.node_ids(map, "anyOf", base)?);
        node.one_of.extend(self.node_ids(map, "oneOf", base)?);
        self.compile_listed_values(id, &mut node, map)?;
        Ok(node)
    }

    /// Compiles `enum` and `const`. A later step removes the values that other keywords of
    /// the schema forbid.
    fn compile_listed_values(
        &mut self,
        id: NodeId,
        node: &mut SchemaNode,
        map: &Map<String, Value>,
    ) -> Result<(), StreamSchemaError> {
        let mut values = None;
        if let Some(Value::Array(list)) = map.get("enum") {
            let listed = listed_values::listed_values_node(list, &mut self.nodes, &self.leaves)?;
            node.all_of.push(add_node(&mut self.nodes, listed)?);
            values = Some(list.clone());
        }
        if let Some(only) = map.get("const") {
            let only = std::slice::from_ref(only);
            let listed = listed_values::listed_values_node(only, &mut self.nodes, &self.leaves)?;
            node.all_of.push(add_node(&mut self.nodes, listed)?);
            values = Some(only.to_vec());
        }
        if let Some(values) = values {
            self.listed_values.push((id, values));
        }
        Ok(())
    }

    fn compile_object(
        &mut self,
        map: &'s Map<String, Value>,
        base: &'s Value,
    ) -> Result<Option<Box<ObjectRules>>, StreamSchemaError> {
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
            key_schemas: Vec::new(),
            all_keys: None,
            required_values: Vec::new(),
            required: Vec::new(),
            min: map.get("minProperties").and_then(read_count).unwrap_or(0),
            max: map.get("maxProperties").and_then(read_count),
        };
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, schema) in properties {
                rules.properties.push((name.clone(), self.node_id(schema, base)?));
            }
            rules.properties.sort_by(|left, right| left.0.cmp(&right.0));
        }
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            for (pattern, schema) in patterns {
                rules
                    .patterns
                    .push((self.leaves.pattern_rule(pattern)?, self.node_id(schema, base)?));
            }
        }
        if let Some(schema) = map.get("additionalProperties") {
            rules.additional = self.node_id(schema, base)?;
        }
        if let Some(schema) = map.get("propertyNames") {
            rules.key_schemas.push(self.node_id(schema, base)?);
        }
        if let Some(Value::Array(names)) = map.get("required") {
            rules.required = names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        Ok(Some(Box::new(rules)))
    }

    fn compile_array(
        &mut self,
        map: &'s Map<String, Value>,
        base: &'s Value,
    ) -> Result<Option<Box<ArrayRules>>, StreamSchemaError> {
        const KEYS: [&str; 4] = ["items", "prefixItems", "minItems", "maxItems"];
        if !KEYS.iter().any(|key| map.contains_key(*key)) {
            return Ok(None);
        }
        // Older drafts have the list in `items` and the rest in `additionalItems`.
        let (prefix, rest) = if map.get("items").is_some_and(Value::is_array) {
            ("items", "additionalItems")
        } else {
            ("prefixItems", "items")
        };
        Ok(Some(Box::new(ArrayRules {
            prefix: self.node_ids(map, prefix, base)?.unwrap_or_default(),
            items: map.get(rest).map_or(Ok(ALWAYS), |schema| self.node_id(schema, base))?,
            min: map.get("minItems").and_then(read_count).unwrap_or(0),
            max: map.get("maxItems").and_then(read_count),
        })))
    }

    /// Resolves a JSON pointer reference within the schema. Other references (to other
    /// documents, to anchors) are left to full validation.
    fn resolve_reference(
        &self,
        reference: &str,
        base: &'s Value,
    ) -> Result<Option<(&'s Value, &'s Value)>, StreamSchemaError> {
        let Some(pointer) = reference.strip_prefix('#') else { return Ok(None) };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Ok(None);
        }
        let missing = || invalid_schema(reference, "the schema contains nothing at this pointer");
        let pointer = decode_percent(pointer).ok_or_else(missing)?;
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

/// Adds a node, up to the limit [`NODES_MAX`].
pub(super) fn add_node(
    nodes: &mut Vec<SchemaNode>,
    node: SchemaNode,
) -> Result<NodeId, StreamSchemaError> {
    if nodes.len() >= NODES_MAX {
        return Err(StreamSchemaError::TooLarge { what: "schemas", max: NODES_MAX });
    }
    nodes.push(node);
    Ok(nodes.len() - 1)
}

fn decode_percent(text: &str) -> Option<String> {
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
