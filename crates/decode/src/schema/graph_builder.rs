//! Builds the graph of a schema: finds its subschemas and their references.
//!
//! If a name could refer to several schemas, the graph includes all of them. That can
//! only overestimate the cost. The validator resolves references itself.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaError;
use super::graph::{AppliedSchemas, SchemaGraph};

/// How many subschemas a schema may have.
const SUBSCHEMAS_MAX: usize = 2000;

/// The values to which a keyword applies its schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AppliesTo {
    SameValue,
    NamedMember,
    AnyMember,
    AnyItem,
    Nothing,
}

/// Keywords whose value is a schema or a list of schemas.
const DIRECT_KEYWORDS: [(&str, AppliesTo); 15] = [
    ("allOf", AppliesTo::SameValue),
    ("anyOf", AppliesTo::SameValue),
    ("oneOf", AppliesTo::SameValue),
    ("not", AppliesTo::SameValue),
    ("if", AppliesTo::SameValue),
    ("then", AppliesTo::SameValue),
    ("else", AppliesTo::SameValue),
    ("additionalProperties", AppliesTo::AnyMember),
    ("unevaluatedProperties", AppliesTo::AnyMember),
    ("propertyNames", AppliesTo::AnyMember),
    ("items", AppliesTo::AnyItem),
    ("prefixItems", AppliesTo::AnyItem),
    ("additionalItems", AppliesTo::AnyItem),
    ("contains", AppliesTo::AnyItem),
    ("unevaluatedItems", AppliesTo::AnyItem),
];

/// Keywords whose value is a map from names to schemas.
const NAMED_KEYWORDS: [(&str, AppliesTo); 6] = [
    ("properties", AppliesTo::NamedMember),
    ("patternProperties", AppliesTo::AnyMember),
    ("dependentSchemas", AppliesTo::SameValue),
    ("dependencies", AppliesTo::SameValue),
    ("$defs", AppliesTo::Nothing),
    ("definitions", AppliesTo::Nothing),
];

/// The graph under construction.
pub(super) struct GraphBuilder<'s> {
    root: &'s Value,
    graph: SchemaGraph,
    by_pointer: BTreeMap<String, usize>,
    /// The pointers of resources, by the last part of their `$id`.
    resources: BTreeMap<String, Vec<String>>,
    /// Schemas by anchor name, in any resource.
    anchors: BTreeMap<String, Vec<usize>>,
    references: Vec<SchemaReference>,
}

/// A reference of a schema, and the resource that contains it.
struct SchemaReference {
    from: usize,
    resource: String,
    to: String,
}

impl<'s> GraphBuilder<'s> {
    pub(super) fn build_graph(root: &'s Value) -> Result<SchemaGraph, SchemaError> {
        let mut layout = Self {
            root,
            graph: SchemaGraph::default(),
            by_pointer: BTreeMap::new(),
            resources: BTreeMap::new(),
            anchors: BTreeMap::new(),
            references: Vec::new(),
        };
        layout.add_schema(root, "", "")?;
        let mut done = 0;
        // A reference may lead to a schema that no keyword reaches, with its own references.
        while let Some(reference) = layout.references.get(done) {
            let (from, to) = (reference.from, reference.to.clone());
            let resource = reference.resource.clone();
            let targets = layout.resolve_reference(&resource, &to)?;
            if let Some(applied) = layout.graph.schemas.get_mut(from) {
                applied.to_same_value.extend(targets);
            }
            done += 1;
        }
        Ok(layout.graph)
    }

    /// Adds a schema and its subschemas. The recursion is bounded by the depth of the source.
    fn add_schema(
        &mut self,
        schema: &Value,
        pointer: &str,
        resource: &str,
    ) -> Result<usize, SchemaError> {
        if let Some(known) = self.by_pointer.get(pointer) {
            return Ok(*known);
        }
        let number = self.graph.schemas.len();
        if number >= SUBSCHEMAS_MAX {
            return Err(SchemaError::TooLarge("it has too many subschemas"));
        }
        self.by_pointer.insert(pointer.to_owned(), number);
        self.graph
            .schemas
            .push(AppliedSchemas { pointer: pointer.to_owned(), ..AppliedSchemas::default() });
        let Value::Object(map) = schema else { return Ok(number) };
        let mut resource = resource.to_owned();
        if let Some(id) = map.get("$id").and_then(Value::as_str)
            && !id.starts_with('#')
        {
            pointer.clone_into(&mut resource);
            self.resources.entry(last_part(id)).or_default().push(pointer.to_owned());
        }
        for key in ["$anchor", "$dynamicAnchor", "$id"] {
            if let Some(name) = map.get(key).and_then(Value::as_str) {
                let name = name.trim_start_matches('#').to_owned();
                self.anchors.entry(name).or_default().push(number);
            }
        }
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(to) = map.get(key).and_then(Value::as_str) {
                let (resource, to) = (resource.clone(), to.to_owned());
                self.references.push(SchemaReference { from: number, resource, to });
            }
        }
        self.graph.has_choices |= map.contains_key("anyOf") || map.contains_key("oneOf");
        for (keyword, to) in DIRECT_KEYWORDS {
            match map.get(keyword) {
                Some(Value::Array(schemas)) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        let inner = format!("{pointer}/{keyword}/{index}");
                        self.link_schema(number, to, schema, &inner, &resource)?;
                    }
                }
                Some(schema) => {
                    self.link_schema(
                        number,
                        to,
                        schema,
                        &format!("{pointer}/{keyword}"),
                        &resource,
                    )?;
                }
                None => {}
            }
        }
        for (keyword, to) in NAMED_KEYWORDS {
            let Some(Value::Object(schemas)) = map.get(keyword) else { continue };
            for (name, schema) in schemas {
                let step = name.replace('~', "~0").replace('/', "~1");
                let inner = format!("{pointer}/{keyword}/{step}");
                let inner = self.link_schema(number, to, schema, &inner, &resource)?;
                if to == AppliesTo::NamedMember
                    && let Some(applied) = self.graph.schemas.get_mut(number)
                {
                    applied.to_named_member.insert(name.clone(), inner);
                }
            }
        }
        Ok(number)
    }

    fn link_schema(
        &mut self,
        from: usize,
        to: AppliesTo,
        schema: &Value,
        pointer: &str,
        resource: &str,
    ) -> Result<usize, SchemaError> {
        let inner = self.add_schema(schema, pointer, resource)?;
        if let Some(applied) = self.graph.schemas.get_mut(from) {
            match to {
                AppliesTo::SameValue => applied.to_same_value.push(inner),
                AppliesTo::AnyMember => applied.to_any_member.push(inner),
                AppliesTo::AnyItem => applied.to_any_item.push(inner),
                AppliesTo::NamedMember | AppliesTo::Nothing => {}
            }
        }
        Ok(inner)
    }

    /// The schemas to which a reference may lead.
    fn resolve_reference(&mut self, resource: &str, to: &str) -> Result<Vec<usize>, SchemaError> {
        let (uri, fragment) = to.split_once('#').unwrap_or((to, ""));
        let roots = match uri {
            "" => vec![resource.to_owned()],
            _ => self.resources.get(&last_part(uri)).cloned().unwrap_or_default(),
        };
        let fragment = decode_percent(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return Ok(self.anchors.get(&fragment).cloned().unwrap_or_default());
        }
        let mut targets = Vec::new();
        for resource in roots {
            let pointer = format!("{resource}{fragment}");
            let root = self.root;
            if let Some(schema) = root.pointer(&pointer) {
                targets.push(self.add_schema(schema, &pointer, &resource)?);
            }
        }
        Ok(targets)
    }
}

/// The last part of a URI, which identifies a resource here.
fn last_part(uri: &str) -> String {
    let uri = uri.split('#').next().unwrap_or_default();
    uri.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default().to_owned()
}

fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = (byte == b'%').then(|| ahead.next().zip(ahead.next())).flatten();
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match digits.and_then(|(high, low)| Some(digit(high)? * 16 + digit(low)?)) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = ahead;
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
