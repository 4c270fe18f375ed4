//! The schemas of the arguments of the served tools, for the guards.

use std::collections::BTreeMap;

use jackline_engine::definition::SchemaText;
use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_workspace::ToolSpec;

use super::output_store;

/// The schemas of the tools and of the page tool, by name.
pub(super) fn argument_schemas(tools: &[ToolSpec]) -> BTreeMap<String, SchemaText> {
    let page = output_store::page_tool_spec();
    let mut schemas = jackline_workspace::argument_schemas(tools.iter().chain([&page]));
    // The page tool has one name for clients and another one for guards.
    if let Some(schema) = schemas.get(page.name).cloned() {
        schemas.insert(PAGE_TURN_TOOL.to_owned(), schema);
    }
    schemas
}

#[cfg(test)]
mod tests {
    use jackline_decode::Schema;
    use jackline_workspace::tools;
    use serde_json::{Value, json};

    use super::*;

    /// The largest whole number that every JSON parser reads exactly.
    const SAFE_INTEGER_MAX: u64 = 9_007_199_254_740_991;

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
