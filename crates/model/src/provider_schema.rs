//! Converts JSON Schemas to the form that providers accept.

use serde_json::{Value, json};

/// The schema with all objects closed to additional properties. A document that matches it also
/// matches the original schema.
pub(crate) fn closed_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    close_objects(&mut schema);
    schema
}

fn close_objects(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_object = fields.get("type") == Some(&json!("object"));
            if is_object && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields
                .iter_mut()
                .filter(|(name, _)| !is_data_keyword(name))
                .for_each(|(_, it)| close_objects(it));
        }
        Value::Array(values) => values.iter_mut().for_each(close_objects),
        _ => {}
    }
}

/// Whether `OpenAI` accepts the schema as strict: every object is closed, and every property is
/// required.
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
            fits && fields
                .iter()
                .filter(|(name, _)| !is_data_keyword(name))
                .all(|(_, it)| is_strict(it))
        }
        Value::Array(values) => values.iter().all(is_strict),
        _ => true,
    }
}

/// Whether the value of a keyword is not a schema.
fn is_data_keyword(keyword: &str) -> bool {
    matches!(keyword, "const" | "default" | "enum" | "examples" | "required")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_without_additional_properties_are_closed() {
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
        assert_eq!(closed_schema(&open), expected);
    }

    #[test]
    fn a_schema_is_strict_only_without_open_objects_and_optional_properties() {
        let schema = |required: Value| {
            json!({ "type": "object", "properties": { "a": { "type": "string" } },
                    "required": required, "additionalProperties": false })
        };
        assert!(is_strict(&schema(json!(["a"]))) && !is_strict(&schema(json!([]))));
        assert!(!is_strict(&json!({ "type": "array", "items": { "type": "object" } })));
        assert!(is_strict(&json!({ "type": "string" })));
    }
}
