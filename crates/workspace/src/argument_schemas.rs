//! The schemas of the tools' arguments for the guards. They accept everything that the tools
//! accept: models often write numbers as text and send `null` for missing arguments.

use std::collections::BTreeMap;

use jackline_engine::definition::SchemaText;
use serde_json::{Value, json};

use crate::tools::ToolSpec;

/// The largest whole number that every JSON parser reads exactly.
const SAFE_INTEGER_MAX: u64 = 9_007_199_254_740_991;

/// The schemas of the tools, by name.
pub fn argument_schemas<'t>(
    tools: impl IntoIterator<Item = &'t ToolSpec>,
) -> BTreeMap<String, SchemaText> {
    let schema = |spec: &ToolSpec| SchemaText(lenient_schema(&spec.input_schema).to_string());
    tools.into_iter().map(|spec| (spec.name.to_owned(), schema(spec))).collect()
}

fn lenient_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let kind = property.get("type").cloned().unwrap_or_default();
        let mut kinds = vec![kind.clone()];
        if kind == "integer" {
            kinds.push(json!("string"));
        }
        if !required.contains(&json!(name)) {
            kinds.push(json!("null"));
        }
        if let Some(fields) = property.as_object_mut() {
            fields.insert("type".to_owned(), Value::Array(kinds));
            if kind == "integer" {
                fields.insert("maximum".to_owned(), json!(SAFE_INTEGER_MAX));
                // As text, it may have as many digits as every safe number has.
                fields.insert("pattern".to_owned(), json!("^[0-9]{1,15}$"));
            }
            // Some clients count from 0; the tools read that as 1.
            if name == "offset" {
                fields.insert("minimum".to_owned(), json!(0));
            }
        }
    }
    schema
}
