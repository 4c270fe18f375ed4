//! Builds the JSON Schema of the file, for editors, from the tables of keys.

use serde_json::{Map, Value, json};

use crate::keys::{KeySpec, MappingSpec, RequiredKeys, ValueType};
use crate::sections::{MAPPINGS, ROOT};

/// Returns the JSON Schema (2020-12) of a definition.
pub fn schema() -> Value {
    let definitions: Map<String, Value> =
        MAPPINGS.iter().map(|keys| (keys.id.to_owned(), mapping(keys))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "jackline.yaml",
        "description": "The guardrails of one agent.",
        "$ref": definition_reference(&ROOT),
        "$defs": definitions,
    })
}

fn definition_reference(keys: &MappingSpec) -> String {
    format!("#/$defs/{}", keys.id)
}

fn mapping(keys: &MappingSpec) -> Value {
    let properties: Map<String, Value> =
        keys.entries.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let mut schema = Map::new();
    // A mapping without required keys may also be empty, which YAML reads as null.
    let kind = if keys.required.is_empty() { json!(["object", "null"]) } else { json!("object") };
    schema.insert("type".to_owned(), kind);
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    if !keys.doc.is_empty() {
        schema.insert("description".to_owned(), keys.doc.into());
    }
    let needs: Vec<Value> = keys.required.iter().map(required_schema).collect();
    if !needs.is_empty() {
        schema.insert("allOf".to_owned(), needs.into());
    }
    schema.into()
}

fn property(key: &KeySpec) -> Value {
    let mut schema = value(&key.value_type);
    let default = match key.default {
        "" => String::new(),
        "required" => " Required.".to_owned(),
        default => format!(" Default: {default}."),
    };
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), format!("{}{default}", key.doc).into());
    }
    schema
}

fn value(takes: &ValueType) -> Value {
    match takes {
        ValueType::Text | ValueType::Pointer | ValueType::Path => {
            json!({ "type": "string", "minLength": 1 })
        }
        ValueType::Form(pattern, _) => json!({ "type": "string", "pattern": pattern }),
        ValueType::Flag => json!({ "type": "boolean" }),
        ValueType::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        // Our own reader sees decimals as text; an editor sees them as numbers.
        ValueType::Usd => {
            json!({ "type": ["number", "string"], "minimum": 0, "pattern": "^[0-9]+(\\.[0-9]{1,6})?$" })
        }
        ValueType::Seconds => {
            json!({ "type": ["number", "string"], "exclusiveMinimum": 0, "pattern": "^[0-9]+(\\.[0-9]{1,3})?$" })
        }
        ValueType::Word(words) => json!({ "enum": words }),
        ValueType::List(0, of) => json!({ "type": ["array", "null"], "items": value(of) }),
        ValueType::List(min, of) => json!({ "type": "array", "items": value(of), "minItems": min }),
        ValueType::Map(keys) => json!({ "$ref": definition_reference(keys) }),
        ValueType::Names(0, _, of) => {
            json!({ "type": ["object", "null"], "additionalProperties": value(of) })
        }
        ValueType::Names(min, _, of) => {
            json!({ "type": "object", "additionalProperties": value(of), "minProperties": min })
        }
        ValueType::OneOf(choices) => {
            json!({ "anyOf": choices.iter().map(value).collect::<Vec<_>>() })
        }
        ValueType::Arguments => json!({ "type": "object" }),
        ValueType::Schema => json!({ "type": ["object", "boolean"] }),
        ValueType::Nothing => json!({ "type": "null" }),
    }
}

fn required_schema(needs: &RequiredKeys) -> Value {
    let each = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({ "required": [name] })).collect()
    };
    match needs {
        RequiredKeys::All(names) => json!({ "required": names }),
        RequiredKeys::One(names) => json!({ "oneOf": each(names) }),
        RequiredKeys::Some(names) => json!({ "anyOf": each(names) }),
        RequiredKeys::Single => json!({ "minProperties": 1, "maxProperties": 1 }),
    }
}
