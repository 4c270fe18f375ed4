//! What the client says a tool gave back, in the shape of each tool.

use jackline_engine::event::Seen;
use jackline_engine::{Payload, Status, ToolFinished};
use serde_json::{Map, Value};

/// Parts of a result that repeat a file or the arguments of the call.
const REPEATED: [&str; 6] =
    ["originalFile", "content", "oldString", "newString", "prompt", "structuredPatch"];

/// Adds to the end of a call what its tool returned.
pub(super) fn returned(tool: &str, response: Value, finished: &mut ToolFinished) {
    let Value::Object(mut response) = response else {
        finished.result = text_of(response).map(Payload::Inline);
        return;
    };
    // Whatever others call `file` is nothing that the client has shown.
    if tool == "Read" {
        finished.seen.extend(seen(&response));
    }
    finished.background = is_background(&response);
    if response.get("interrupted") == Some(&Value::Bool(true)) {
        finished.status = Status::Cancelled;
    } else if tool == "Bash"
        && !finished.background
        && response.get("returnCodeInterpretation").is_none_or(Value::is_null)
    {
        // The client calls an exit status that it takes for none a failure.
        finished.exit_code = Some(0);
    }
    let text = output(&mut response).or_else(|| file_text(&mut response)).or_else(|| {
        REPEATED.iter().for_each(|name| {
            response.remove(*name);
        });
        text_of(Value::Object(response))
    });
    finished.result = text.map(Payload::Inline);
}

/// "Exit code 3" at the beginning of what a failed tool said.
pub(super) fn exit_code(error: &str) -> Option<i64> {
    let rest = error.strip_prefix("Exit code ")?;
    let digits = rest.split(|c: char| c != '-' && !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// What a command printed.
pub(super) fn output(response: &mut Map<String, Value>) -> Option<String> {
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

/// What was read of a file.
fn file_text(response: &mut Map<String, Value>) -> Option<String> {
    match response.get_mut("file")?.get_mut("content")?.take() {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Which lines of which file the agent was shown.
fn seen(response: &Map<String, Value>) -> Option<Seen> {
    let file = response.get("file")?;
    let path = file.get("filePath")?.as_str()?;
    let from = file.get("startLine")?.as_u64().filter(|from| *from > 0)?;
    let lines = file.get("numLines")?.as_u64()?;
    let of = file.get("totalLines").and_then(Value::as_u64);
    // Of an empty file there is no line to show.
    let to = from.checked_add(lines)?.checked_sub(1).filter(|to| *to >= from)?;
    Some(Seen { path: path.to_owned(), from, to, of })
}

fn is_background(response: &Map<String, Value>) -> bool {
    let named = |name: &str| response.get(name).and_then(Value::as_str);
    named("backgroundTaskId").is_some() || named("status") == Some("async_launched")
}

/// The text of an item of a list that is text.
fn item_text(item: &Value) -> Option<&str> {
    let is_text = item.get("type").and_then(Value::as_str) == Some("text");
    item.get("text").and_then(Value::as_str).filter(|_| is_text)
}

/// A result as text; there is nothing to say of an empty one. A list of nothing but
/// texts, as MCP tools give it, is what they say.
pub(super) fn text_of(value: Value) -> Option<String> {
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

    /// What a response says, as it stands in an event, without a status that says nothing new.
    fn finished(tool: &str, response: Value) -> Value {
        let mut event = ToolFinished { status: Status::Ok, ..ToolFinished::default() };
        returned(tool, response, &mut event);
        let is_ok = event.status == Status::Ok;
        let mut event = serde_json::to_value(event).unwrap();
        if is_ok {
            event.as_object_mut().unwrap().remove("status");
        }
        event
    }

    #[test]
    fn a_command_gives_what_it_printed() {
        let response = json!({"stdout": "out", "stderr": "err", "interrupted": false});
        assert_eq!(finished("Bash", response), json!({"exit_code": 0, "result": "out\nerr"}));
        let broken_off = json!({"stdout": "", "stderr": "", "interrupted": true});
        assert_eq!(finished("Bash", broken_off), json!({"status": "cancelled", "result": ""}));
        let left = json!({"stdout": "", "stderr": "", "backgroundTaskId": "b1"});
        assert_eq!(finished("Bash", left), json!({"background": true, "result": ""}));
        // `grep` that finds nothing: the client explains the exit status away.
        let explained =
            json!({"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"});
        assert_eq!(finished("Bash", explained), json!({"result": ""}));
    }

    #[test]
    fn a_read_gives_the_lines_that_were_shown() {
        let file = json!({"filePath": "/w/a", "content": "x\n", "numLines": 500, "startLine": 1, "totalLines": 900});
        let event = finished("Read", json!({"type": "text", "file": file}));
        let seen = json!([{"path": "/w/a", "from": 1, "to": 500, "of": 900}]);
        assert_eq!(event, json!({"seen": seen, "result": "x\n"}));
        let file = json!({"filePath": "/w/a", "numLines": 9, "startLine": 1});
        assert_eq!(finished("mcp__x__y", json!({"file": file})).get("seen"), None);
    }

    #[test]
    fn a_read_of_odd_shape_shows_nothing() {
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
    fn a_written_file_is_not_kept_twice() {
        let response =
            json!({"type": "update", "filePath": "/w/a", "content": "long", "originalFile": "old"});
        let text = json!({"type": "update", "filePath": "/w/a"}).to_string();
        let event = finished("Write", response);
        let kept: Value = serde_json::from_str(event["result"].as_str().unwrap()).unwrap();
        assert_eq!(kept, serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn a_list_of_texts_is_what_they_say() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let of = |items: Value| finished("mcp__a__b", items)["result"].clone();
        assert_eq!(of(json!([text("{\"n\":3}"), text("b")])), json!("{\"n\":3}\nb"));
        let mixed = json!([text("a"), {"type": "image"}]);
        assert_eq!(of(mixed.clone()), json!(mixed.to_string()));
    }

    #[test]
    fn exit_codes_are_numbers_or_nothing() {
        assert_eq!(exit_code("Exit code 3"), Some(3));
        assert_eq!(exit_code("Exit code 127\nsh: x: not found"), Some(127));
        assert_eq!(exit_code("Exit code "), None);
        assert_eq!(exit_code("Permission denied"), None);
    }
}
