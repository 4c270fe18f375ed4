//! Finds the files that tools of Claude Code write.

use std::path::{Path, PathBuf};

use jackline_host::environment::home;
use jackline_workspace::undo::calls;
use serde_json::Value;

use super::hooks::ClaudeHook;
use crate::file_write::{FileChange, FileWrite, TextEdit};
use crate::payload::PayloadFields;

/// The client's tools that write a file, and the argument with the path.
const FILE_TOOLS: [(&str, &str); 4] = [
    ("Write", "file_path"),
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("NotebookEdit", "notebook_path"),
];

/// The file that a call writes, before the call runs or after it.
pub(super) fn file_write(hook: ClaudeHook, payload: &PayloadFields) -> Option<FileWrite> {
    let has_run = match hook {
        ClaudeHook::PreToolUse => false,
        // A failed call has written nothing. A change of the file then comes from another program.
        ClaudeHook::PostToolUse => true,
        _ => return None,
    };
    let tool = payload.peek_text("tool_name")?;
    let (_, key) = FILE_TOOLS.into_iter().find(|(name, _)| *name == tool)?;
    let input = payload.peek_any("tool_input")?;
    let written_path = input.get(key)?.as_str()?;
    let path = resolve_path(written_path, payload.peek_text("cwd"))?;
    Some(if has_run {
        FileWrite::after(path)
    } else {
        FileWrite::before(path, parse_change(tool, input))
    })
}

fn parse_change(tool: &str, input: &Value) -> FileChange {
    let edit = |edit: &Value| {
        let text = |key: &str| edit.get(key)?.as_str().map(ToOwned::to_owned);
        let everywhere = edit.get("replace_all") == Some(&Value::Bool(true));
        Some(TextEdit {
            old: text("old_string")?,
            new: text("new_string")?,
            replace_all: everywhere,
        })
    };
    let change = match tool {
        "Write" => input
            .get("content")
            .and_then(Value::as_str)
            .map(|content| FileChange::Replaced(content.to_owned())),
        "Edit" => edit(input).map(|edit| FileChange::Edited(vec![edit])),
        "MultiEdit" => input.get("edits").and_then(Value::as_array).and_then(|edits| {
            edits.iter().map(edit).collect::<Option<Vec<_>>>().map(FileChange::Edited)
        }),
        _ => None,
    };
    change.unwrap_or(FileChange::Unknown)
}

/// Resolves a path like the client: it makes the path absolute and resolves dots without reading
/// links.
fn resolve_path(path: &str, cwd: Option<&str>) -> Option<PathBuf> {
    let below_home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = match below_home {
        Some(rest) => home()?.join(rest.trim_start_matches('/')),
        None => Path::new(cwd.unwrap_or("/")).join(path),
    };
    calls::absolute_without_dots(&path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_resolved_like_the_client_resolves_them() {
        for (path, expected) in [
            ("/a/b", Some("/a/b")),
            ("/a/./x/../b", Some("/a/b")),
            ("b", Some("/w/b")),
            ("../b", Some("/b")),
            ("/../..", None),
            ("/", None),
            ("", Some("/w")),
        ] {
            assert_eq!(resolve_path(path, Some("/w")), expected.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn the_change_is_read_from_the_arguments() {
        let edit =
            |everywhere| TextEdit { old: "a".into(), new: "b".into(), replace_all: everywhere };
        let one = json!({"old_string": "a", "new_string": "b"});
        let all = json!({"old_string": "a", "new_string": "b", "replace_all": true});
        for (tool, input, expected) in [
            ("Write", json!({"content": "x"}), FileChange::Replaced("x".to_owned())),
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
            assert_eq!(parse_change(tool, &input), expected, "{tool}");
        }
    }
}
