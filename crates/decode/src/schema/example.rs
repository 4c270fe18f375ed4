//! Builds the smallest value that a schema seems to require.
//!
//! The value is a guess from the most common keywords. The caller validates it, so a
//! complicated schema has no example instead of a wrong one.

use serde_json::{Map, Value, json};

use crate::limits::EXAMPLE_BYTES_MAX;

/// How deep an example may nest, and how many values it may contain.
const EXAMPLE_DEPTH_MAX: usize = 16;
const EXAMPLE_VALUES_MAX: usize = 200;

/// Example texts for common formats.
const FORMAT_EXAMPLES: [(&str, &str); 10] = [
    ("date-time", "2026-01-31T12:00:00Z"),
    ("date", "2026-01-31"),
    ("time", "12:00:00Z"),
    ("duration", "PT1H"),
    ("email", "name@example.com"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
    ("uri", "https://example.com/"),
    ("uri-reference", "/path"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
];

pub(super) fn build_example(schema: &Value) -> Option<Value> {
    let value =
        ExampleBuilder { root: schema, values_left: EXAMPLE_VALUES_MAX }.build_value(schema, 0)?;
    (value.to_string().len() <= EXAMPLE_BYTES_MAX).then_some(value)
}

struct ExampleBuilder<'s> {
    root: &'s Value,
    values_left: usize,
}

impl ExampleBuilder<'_> {
    fn build_value(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.values_left = self.values_left.checked_sub(1)?;
        if depth > EXAMPLE_DEPTH_MAX {
            return None;
        }
        let Value::Object(map) = schema else {
            return schema.as_bool()?.then(|| json!({}));
        };
        if let Some(given) = listed_value(map) {
            return Some(given.clone());
        }
        let mut parts = Vec::new();
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(reference.strip_prefix('#')?)?;
            parts.push(self.build_value(target, depth + 1)?);
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            parts.push(self.build_value(part, depth + 1)?);
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(choices) = map.get(choice).and_then(Value::as_array) {
                parts.push(choices.iter().find_map(|choice| self.build_value(choice, depth + 1))?);
            }
        }
        let own = self.build_own_value(map, depth)?;
        Some(parts.into_iter().fold(own, merge_parts).unwrap_or_else(|| json!({})))
    }

    /// The value that the keywords of this schema itself require. The inner `None` means
    /// that they require no particular value; the outer `None`, that the build failed.
    #[allow(clippy::option_option, reason = "no value and no requirement are different results")]
    fn build_own_value(&mut self, map: &Map<String, Value>, depth: usize) -> Option<Option<Value>> {
        let kind = match map.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str),
            kind => kind.and_then(Value::as_str),
        };
        Some(Some(match kind {
            Some("object") => self.build_object(map, depth)?,
            None if map.contains_key("properties") || map.contains_key("required") => {
                self.build_object(map, depth)?
            }
            Some("array") => self.build_array(map, depth)?,
            Some("string") => example_text(map),
            Some("integer" | "number") => example_number(map),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            _ => return Some(None),
        }))
    }

    fn build_object(&mut self, map: &Map<String, Value>, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str()?;
            let schema = map.get("properties").and_then(|all| all.get(name));
            let schema =
                schema.or_else(|| map.get("additionalProperties")).unwrap_or(&Value::Bool(true));
            object.insert(name.to_owned(), self.build_value(schema, depth + 1)?);
        }
        Some(Value::Object(object))
    }

    fn build_array(&mut self, map: &Map<String, Value>, depth: usize) -> Option<Value> {
        let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let first = map.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = map.get("items").unwrap_or(&Value::Bool(true));
        let mut items = Vec::new();
        for index in 0..usize::try_from(least).ok()? {
            items.push(self.build_value(first.get(index).unwrap_or(rest), depth + 1)?);
        }
        Some(Value::Array(items))
    }
}

/// A value that the schema itself contains: `const`, `enum`, `examples` or `default`.
fn listed_value(map: &Map<String, Value>) -> Option<&Value> {
    let listed = |key: &str| map.get(key)?.as_array()?.first();
    map.get("const")
        .or_else(|| listed("enum"))
        .or_else(|| listed("examples"))
        .or(map.get("default"))
}

fn example_text(map: &Map<String, Value>) -> Value {
    let format = map.get("format").and_then(Value::as_str);
    if let Some((_, text)) = FORMAT_EXAMPLES.iter().find(|(name, _)| Some(*name) == format) {
        return json!(text);
    }
    let length =
        |key: &str| map.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let least = length("minLength").unwrap_or(0).min(EXAMPLE_BYTES_MAX);
    let most = length("maxLength").unwrap_or(usize::MAX);
    let word = "string";
    let text = word.repeat(least.div_ceil(word.len()).max(1));
    let text: String = text.chars().take(least.max(word.len()).min(most)).collect();
    Value::String(text)
}

fn example_number(map: &Map<String, Value>) -> Value {
    let above = map.get("exclusiveMinimum").and_then(Value::as_i64).map(|least| json!(least + 1));
    let least = map.get("minimum").filter(|least| least.as_i64().is_none_or(|least| least > 0));
    let most = map.get("maximum").filter(|most| most.as_i64().is_some_and(|most| most < 0));
    above.or_else(|| least.cloned()).or_else(|| most.cloned()).unwrap_or_else(|| json!(0))
}

fn merge_parts(one: Option<Value>, other: Value) -> Option<Value> {
    match (one, other) {
        (Some(Value::Object(mut one)), Value::Object(other)) => {
            one.extend(other);
            Some(Value::Object(one))
        }
        (None, other) => Some(other),
        (one, _) => one,
    }
}
