//! Whether the fields of a result say more than its text.
//!
//! A server says most results twice, as text and as fields, and some clients show the
//! model only one of the two. What the fields say besides, the guards have to hear, too;
//! what is the same should count once.

use serde_json::Value;

/// How much is compared to find out; what takes more counts as something else.
const BYTES_MAX: usize = 16 << 20;

/// Whether fields say anything that is not in a text.
pub(super) fn say_more(fields: &str, text: &str) -> bool {
    let Ok(fields) = serde_json::from_str::<Value>(fields) else { return true };
    if serde_json::from_str::<Value>(text).is_ok_and(|told| is_same(&fields, &told)) {
        return false;
    }
    let mut room = BYTES_MAX;
    !is_in(&fields, text, &mut room)
}

/// Whether a text is fields as JSON. What is no object some servers put into one.
fn is_same(fields: &Value, told: &Value) -> bool {
    let wrapped = fields.as_object().filter(|map| map.len() == 1);
    fields == told || wrapped.and_then(|map| map.get("result")) == Some(told)
}

/// Whether every value of some fields is in a text as it is.
fn is_in(fields: &Value, text: &str, room: &mut usize) -> bool {
    let mut has = |value: &str| {
        let left = room.checked_sub(text.len());
        *room = left.unwrap_or(0);
        left.is_some() && text.contains(value)
    };
    match fields {
        Value::Null => true,
        Value::String(value) => has(value),
        Value::Bool(_) | Value::Number(_) => has(&fields.to_string()),
        Value::Array(items) => items.iter().all(|item| is_in(item, text, room)),
        Value::Object(map) => map.values().all(|item| is_in(item, text, room)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_in_other_words_is_nothing_more() {
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
            assert!(!say_more(fields, text), "{fields} and {text}");
        }
    }

    #[test]
    fn what_the_text_does_not_have_is_more() {
        let long = "x".repeat(BYTES_MAX / 2);
        for (fields, text) in [
            (r#"{"log":"2 failed"}"#, "ok"),
            (r#"{"a":{"b":[{"c":"d"}]}}"#, "a b c"),
            (r#"{"n":3}"#, "2"),
            (r#"{"half":"\ud83d"}"#, "half"),
            (r#"{"a":"x","b":"x","c":"x"}"#, long.as_str()),
        ] {
            assert!(say_more(fields, text), "{fields}");
        }
    }
}
