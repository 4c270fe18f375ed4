//! The tool that turns pages: a proxy and a server have it both.

use jackline_engine::json::kind_of;
use serde_json::{Value, json};

/// What clients call it.
pub(crate) const PAGE: &str = "jackline_page";

/// What a cursor may look like.
const EXAMPLE: &str = "1-31744";

/// What it takes.
pub(crate) fn input_schema(names: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "cursor": {
                "type": "string",
                "description": format!("As {names} names it."),
                "examples": [EXAMPLE],
            },
        },
        "required": ["cursor"],
        "additionalProperties": false,
    })
}

/// The cursor among arguments, or what is wrong with it.
pub(crate) fn cursor(arguments: Option<&Value>) -> Result<&str, String> {
    let given = arguments.and_then(|arguments| arguments.get("cursor"));
    given.and_then(Value::as_str).ok_or_else(|| {
        let wrong = given.map_or_else(
            || "is missing".to_owned(),
            |given| format!("must be a text, and is {}", kind_of(given)),
        );
        format!(
            "`cursor` {wrong}; give it as the cut result names it, such as {}",
            json!({ "cursor": EXAMPLE })
        )
    })
}
