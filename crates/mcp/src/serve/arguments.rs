//! Whether arguments have the shape a tool asks for, said so that a model can mend it.
//!
//! The schemas are our own, one level deep. A number that is written as text is
//! left to the tool, which reads it.

use serde::Serialize;
use serde_json::Value;

/// One thing that is not as it should be.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Wrong {
    /// Where, as a JSON pointer into the arguments.
    pub(super) path: String,
    pub(super) expected: String,
    pub(super) got: String,
}

/// Everything that is wrong with them.
pub(super) fn check(schema: &Value, args: &Value) -> Vec<Wrong> {
    let Some(given) = args.as_object() else {
        return vec![wrong("", "an object", kind(args))];
    };
    let empty = serde_json::Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array);
    let missing = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| given.get(*name).is_none_or(Value::is_null))
        .map(|name| {
            let expected = properties.get(name).and_then(expected).unwrap_or("a value");
            wrong(name, expected, "nothing")
        });
    let unlike = given.iter().filter(|(_, value)| !value.is_null()).filter_map(|(name, value)| {
        let Some(property) = properties.get(name) else {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            let expected = format!("one of {}", known.join(", "));
            return Some(wrong(name, &expected, "an unknown argument"));
        };
        let expected = expected(property)?;
        (!fits(expected, value)).then(|| wrong(name, expected, kind(value)))
    });
    missing.chain(unlike).collect()
}

fn wrong(name: &str, expected: &str, got: &str) -> Wrong {
    let path = if name.is_empty() { String::new() } else { format!("/{name}") };
    Wrong { path, expected: expected.to_owned(), got: got.to_owned() }
}

fn expected(property: &Value) -> Option<&'static str> {
    Some(match property.get("type")?.as_str()? {
        "string" => "a string",
        "integer" => "a whole number",
        "boolean" => "true or false",
        _ => return None,
    })
}

fn fits(expected: &str, value: &Value) -> bool {
    match expected {
        "a string" => value.is_string(),
        "a whole number" => value.is_u64() || value.is_i64() || value.is_string(),
        _ => value.is_boolean(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let schema = json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "offset": { "type": "integer" } },
            "required": ["path"],
        });
        assert!(check(&schema, &json!({ "path": "a", "offset": 1 })).is_empty());
        assert!(check(&schema, &json!({ "path": "a", "offset": "1" })).is_empty());
        assert!(check(&schema, &json!({ "path": "a", "offset": null })).is_empty());
        assert_eq!(check(&schema, &json!([])), [wrong("", "an object", "a list")]);
        let found = check(&schema, &json!({ "offset": [], "file": 1 }));
        let expected = [
            wrong("path", "a string", "nothing"),
            wrong("file", "one of offset, path", "an unknown argument"),
            wrong("offset", "a whole number", "a list"),
        ];
        assert_eq!(found, expected);
    }
}
