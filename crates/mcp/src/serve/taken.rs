//! What the tools take, as the guards check it: as it is listed, but as gently as the tools
//! themselves read it. Models like to write numbers as text, and nothing as `null`.

use std::collections::BTreeMap;

use jackline_engine::definition::SchemaText;
use jackline_engine::tool::PAGE_TURN;
use jackline_workspace::ToolSpec;
use serde_json::{Value, json};

use super::shelf;

/// Up to here every reader of JSON has the same whole number.
const NUMBER_MAX: u64 = 9_007_199_254_740_991;

/// The schemas of tools, by name.
pub(super) fn taken(tools: &[ToolSpec]) -> BTreeMap<String, SchemaText> {
    let schema = |spec: &ToolSpec| SchemaText(gentle(&spec.input_schema).to_string());
    // The one that turns pages has a name for clients, by which it is listed, and one for guards.
    let page = shelf::spec();
    let pages = [PAGE_TURN, page.name].map(|name| (name.to_owned(), schema(&page)));
    tools.iter().map(|spec| (spec.name.to_owned(), schema(spec))).chain(pages).collect()
}

fn gentle(schema: &Value) -> Value {
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
                fields.insert("maximum".to_owned(), json!(NUMBER_MAX));
                // As a text it may have as many digits as the largest surely has.
                fields.insert("pattern".to_owned(), json!("^[0-9]{1,15}$"));
            }
            // Many count from 0; the tools take it for 1.
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
    fn what_the_tools_read_is_let_through_and_nothing_else() {
        let taken = taken(tools());
        assert_eq!(taken.len(), tools().len() + 2, "and a page, by both its names");
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
            (json!({ "path": "a", "offset": NUMBER_MAX }), true),
            (json!({ "path": "a", "offset": NUMBER_MAX + 1 }), false),
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
