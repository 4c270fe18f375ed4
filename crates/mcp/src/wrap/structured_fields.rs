//! Checks whether the structured fields of a result contain more than its text.
//!
//! Most servers send a result twice, as text and as fields, and some clients show the model only
//! one of the two. The guards must see fields that the text lacks. A result that is the same in
//! both should count only once.

use serde_json::Value;

/// How many bytes are compared. Beyond that, the fields count as different.
const COMPARED_BYTES_MAX: usize = 16 << 20;

/// Whether the fields contain a value that the text does not contain.
pub(super) fn has_more_than_text(fields: &str, text: &str) -> bool {
    let Ok(fields) = serde_json::from_str::<Value>(fields) else { return true };
    if serde_json::from_str::<Value>(text).is_ok_and(|parsed| is_same_json(&fields, &parsed)) {
        return false;
    }
    let mut room = COMPARED_BYTES_MAX;
    !contains_all_values(&fields, text, &mut room)
}

/// Whether the text is the same JSON. Some servers wrap a value that is not an object in the field
/// `result`.
fn is_same_json(fields: &Value, parsed: &Value) -> bool {
    let wrapped = fields.as_object().filter(|map| map.len() == 1);
    fields == parsed || wrapped.and_then(|map| map.get("result")) == Some(parsed)
}

/// Whether the text contains every value of the fields.
fn contains_all_values(fields: &Value, text: &str, room: &mut usize) -> bool {
    let mut has = |value: &str| {
        let remaining = room.checked_sub(text.len());
        *room = remaining.unwrap_or(0);
        remaining.is_some() && text.contains(value)
    };
    match fields {
        Value::Null => true,
        Value::String(value) => has(value),
        Value::Bool(_) | Value::Number(_) => has(&fields.to_string()),
        Value::Array(items) => items.iter().all(|item| contains_all_values(item, text, room)),
        Value::Object(map) => map.values().all(|item| contains_all_values(item, text, room)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_repeat_the_text_add_nothing() {
        for (fields, text) in [
            (r#"{"a":[1,"x\ny"]}"#, r#"{ "a": [1, "x\ny"] }"#),
            (r#"{"result":5}"#, "5"),
            (r#"{"result":["a"]}"#, r#"["a"]"#),
            (r#"{"content":"one\ntwo\n"}"#, "one\ntwo\n"),
            (
                r#"{"celsius":21.5,"wind":{"from":"east"},"rain":null}"#,
                "21.5 degrees, wind from the east",
            ),
            ("{}", ""),
        ] {
            assert!(!has_more_than_text(fields, text), "{fields} and {text}");
        }
    }

    #[test]
    fn fields_with_other_values_add_something() {
        let long = "x".repeat(COMPARED_BYTES_MAX / 2);
        for (fields, text) in [
            (r#"{"log":"2 failed"}"#, "ok"),
            (r#"{"a":{"b":[{"c":"d"}]}}"#, "a b c"),
            (r#"{"n":3}"#, "2"),
            (r#"{"half":"\ud83d"}"#, "half"),
            (r#"{"a":"x","b":"x","c":"x"}"#, long.as_str()),
        ] {
            assert!(has_more_than_text(fields, text), "{fields}");
        }
    }
}
