//! Values that nobody thought about: a form that was handed in unfilled.

use serde_json::Value;

use crate::schema::Schema;

const WORDS: [&str; 22] = [
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

/// Whether a value holds placeholders and nothing else of its writer's making. Texts
/// that the schema spells out say nothing either way.
pub(crate) fn is_placeholder(value: &Value, schema: Option<&Schema>) -> bool {
    let mut any = false;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            Value::String(text) if schema.is_some_and(|schema| schema.names(text)) => {}
            Value::String(text) if is_word(text) => any = true,
            Value::String(_) => return false,
            Value::Number(number) if number.as_f64() != Some(0.0) => return false,
            _ => {}
        }
    }
    any
}

fn is_word(text: &str) -> bool {
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
    enclosed || text.is_empty() || WORDS.contains(&lower.as_str()) || (filler && lower.len() <= 40)
}
