//! The JSON Schema of the file, for editors, made from the tables of keys.

use serde_json::{Map, Value, json};

use crate::keys::{Key, Keys, Needs, Takes};
use crate::sections::{MAPPINGS, ROOT};

/// The JSON Schema (2020-12) of a definition.
pub fn schema() -> Value {
    let definitions: Map<String, Value> =
        MAPPINGS.iter().map(|keys| (keys.id.to_owned(), mapping(keys))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "jackline.yaml",
        "description": "The guardrails of one agent.",
        "$ref": reference(&ROOT),
        "$defs": definitions,
    })
}

fn reference(keys: &Keys) -> String {
    format!("#/$defs/{}", keys.id)
}

fn mapping(keys: &Keys) -> Value {
    let properties: Map<String, Value> =
        keys.known.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let mut schema = Map::new();
    // Where nothing has to be there, an empty key is an empty mapping.
    let kind = if keys.needs.is_empty() { json!(["object", "null"]) } else { json!("object") };
    schema.insert("type".to_owned(), kind);
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    if !keys.doc.is_empty() {
        schema.insert("description".to_owned(), keys.doc.into());
    }
    let needs: Vec<Value> = keys.needs.iter().map(demand).collect();
    if !needs.is_empty() {
        schema.insert("allOf".to_owned(), needs.into());
    }
    schema.into()
}

fn property(key: &Key) -> Value {
    let mut schema = value(&key.takes);
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

fn value(takes: &Takes) -> Value {
    match takes {
        Takes::Text | Takes::Pointer | Takes::Path => json!({ "type": "string", "minLength": 1 }),
        Takes::Form(pattern, _) => json!({ "type": "string", "pattern": pattern }),
        Takes::Flag => json!({ "type": "boolean" }),
        Takes::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        // Decimals reach our own reader as text, and an editor's as numbers.
        Takes::Usd => {
            json!({ "type": ["number", "string"], "minimum": 0, "pattern": "^[0-9]+(\\.[0-9]{1,6})?$" })
        }
        Takes::Word(words) => json!({ "enum": words }),
        Takes::List(0, of) => json!({ "type": ["array", "null"], "items": value(of) }),
        Takes::List(min, of) => json!({ "type": "array", "items": value(of), "minItems": min }),
        Takes::Map(keys) => json!({ "$ref": reference(keys) }),
        Takes::Names(0, _, of) => {
            json!({ "type": ["object", "null"], "additionalProperties": value(of) })
        }
        Takes::Names(min, _, of) => {
            json!({ "type": "object", "additionalProperties": value(of), "minProperties": min })
        }
        Takes::OneOf(choices) => {
            json!({ "anyOf": choices.iter().map(value).collect::<Vec<_>>() })
        }
        Takes::Arguments => json!({ "type": "object" }),
        Takes::Schema => json!({ "type": ["object", "boolean"] }),
        Takes::Nothing => json!({ "type": "null" }),
    }
}

fn demand(needs: &Needs) -> Value {
    let each = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({ "required": [name] })).collect()
    };
    match needs {
        Needs::All(names) => json!({ "required": names }),
        Needs::One(names) => json!({ "oneOf": each(names) }),
        Needs::Some(names) => json!({ "anyOf": each(names) }),
        Needs::Single => json!({ "minProperties": 1, "maxProperties": 1 }),
    }
}
