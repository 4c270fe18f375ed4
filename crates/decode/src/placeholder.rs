//! Finds values that contain only placeholders, so the model filled in nothing.

use serde_json::Value;

use crate::schema::Schema;

const PLACEHOLDER_WORDS: [&str; 22] = [
    "string",
    "text",
    "value",
    "name",
    "example",
    "placeholder",
    "todo",
    "tbd",
    "tba",
    "n/a",
    "na",
    "none",
    "null",
    "undefined",
    "unknown",
    "xxx",
    "foo",
    "bar",
    "lorem ipsum",
    "...",
    "…",
    "???",
];

/// Whether a value contains at least one placeholder and no other content. Texts that
/// the schema lists as allowed values do not count.
pub(crate) fn is_placeholder(value: &Value, schema: Option<&Schema>) -> bool {
    let mut any = false;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            Value::String(text) if schema.is_some_and(|schema| schema.has_literal(text)) => {}
            Value::String(text) if is_placeholder_text(text) => any = true,
            Value::String(_) => return false,
            Value::Number(number) if number.as_f64() != Some(0.0) => return false,
            _ => {}
        }
    }
    any
}

fn is_placeholder_text(text: &str) -> bool {
    let text = text.trim();
    let enclosed = [('<', '>'), ('[', ']'), ('{', '}')].iter().any(|(open, shut)| {
        let inside = text.strip_prefix(*open).and_then(|text| text.strip_suffix(*shut));
        inside.is_some_and(|inside| {
            !inside.is_empty() && inside.len() <= 60 && !inside.contains(['<', '>', '"', '/', ','])
        })
    });
    let lower = text.to_lowercase();
    let filler =
        ["your ", "your_", "insert ", "your-"].iter().any(|start| lower.starts_with(start));
    enclosed
        || text.is_empty()
        || PLACEHOLDER_WORDS.contains(&lower.as_str())
        || (filler && lower.len() <= 40)
}
