//! The tools that a server lists, with the schemas of their arguments.

use std::collections::BTreeMap;

use jackline_engine::definition::SchemaText;
use jackline_runtime::AdapterTools;
use serde_json::Value;

use crate::page_tool::PAGE_TOOL;

/// How many tools are remembered. A server with more can have any tool.
const TOOLS_MAX: usize = 4096;

/// How long the schema of one tool may be. A longer one is not checked.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// How long all schemas together may be.
const SCHEMAS_BYTES_MAX: usize = 4 << 20;

/// The tools of a list that may come in pages.
#[derive(Debug, Default)]
pub(super) struct ListedTools {
    /// The tools in the order of the server.
    names: Vec<String>,
    schemas: BTreeMap<String, SchemaText>,
    schema_bytes: usize,
    /// Whether the last page was added.
    is_complete: bool,
    /// Whether the server has more tools than are remembered.
    is_truncated: bool,
}

impl ListedTools {
    /// Adds a page. A page after the last one begins a new list.
    pub(super) fn add_page(&mut self, tools: &[Value], is_last: bool) {
        if self.is_complete {
            *self = Self::default();
        }
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            if self.names.len() >= TOOLS_MAX {
                self.is_truncated = true;
                break;
            }
            self.names.push(name.to_owned());
            let schema = tool.get("inputSchema").filter(|schema| schema.is_object());
            if let Some(schema) = schema.map(Value::to_string) {
                self.add_schema(name, schema);
            }
        }
        self.is_complete = is_last;
    }

    fn add_schema(&mut self, name: &str, schema: String) {
        let all = self.schema_bytes + schema.len();
        if schema.len() <= SCHEMA_BYTES_MAX && all <= SCHEMAS_BYTES_MAX {
            self.schema_bytes = all;
            self.schemas.insert(name.to_owned(), SchemaText(schema));
        }
    }

    /// The tools that the guards know, with the page tool if the proxy has added it.
    pub(super) fn known_tools(&self, has_page_tool: bool) -> AdapterTools {
        let page = has_page_tool.then(|| PAGE_TOOL.to_owned());
        let names = self.names.iter().cloned().chain(page);
        let tools = if self.is_complete && !self.is_truncated {
            AdapterTools::complete(names)
        } else {
            AdapterTools::partial(names)
        };
        tools.with_schemas(self.schemas.clone())
    }
}

#[cfg(test)]
mod tests {
    use jackline_engine::Definition;
    use serde_json::json;

    use super::*;

    fn refuted(tools: &ListedTools) -> bool {
        !tools.known_tools(false).facts_about("other", &Definition::default()).is_empty()
    }

    #[test]
    fn only_a_complete_list_refutes_other_tools() {
        let mut tools = ListedTools::default();
        assert!(!refuted(&tools));
        tools.add_page(&[json!({ "name": "a" })], false);
        assert!(!refuted(&tools));
        tools.add_page(&[json!({ "name": "b" })], true);
        assert!(refuted(&tools));
        assert_eq!(tools.names, ["a", "b"]);
        tools.add_page(&[json!({ "name": "c" })], false);
        assert!(!refuted(&tools), "a new list has begun");
        let many: Vec<Value> =
            (0..=TOOLS_MAX).map(|it| json!({ "name": it.to_string() })).collect();
        tools.add_page(&many, true);
        assert!(!refuted(&tools));
    }
}
