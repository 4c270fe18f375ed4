//! JSON Schemas as providers take them.

use serde_json::{Value, json};

/// The schema with no object open to further keys. Whatever fits it fits the schema as it
/// was, too.
pub(crate) fn closed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    close(&mut schema);
    schema
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_object = fields.get("type") == Some(&json!("object"));
            if is_object && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.iter_mut().filter(|(name, _)| !is_data(name)).for_each(|(_, it)| close(it));
        }
        Value::Array(values) => values.iter_mut().for_each(close),
        _ => {}
    }
}

/// Whether `OpenAI` takes it as strict: no object is open, and no key may be left out.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let keys = fields.get("properties").and_then(Value::as_object);
            let required = fields.get("required").and_then(Value::as_array);
            let is_required = |name: &String| {
                required.is_some_and(|required| required.contains(&Value::from(name.as_str())))
            };
            let is_object = fields.get("type") == Some(&json!("object")) || keys.is_some();
            let fits = !is_object
                || (fields.get("additionalProperties") == Some(&json!(false))
                    && keys.is_none_or(|keys| keys.keys().all(is_required)));
            fits && fields.iter().filter(|(name, _)| !is_data(name)).all(|(_, it)| is_strict(it))
        }
        Value::Array(values) => values.iter().all(is_strict),
        _ => true,
    }
}

/// Whether what a keyword holds is no schema.
fn is_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "default" | "enum" | "examples" | "required")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_closed_where_it_is_silent() {
        let open = json!({ "type": "object", "properties": {
            "a": { "type": "array", "items": { "type": "object" } },
            "b": { "type": "object", "additionalProperties": true },
            "c": { "const": { "type": "object" } },
        } });
        let expected = json!({ "type": "object", "additionalProperties": false, "properties": {
            "a": { "type": "array", "items": { "type": "object", "additionalProperties": false } },
            "b": { "type": "object", "additionalProperties": true },
            "c": { "const": { "type": "object" } },
        } });
        assert_eq!(closed(&open), expected);
    }

    #[test]
    fn strict_is_what_leaves_nothing_open() {
        let schema = |required: Value| {
            json!({ "type": "object", "properties": { "a": { "type": "string" } },
                    "required": required, "additionalProperties": false })
        };
        assert!(is_strict(&schema(json!(["a"]))) && !is_strict(&schema(json!([]))));
        assert!(!is_strict(&json!({ "type": "array", "items": { "type": "object" } })));
        assert!(is_strict(&json!({ "type": "string" })));
    }
}
