//! The schemas of the tools' arguments for the guards. They accept everything that the tools
//! accept: models often write numbers as text and send `null` for missing arguments.

use std::collections::BTreeMap;

use jackline_engine::definition::SchemaText;
use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_workspace::ToolSpec;
use serde_json::{Value, json};

use super::output_store;

/// The largest whole number that every JSON parser reads exactly.
const SAFE_INTEGER_MAX: u64 = 9_007_199_254_740_991;

/// The schemas of the tools, by name.
pub(super) fn argument_schemas(tools: &[ToolSpec]) -> BTreeMap<String, SchemaText> {
    let schema = |spec: &ToolSpec| SchemaText(lenient_schema(&spec.input_schema).to_string());
    // The page tool has one name for clients and another one for guards.
    let page = output_store::page_tool_spec();
    let pages = [PAGE_TURN_TOOL, page.name].map(|name| (name.to_owned(), schema(&page)));
    tools.iter().map(|spec| (spec.name.to_owned(), schema(spec))).chain(pages).collect()
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

#[cfg(test)]
mod tests {
    use jackline_decode::Schema;
    use jackline_workspace::tools;

    use super::*;

    #[test]
    fn the_schemas_allow_exactly_what_the_tools_accept() {
        let taken = argument_schemas(tools());
        assert_eq!(taken.len(), tools().len() + 2, "plus the page tool under both names");
        let schema: Value = serde_json::from_str(&taken["read_file"].0).unwrap();
        let schema = Schema::compile(&schema).unwrap();
        for (args, fits) in [
            (json!({ "path": "a", "offset": 1 }), true),
            (json!({ "path": "a", "offset": "1" }), true),
            (json!({ "path": "a", "offset": null }), true),
            (json!({ "path": "a", "offset": "one" }), false),
            (json!({ "path": "a", "offset": 0 }), true),
            (json!({ "path": "a", "offset": -1 }), false),
            (json!({ "path": "a", "offset": 2.0 }), true),
            (json!({ "path": "a", "offset": 2.5 }), false),
            (json!({ "path": "a", "offset": SAFE_INTEGER_MAX }), true),
            (json!({ "path": "a", "offset": SAFE_INTEGER_MAX + 1 }), false),
            (json!({ "path": "a", "offset": 1e30 }), false),
            (json!({ "path": "a", "limit": "9".repeat(16) }), false),
            (json!({ "path": "a", "limit": 0 }), false),
            (json!({ "path": null }), false),
            (json!({ "path": "a", "file": "a" }), false),
            (json!({}), false),
        ] {
            assert_eq!(schema.allows(&args), fits, "{args}");
        }
    }
}
