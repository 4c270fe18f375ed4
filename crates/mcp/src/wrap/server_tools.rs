//! The list of tools for the client: the server's tools, and Jackline's page tool.

use std::collections::BTreeMap;

use jackline_runtime::AdapterTools;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::listed_tools::ListedTools;
use super::rpc_message::{push_to_array, range_of};
use super::tool_pins::ToolPins;
use super::tool_result::FEEDBACK_FIELD;
use crate::page_tool::{PAGE_TOOL, page_input_schema};
use crate::result_size_meta::full_result_meta;

/// The known tools of a server.
#[derive(Debug, Default)]
pub(super) struct ServerTools {
    /// What the output schema of each tool allows.
    promises: BTreeMap<String, OutputPromise>,
    /// The tools of the list that the client got last.
    listed: ListedTools,
    /// Whether the server itself has a tool with the name of the page tool.
    has_page_tool: bool,
}

/// What the output schema of a tool allows. Clients enforce it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputPromise {
    NoSchema,
    /// The schema allows additional fields.
    AllowsMore,
    /// The schema may forbid additional fields.
    MayForbidMore,
}

/// Schema keywords that forbid no additional field.
const OPEN_KEYWORDS: [&str; 6] =
    ["$schema", "type", "title", "description", "properties", "required"];

impl OutputPromise {
    fn of(tool: &Value) -> Self {
        let Some(schema) = tool.get("outputSchema").and_then(Value::as_object) else {
            return Self::NoSchema;
        };
        let taken =
            schema.get("properties").is_some_and(|fields| fields.get(FEEDBACK_FIELD).is_some());
        let harmless = |key: &String| OPEN_KEYWORDS.contains(&key.as_str());
        if taken || !schema.keys().all(harmless) { Self::MayForbidMore } else { Self::AllowsMore }
    }
}

/// A parsed list of tools.
pub(super) struct ServerToolList {
    /// The tools as the server describes them.
    pub(super) tools: Vec<Value>,
    /// The tools whose description has changed.
    pub(super) changed: Vec<String>,
}

#[derive(Deserialize)]
struct ToolListResult<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
    #[serde(borrow, default, rename = "nextCursor")]
    next: Option<&'a RawValue>,
}

impl ServerTools {
    /// The tools that the guards know. While no complete list is known, other tools may exist.
    pub(super) fn known_tools(&self) -> AdapterTools {
        self.listed.known_tools(!self.has_page_tool)
    }

    /// Forgets the list, because the server has announced another one.
    pub(super) fn forget_list(&mut self) {
        self.listed = ListedTools::default();
    }

    /// Whether a call of this name is for the page tool.
    pub(super) fn is_page_tool(&self, tool: &str) -> bool {
        tool == PAGE_TOOL && !self.has_page_tool
    }

    /// Whether clients require structured content from this tool.
    pub(super) fn requires_structured(&self, tool: &str) -> bool {
        self.promises.get(tool).is_some_and(|promise| *promise != OutputPromise::NoSchema)
    }

    /// Whether a field may be added to its structured content. A tool that was not listed here may
    /// have been listed to the client before.
    pub(super) fn can_add_feedback(&self, tool: &str) -> bool {
        self.promises.get(tool).is_some_and(|promise| *promise != OutputPromise::MayForbidMore)
    }

    /// Reads a list of tools, and adds the page tool to its last page. Returns `None` for an
    /// invalid list.
    pub(super) fn read_list(
        &mut self,
        result: &mut String,
        pins: &mut ToolPins,
    ) -> Option<ServerToolList> {
        let ToolListResult { tools, next } = serde_json::from_str(result).ok()?;
        let (array, last) = (range_of(result, tools), next.is_none());
        let described: Vec<Value> = serde_json::from_str(tools.get()).ok()?;
        self.listed.add_page(&described, last);
        let mut changed = Vec::new();
        for tool in &described {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            self.has_page_tool |= name == PAGE_TOOL;
            self.promises.insert(name.to_owned(), OutputPromise::of(tool));
            if pins.pin(name, tool) {
                changed.push(name.to_owned());
            }
        }
        if last && !self.has_page_tool {
            push_to_array(result, &array, &page_tool().to_string());
        }
        Some(ServerToolList { tools: described, changed })
    }
}

fn page_tool() -> Value {
    json!({
        "name": PAGE_TOOL,
        "description": "Shows the next page of a tool result that was too long for one \
                        answer. The shortened result contains the cursor; all pages together are \
                        the complete result.",
        "inputSchema": page_input_schema("the shortened result"),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
        "_meta": full_result_meta(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_be_added_only_if_the_schema_allows_it() {
        let promise = |schema: Value| OutputPromise::of(&json!({ "outputSchema": schema }));
        assert_eq!(OutputPromise::of(&json!({})), OutputPromise::NoSchema);
        let open = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
        assert_eq!(promise(open), OutputPromise::AllowsMore);
        for closed in [
            json!({ "additionalProperties": false }),
            json!({ "properties": { "feedback": { "type": "integer" } } }),
            json!({ "allOf": [{ "maxProperties": 1 }] }),
        ] {
            assert_eq!(promise(closed), OutputPromise::MayForbidMore);
        }
    }

    #[test]
    fn the_page_tool_is_added_once_to_the_last_page() {
        let home = tempfile::tempdir().unwrap();
        let mut pins = ToolPins::load(home.path(), &[]);
        let mut tools = ServerTools::default();
        let page = "{ \"tools\" : [{\"name\":\"a\", \"outputSchema\":{}}], \"nextCursor\":\"x\"}";
        let mut text = page.to_owned();
        assert!(tools.read_list(&mut text, &mut pins).unwrap().changed.is_empty());
        assert_eq!(text, page);
        assert!(tools.requires_structured("a") && tools.is_page_tool(PAGE_TOOL));
        assert!(tools.can_add_feedback("a") && !tools.can_add_feedback("b"));
        let mut text =
            "{\"tools\":[ {\"name\":\"b\",\"description\":\"\\u0062\"} ],\"ttlMs\":1}".to_owned();
        assert!(tools.read_list(&mut text, &mut pins).unwrap().changed.is_empty());
        let start = "{\"tools\":[ {\"name\":\"b\",\"description\":\"\\u0062\"} ,{";
        assert!(text.starts_with(start) && text.ends_with("}],\"ttlMs\":1}"), "{text}");
        let mut text = "{\"tools\":[{\"name\":\"jackline_page\"}]}".to_owned();
        tools.read_list(&mut text, &mut pins).unwrap();
        assert_eq!(text, "{\"tools\":[{\"name\":\"jackline_page\"}]}");
        assert!(!tools.is_page_tool(PAGE_TOOL));
        assert!(tools.read_list(&mut "{\"tools\":3}".to_owned(), &mut pins).is_none());
    }
}
