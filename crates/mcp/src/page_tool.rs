//! The tool that shows the next page of a long output. The proxy and the server both offer it.

use jackline_engine::json::describe_type;
use serde_json::{Value, json};

/// The name of the tool for clients.
pub(crate) const PAGE_TOOL: &str = "jackline_page";

/// An example of a cursor.
const CURSOR_EXAMPLE: &str = "1-31744";

/// The JSON schema of its arguments.
pub(crate) fn page_input_schema(names: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "cursor": {
                "type": "string",
                "description": format!("The cursor from {names}."),
                "examples": [CURSOR_EXAMPLE],
            },
        },
        "required": ["cursor"],
        "additionalProperties": false,
    })
}

/// Reads the cursor from arguments, or returns what is wrong with it.
pub(crate) fn parse_cursor_argument(arguments: Option<&Value>) -> Result<&str, String> {
    let given = arguments.and_then(|arguments| arguments.get("cursor"));
    given.and_then(Value::as_str).ok_or_else(|| {
        let problem = given.map_or_else(
            || "is missing".to_owned(),
            |given| format!("must be a string, not {}", describe_type(given)),
        );
        format!(
            "`cursor` {problem}; use the cursor from the shortened result, for example {}",
            json!({ "cursor": CURSOR_EXAMPLE })
        )
    })
}
