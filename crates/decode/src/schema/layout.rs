//! Lays a schema out as a graph: finds the schemas in it and what they refer to.
//!
//! References are resolved generously: where a name could mean several schemas, it
//! means them all. That can only make a walk longer, and the validator resolves for
//! itself.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaError;
use super::graph::{Applied, Graph};

/// Most schemas within one.
const SCHEMAS_MAX: usize = 2000;

/// What a keyword applies its schemas to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Same,
    Member,
    Members,
    Items,
    Nothing,
}

/// Keywords that hold a schema, or a list of them.
const DIRECT: [(&str, To); 15] = [
    ("allOf", To::Same),
    ("anyOf", To::Same),
    ("oneOf", To::Same),
    ("not", To::Same),
    ("if", To::Same),
    ("then", To::Same),
    ("else", To::Same),
    ("additionalProperties", To::Members),
    ("unevaluatedProperties", To::Members),
    ("propertyNames", To::Members),
    ("items", To::Items),
    ("prefixItems", To::Items),
    ("additionalItems", To::Items),
    ("contains", To::Items),
    ("unevaluatedItems", To::Items),
];

/// Keywords that hold schemas by name.
const NAMED: [(&str, To); 6] = [
    ("properties", To::Member),
    ("patternProperties", To::Members),
    ("dependentSchemas", To::Same),
    ("dependencies", To::Same),
    ("$defs", To::Nothing),
    ("definitions", To::Nothing),
];

/// The graph while it is laid out.
pub(super) struct Layout<'s> {
    root: &'s Value,
    graph: Graph,
    by_pointer: BTreeMap<String, usize>,
    /// Where resources are, by the last part of their `$id`.
    resources: BTreeMap<String, Vec<String>>,
    /// Anchors by name, wherever they are.
    anchors: BTreeMap<String, Vec<usize>>,
    references: Vec<Reference>,
}

/// What a schema refers to, and in which resource it says so.
struct Reference {
    from: usize,
    resource: String,
    to: String,
}

impl<'s> Layout<'s> {
    pub(super) fn lay_out(root: &'s Value) -> Result<Graph, SchemaError> {
        let mut layout = Self {
            root,
            graph: Graph::default(),
            by_pointer: BTreeMap::new(),
            resources: BTreeMap::new(),
            anchors: BTreeMap::new(),
            references: Vec::new(),
        };
        layout.add(root, "", "")?;
        let mut done = 0;
        // A reference may lead to a place that no keyword does, with references of its own.
        while let Some(reference) = layout.references.get(done) {
            let (from, to) = (reference.from, reference.to.clone());
            let resource = reference.resource.clone();
            let targets = layout.targets(&resource, &to)?;
            if let Some(applied) = layout.graph.schemas.get_mut(from) {
                applied.same.extend(targets);
            }
            done += 1;
        }
        Ok(layout.graph)
    }

    /// Adds a schema and those in it. Its depth is that of the value, which is bounded.
    fn add(&mut self, schema: &Value, pointer: &str, resource: &str) -> Result<usize, SchemaError> {
        if let Some(known) = self.by_pointer.get(pointer) {
            return Ok(*known);
        }
        let number = self.graph.schemas.len();
        if number >= SCHEMAS_MAX {
            return Err(SchemaError::TooLarge("it has too many schemas in it"));
        }
        self.by_pointer.insert(pointer.to_owned(), number);
        self.graph.schemas.push(Applied { pointer: pointer.to_owned(), ..Applied::default() });
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
                self.references.push(Reference { from: number, resource, to });
            }
        }
        self.graph.has_choices |= map.contains_key("anyOf") || map.contains_key("oneOf");
        for (keyword, to) in DIRECT {
            match map.get(keyword) {
                Some(Value::Array(schemas)) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        let inner = format!("{pointer}/{keyword}/{index}");
                        self.link(number, to, schema, &inner, &resource)?;
                    }
                }
                Some(schema) => {
                    self.link(number, to, schema, &format!("{pointer}/{keyword}"), &resource)?;
                }
                None => {}
            }
        }
        for (keyword, to) in NAMED {
            let Some(Value::Object(schemas)) = map.get(keyword) else { continue };
            for (name, schema) in schemas {
                let step = name.replace('~', "~0").replace('/', "~1");
                let inner = format!("{pointer}/{keyword}/{step}");
                let inner = self.link(number, to, schema, &inner, &resource)?;
                if to == To::Member
                    && let Some(applied) = self.graph.schemas.get_mut(number)
                {
                    applied.member.insert(name.clone(), inner);
                }
            }
        }
        Ok(number)
    }

    fn link(
        &mut self,
        from: usize,
        to: To,
        schema: &Value,
        pointer: &str,
        resource: &str,
    ) -> Result<usize, SchemaError> {
        let inner = self.add(schema, pointer, resource)?;
        if let Some(applied) = self.graph.schemas.get_mut(from) {
            match to {
                To::Same => applied.same.push(inner),
                To::Members => applied.members.push(inner),
                To::Items => applied.items.push(inner),
                To::Member | To::Nothing => {}
            }
        }
        Ok(inner)
    }

    /// The schemas that a reference may mean.
    fn targets(&mut self, resource: &str, to: &str) -> Result<Vec<usize>, SchemaError> {
        let (uri, fragment) = to.split_once('#').unwrap_or((to, ""));
        let roots = match uri {
            "" => vec![resource.to_owned()],
            _ => self.resources.get(&last_part(uri)).cloned().unwrap_or_default(),
        };
        let fragment = percent_decoded(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return Ok(self.anchors.get(&fragment).cloned().unwrap_or_default());
        }
        let mut targets = Vec::new();
        for resource in roots {
            let pointer = format!("{resource}{fragment}");
            let root = self.root;
            if let Some(schema) = root.pointer(&pointer) {
                targets.push(self.add(schema, &pointer, &resource)?);
            }
        }
        Ok(targets)
    }
}

/// The last part of a path, by which a resource is known here.
fn last_part(uri: &str) -> String {
    let uri = uri.split('#').next().unwrap_or_default();
    uri.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default().to_owned()
}

fn percent_decoded(text: &str) -> String {
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
