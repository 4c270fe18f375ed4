//! Reads tool results of the client, in the format of each tool.

use jackline_engine::event::ShownLines;
use jackline_engine::{CallStatus, Payload, ToolFinished};
use serde_json::{Map, Value};

/// Fields of a result that repeat a file or the arguments of the call.
const REPEATED_FIELDS: [&str; 6] =
    ["originalFile", "content", "oldString", "newString", "prompt", "structuredPatch"];

/// The tools that find files or text.
const SEARCH_TOOLS: [&str; 2] = ["Glob", "Grep"];

/// The result of a call that a person refused in the client begins with this.
const REFUSED_PREFIX: &str = "The user doesn't want to";

/// Whether the client reports with this text that a person refused the call.
pub(super) fn is_refusal_by_person(text: &str) -> bool {
    text.starts_with(REFUSED_PREFIX)
}

/// Adds the returned values of a tool to a `ToolFinished` event.
pub(super) fn add_result(tool: &str, response: Value, finished: &mut ToolFinished) {
    let Value::Object(mut response) = response else {
        finished.result = result_text(response).map(Payload::Inline);
        return;
    };
    // Only `Read` shows a file. Other tools may use the field `file` for something else.
    if tool == "Read" {
        finished.seen.extend(shown_lines(&response));
    }
    finished.background = is_background(&response);
    if response.get("interrupted") == Some(&Value::Bool(true)) {
        finished.status = CallStatus::Cancelled;
    } else if tool == "Bash"
        && !finished.background
        && response.get("returnCodeInterpretation").is_none_or(Value::is_null)
    {
        // The client reports a failing exit status as a failure, unless it interprets the status.
        finished.exit_code = Some(0);
    }
    let text = command_output(&mut response).or_else(|| file_text(&mut response));
    let text = text.or_else(|| SEARCH_TOOLS.contains(&tool).then(|| search_text(&response))?);
    let text = text.or_else(|| {
        REPEATED_FIELDS.iter().for_each(|name| {
            response.remove(*name);
        });
        result_text(Value::Object(response))
    });
    finished.result = text.map(Payload::Inline);
}

/// Parses "Exit code 3" at the beginning of an error of a failed tool.
pub(super) fn parse_exit_code(error: &str) -> Option<i64> {
    let rest = error.strip_prefix("Exit code ")?;
    let digits = rest.split(|c: char| c != '-' && !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The text that a command printed.
pub(super) fn command_output(response: &mut Map<String, Value>) -> Option<String> {
    let Some(Value::String(mut out)) = response.remove("stdout") else { return None };
    if let Some(Value::String(errors)) = response.remove("stderr")
        && !errors.is_empty()
    {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&errors);
    }
    Some(out)
}

/// The text that was read from a file.
fn file_text(response: &mut Map<String, Value>) -> Option<String> {
    match response.get_mut("file")?.get_mut("content")?.take() {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// What a search found: matching lines or the names of files.
fn search_text(response: &Map<String, Value>) -> Option<String> {
    let names = response.get("filenames")?.as_array()?;
    let lines = response.get("content").and_then(Value::as_str).filter(|text| !text.is_empty());
    let names = || names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    Some(lines.map_or_else(names, ToOwned::to_owned))
}

/// The lines of a file that the agent was shown.
fn shown_lines(response: &Map<String, Value>) -> Option<ShownLines> {
    let file = response.get("file")?;
    let path = file.get("filePath")?.as_str()?;
    let from = file.get("startLine")?.as_u64().filter(|from| *from > 0)?;
    let lines = file.get("numLines")?.as_u64()?;
    let of = file.get("totalLines").and_then(Value::as_u64);
    // An empty file has no line to show.
    let to = from.checked_add(lines)?.checked_sub(1).filter(|to| *to >= from)?;
    Some(ShownLines { path: path.to_owned(), from, to, of })
}

fn is_background(response: &Map<String, Value>) -> bool {
    let named = |name: &str| response.get(name).and_then(Value::as_str);
    named("backgroundTaskId").is_some() || named("status") == Some("async_launched")
}

/// The text of a list item of type `text`.
fn item_text(item: &Value) -> Option<&str> {
    let is_text = item.get("type").and_then(Value::as_str) == Some("text");
    item.get("text").and_then(Value::as_str).filter(|_| is_text)
}

/// A result as text, or nothing for null. A list of text items, as MCP tools return it, becomes
/// their joined text.
pub(super) fn result_text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        Value::Array(items)
            if !items.is_empty() && items.iter().all(|it| item_text(it).is_some()) =>
        {
            Some(items.iter().filter_map(item_text).collect::<Vec<_>>().join("\n"))
        }
        other => serde_json::to_string(&other).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The event for a response, as JSON, without the status `ok`.
    fn finished(tool: &str, response: Value) -> Value {
        let mut event = ToolFinished { status: CallStatus::Ok, ..ToolFinished::default() };
        add_result(tool, response, &mut event);
        let is_ok = event.status == CallStatus::Ok;
        let mut event = serde_json::to_value(event).unwrap();
        if is_ok {
            event.as_object_mut().unwrap().remove("status");
        }
        event
    }

    #[test]
    fn a_command_result_is_its_printed_text() {
        let response = json!({"stdout": "out", "stderr": "err", "interrupted": false});
        assert_eq!(finished("Bash", response), json!({"exit_code": 0, "result": "out\nerr"}));
        let interrupted = json!({"stdout": "", "stderr": "", "interrupted": true});
        assert_eq!(finished("Bash", interrupted), json!({"status": "cancelled", "result": ""}));
        let in_background = json!({"stdout": "", "stderr": "", "backgroundTaskId": "b1"});
        assert_eq!(finished("Bash", in_background), json!({"background": true, "result": ""}));
        // `grep` without a match: the client reports the exit status as normal.
        let explained =
            json!({"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"});
        assert_eq!(finished("Bash", explained), json!({"result": ""}));
    }

    #[test]
    fn a_read_reports_the_shown_lines() {
        let file = json!({"filePath": "/w/a", "content": "x\n", "numLines": 500, "startLine": 1, "totalLines": 900});
        let event = finished("Read", json!({"type": "text", "file": file}));
        let seen = json!([{"path": "/w/a", "from": 1, "to": 500, "of": 900}]);
        assert_eq!(event, json!({"seen": seen, "result": "x\n"}));
        let file = json!({"filePath": "/w/a", "numLines": 9, "startLine": 1});
        assert_eq!(finished("mcp__x__y", json!({"file": file})).get("seen"), None);
    }

    #[test]
    fn a_read_of_unexpected_format_reports_no_lines() {
        for file in [
            json!({"filePath": "/w/a", "numLines": 0, "startLine": 1, "totalLines": 0}),
            json!({"filePath": "/w/a", "numLines": u64::MAX, "startLine": 3}),
            json!({"filePath": 3, "numLines": 1, "startLine": 1}),
            json!({"filePath": "/w/a", "numLines": "2", "startLine": 1}),
            json!({"filePath": "/w/a", "numLines": 2, "startLine": 0}),
            json!("a"),
        ] {
            let event = finished("Read", json!({"file": file}));
            assert_eq!(event.get("seen"), None, "{event}");
        }
    }

    #[test]
    fn the_content_of_a_written_file_is_not_repeated() {
        let response =
            json!({"type": "update", "filePath": "/w/a", "content": "long", "originalFile": "old"});
        let text = json!({"type": "update", "filePath": "/w/a"}).to_string();
        let event = finished("Write", response);
        let result: Value = serde_json::from_str(event["result"].as_str().unwrap()).unwrap();
        assert_eq!(result, serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn a_search_result_is_what_it_found() {
        let found = |tool: &str, response: Value| finished(tool, response)["result"].clone();
        let files = json!({"mode": "files_with_matches", "numFiles": 2, "filenames": ["a", "b"]});
        assert_eq!(found("Grep", files), json!("a\nb"));
        let lines = json!({"mode": "content", "numFiles": 0, "filenames": [], "content": "a:1:x"});
        assert_eq!(found("Grep", lines), json!("a:1:x"));
        let none = json!({"durationMs": 4, "numFiles": 0, "filenames": [], "truncated": false});
        assert_eq!(found("Glob", none.clone()), json!(""));
        assert_ne!(found("mcp__x__y", none), json!(""));
    }

    #[test]
    fn a_list_of_texts_becomes_their_joined_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let result = |items: Value| finished("mcp__a__b", items)["result"].clone();
        assert_eq!(result(json!([text("{\"n\":3}"), text("b")])), json!("{\"n\":3}\nb"));
        let mixed = json!([text("a"), {"type": "image"}]);
        assert_eq!(result(mixed.clone()), json!(mixed.to_string()));
    }

    #[test]
    fn exit_codes_are_numbers_or_nothing() {
        assert_eq!(parse_exit_code("Exit code 3"), Some(3));
        assert_eq!(parse_exit_code("Exit code 127\nsh: x: not found"), Some(127));
        assert_eq!(parse_exit_code("Exit code "), None);
        assert_eq!(parse_exit_code("Permission denied"), None);
    }
}
