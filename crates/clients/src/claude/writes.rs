//! The tools of Claude Code that write a file.

use std::path::{Path, PathBuf};

use jackline_host::environment::home;
use jackline_workspace::undo::calls;
use serde_json::Value;

use super::hooks::ClaudeHook;
use crate::file_write::{FileChange, FileWrite, TextEdit};
use crate::payload::PayloadFields;

/// The client's tools that write a file, and the argument that names it.
const TOOLS: [(&str, &str); 4] = [
    ("Write", "file_path"),
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("NotebookEdit", "notebook_path"),
];

/// What a payload says of a call that writes a file, before it runs and after.
pub(super) fn file_write(hook: ClaudeHook, payload: &PayloadFields) -> Option<FileWrite> {
    let has_run = match hook {
        ClaudeHook::PreToolUse => false,
        // A call that failed has written nothing, and another program may have.
        ClaudeHook::PostToolUse => true,
        _ => return None,
    };
    let tool = payload.peek("tool_name")?;
    let (_, key) = TOOLS.into_iter().find(|(name, _)| *name == tool)?;
    let input = payload.peek_any("tool_input")?;
    let named = input.get(key)?.as_str()?;
    let path = plain(named, payload.peek("cwd"))?;
    Some(if has_run {
        FileWrite::after(path)
    } else {
        FileWrite::before(path, change(tool, input))
    })
}

fn change(tool: &str, input: &Value) -> FileChange {
    let edit = |edit: &Value| {
        let text = |key: &str| edit.get(key)?.as_str().map(ToOwned::to_owned);
        let everywhere = edit.get("replace_all") == Some(&Value::Bool(true));
        Some(TextEdit { old: text("old_string")?, new: text("new_string")?, everywhere })
    };
    let known = match tool {
        "Write" => input
            .get("content")
            .and_then(Value::as_str)
            .map(|content| FileChange::Content(content.to_owned())),
        "Edit" => edit(input).map(|edit| FileChange::Edited(vec![edit])),
        "MultiEdit" => input.get("edits").and_then(Value::as_array).and_then(|edits| {
            edits.iter().map(edit).collect::<Option<Vec<_>>>().map(FileChange::Edited)
        }),
        _ => None,
    };
    known.unwrap_or(FileChange::Unknown)
}

/// A path as the client takes it: absolute, and dots go by the text alone.
fn plain(named: &str, cwd: Option<&str>) -> Option<PathBuf> {
    let below_home =
        named.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let named = match below_home {
        Some(rest) => home()?.join(rest.trim_start_matches('/')),
        None => Path::new(cwd.unwrap_or("/")).join(named),
    };
    calls::plain(&named)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_taken_as_the_client_takes_them() {
        for (named, expected) in [
            ("/a/b", Some("/a/b")),
            ("/a/./x/../b", Some("/a/b")),
            ("b", Some("/w/b")),
            ("../b", Some("/b")),
            ("/../..", None),
            ("/", None),
            ("", Some("/w")),
        ] {
            assert_eq!(plain(named, Some("/w")), expected.map(PathBuf::from), "{named}");
        }
    }

    #[test]
    fn arguments_say_what_a_file_becomes() {
        let edit = |everywhere| TextEdit { old: "a".into(), new: "b".into(), everywhere };
        let one = json!({"old_string": "a", "new_string": "b"});
        let all = json!({"old_string": "a", "new_string": "b", "replace_all": true});
        for (tool, input, expected) in [
            ("Write", json!({"content": "x"}), FileChange::Content("x".to_owned())),
            ("Edit", one.clone(), FileChange::Edited(vec![edit(false)])),
            ("Edit", all.clone(), FileChange::Edited(vec![edit(true)])),
            (
                "MultiEdit",
                json!({"edits": [all, one]}),
                FileChange::Edited(vec![edit(true), edit(false)]),
            ),
            ("MultiEdit", json!({"edits": [{}]}), FileChange::Unknown),
            ("NotebookEdit", json!({"new_source": "x"}), FileChange::Unknown),
            ("Edit", json!({}), FileChange::Unknown),
        ] {
            assert_eq!(change(tool, &input), expected, "{tool}");
        }
    }
}
