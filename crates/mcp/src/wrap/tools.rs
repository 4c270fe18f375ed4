//! The tools of a server as the client is told of them: its own, and one of ours.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::message::{push_to_array, range_in};
use super::pins::Pins;
use super::result::FEEDBACK;
use crate::page::{PAGE, input_schema};
use crate::shown::shown_whole;

/// What is known of the tools of a server.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// What each promises of its structured output.
    promises: BTreeMap<String, Promise>,
    /// Whether the server itself has a tool of our name.
    taken: bool,
}

/// What a tool promises of its structured output, which clients insist on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    Nothing,
    /// Some fields, and there may be others.
    Some,
    /// Nobody but the server can say what there may be.
    All,
}

/// Keywords that forbid no field.
const HARMLESS: [&str; 6] = ["$schema", "type", "title", "description", "properties", "required"];

impl Promise {
    fn of(tool: &Value) -> Self {
        let Some(schema) = tool.get("outputSchema").and_then(Value::as_object) else {
            return Self::Nothing;
        };
        let taken = schema.get("properties").is_some_and(|fields| fields.get(FEEDBACK).is_some());
        let harmless = |key: &String| HARMLESS.contains(&key.as_str());
        if taken || !schema.keys().all(harmless) { Self::All } else { Self::Some }
    }
}

/// What was seen of a list.
pub(super) struct Seen {
    /// The tools as the server describes them.
    pub(super) tools: Vec<Value>,
    /// Those that are described otherwise than before.
    pub(super) changed: Vec<String>,
}

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
    #[serde(borrow, default, rename = "nextCursor")]
    next: Option<&'a RawValue>,
}

impl Tools {
    /// Whether a call of our name is for us.
    pub(super) fn is_page(&self, tool: &str) -> bool {
        tool == PAGE && !self.taken
    }

    /// Whether clients take no result of a tool without structured content.
    pub(super) fn is_structured(&self, tool: &str) -> bool {
        self.promises.get(tool).is_some_and(|promise| *promise != Promise::Nothing)
    }

    /// Whether its structured content may have a field more. Nobody knows what a client was
    /// told before us.
    pub(super) fn takes_feedback(&self, tool: &str) -> bool {
        self.promises.get(tool).is_some_and(|promise| *promise != Promise::All)
    }

    /// Looks at a list of tools, and adds ours to its last page; none where this is no list.
    pub(super) fn listed(&mut self, result: &mut String, pins: &mut Pins) -> Option<Seen> {
        let Listed { tools, next } = serde_json::from_str(result).ok()?;
        let (array, last) = (range_in(result, tools), next.is_none());
        let described: Vec<Value> = serde_json::from_str(tools.get()).ok()?;
        let mut changed = Vec::new();
        for tool in &described {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            self.taken |= name == PAGE;
            self.promises.insert(name.to_owned(), Promise::of(tool));
            if pins.pin(name, tool) {
                changed.push(name.to_owned());
            }
        }
        if last && !self.taken {
            push_to_array(result, &array, &ours().to_string());
        }
        Some(Seen { tools: described, changed })
    }
}

fn ours() -> Value {
    json!({
        "name": PAGE,
        "description": "Shows the next page of a tool's result that was too long to be shown at \
                        once. The result names the cursor; the pages together are the whole result.",
        "inputSchema": input_schema("a cut result"),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
        "_meta": shown_whole(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_leaves_room_is_kept_with_a_field_more() {
        let promise = |schema: Value| Promise::of(&json!({ "outputSchema": schema }));
        assert_eq!(Promise::of(&json!({})), Promise::Nothing);
        let open = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
        assert_eq!(promise(open), Promise::Some);
        for closed in [
            json!({ "additionalProperties": false }),
            json!({ "properties": { "feedback": { "type": "integer" } } }),
            json!({ "allOf": [{ "maxProperties": 1 }] }),
        ] {
            assert_eq!(promise(closed), Promise::All);
        }
    }

    #[test]
    fn ours_is_added_once_to_the_last_page_and_the_rest_stays_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let mut pins = Pins::load(home.path(), &[]);
        let mut tools = Tools::default();
        let page = "{ \"tools\" : [{\"name\":\"a\", \"outputSchema\":{}}], \"nextCursor\":\"x\"}";
        let mut text = page.to_owned();
        assert!(tools.listed(&mut text, &mut pins).unwrap().changed.is_empty());
        assert_eq!(text, page);
        assert!(tools.is_structured("a") && tools.is_page(PAGE));
        assert!(tools.takes_feedback("a") && !tools.takes_feedback("b"));
        let mut text =
            "{\"tools\":[ {\"name\":\"b\",\"description\":\"\\u0062\"} ],\"ttlMs\":1}".to_owned();
        assert!(tools.listed(&mut text, &mut pins).unwrap().changed.is_empty());
        let start = "{\"tools\":[ {\"name\":\"b\",\"description\":\"\\u0062\"} ,{";
        assert!(text.starts_with(start) && text.ends_with("}],\"ttlMs\":1}"), "{text}");
        let mut text = "{\"tools\":[{\"name\":\"jackline_page\"}]}".to_owned();
        tools.listed(&mut text, &mut pins).unwrap();
        assert_eq!(text, "{\"tools\":[{\"name\":\"jackline_page\"}]}");
        assert!(!tools.is_page(PAGE));
        assert!(tools.listed(&mut "{\"tools\":3}".to_owned(), &mut pins).is_none());
    }
}
