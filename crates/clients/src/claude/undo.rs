//! What the client's own tools are about to write, kept so that a person can undo it.
//!
//! This observes: it is done once the verdict is there, for tools that write files and
//! for no other, and what goes wrong with it is written down and changes no answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use jackline_engine::{Decision, FaultKind, SessionId, Verdict};
use jackline_runtime::{Outcome, Runtime, home, keep_fault};
use jackline_workspace::undo::calls;
use serde_json::Value;

use super::payload::{Hook, Payload};

/// The client's tools that write a file, and where they name it.
const TOOLS: [(&str, &str); 4] = [
    ("Write", "file_path"),
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("NotebookEdit", "notebook_path"),
];

/// A call that writes a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Writes {
    path: PathBuf,
    /// What it makes of the file, as far as its arguments say.
    becomes: Becomes,
    has_run: bool,
}

/// What a call makes of a file.
#[derive(Debug, Clone, PartialEq)]
enum Becomes {
    /// These contents.
    Content(String),
    /// The same with these parts replaced: what is there, what comes there, and whether
    /// everywhere.
    Edited(Vec<(String, String, bool)>),
    /// Nobody can say before it has run.
    Unknown,
}

impl Writes {
    /// What a payload says of a call that writes a file, before it runs and after.
    pub(crate) fn of(payload: &Payload) -> Option<Self> {
        let has_run = match payload.hook {
            Hook::PreToolUse => false,
            // One that failed has written nothing, and somebody else may have.
            Hook::PostToolUse => true,
            _ => return None,
        };
        let tool = payload.peek("tool_name")?;
        let (_, key) = TOOLS.into_iter().find(|(name, _)| *name == tool)?;
        let input = payload.peek_any("tool_input")?;
        let named = input.get(key)?.as_str()?;
        let path = plain(named, payload.peek("cwd"))?;
        let becomes = if has_run { Becomes::Unknown } else { Becomes::of(tool, input) };
        Some(Self { path, becomes, has_run })
    }

    /// Keeps what is there, or looks at what is there now.
    pub(crate) fn note(
        self,
        runtime: &mut Runtime,
        session: &SessionId,
        answer: (&Verdict, Outcome),
    ) {
        if !self.has_run && !may_run(answer) {
            return;
        }
        let Some(directory) = runtime.session_directory(session) else { return };
        let shown = self.path.display().to_string();
        let directory = directory.join("undo").join("calls");
        let noted = catch_unwind(AssertUnwindSafe(|| {
            if self.has_run {
                calls::after(&directory, &self.path)
            } else {
                calls::before(&directory, &self.path, |now| self.becomes.apply(now))
            }
        }));
        let why = match noted {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "an internal fault".to_owned(),
        };
        keep_fault(
            Some(session),
            FaultKind::Undo,
            &format!("`{shown}` can't be undone: {why}"),
            false,
        );
    }
}

/// Whether a call may run: where a person is asked, they may let it.
fn may_run((verdict, outcome): (&Verdict, Outcome)) -> bool {
    let held = [Decision::Deny, Decision::Pause, Decision::Stop];
    match outcome {
        Outcome::Decided => !held.iter().any(|decision| verdict.is_enforced(*decision)),
        Outcome::Passed => true,
        Outcome::Refused | Outcome::Broken => false,
    }
}

impl Becomes {
    fn of(tool: &str, input: &Value) -> Self {
        let edit = |edit: &Value| {
            let text = |key: &str| edit.get(key)?.as_str().map(ToOwned::to_owned);
            let all = edit.get("replace_all") == Some(&Value::Bool(true));
            Some((text("old_string")?, text("new_string")?, all))
        };
        let known = match tool {
            "Write" => input
                .get("content")
                .and_then(Value::as_str)
                .map(|content| Self::Content(content.to_owned())),
            "Edit" => edit(input).map(|edit| Self::Edited(vec![edit])),
            "MultiEdit" => input.get("edits").and_then(Value::as_array).and_then(|edits| {
                edits.iter().map(edit).collect::<Option<Vec<_>>>().map(Self::Edited)
            }),
            _ => None,
        };
        known.unwrap_or(Self::Unknown)
    }

    /// What a file becomes that holds this now.
    fn apply(self, now: Option<&[u8]>) -> Option<Vec<u8>> {
        match self {
            Self::Content(content) => Some(content.into_bytes()),
            Self::Edited(edits) => {
                let mut text = std::str::from_utf8(now.unwrap_or_default()).ok()?.to_owned();
                for (old, new, all) in edits {
                    text = match (old.is_empty(), all) {
                        // That makes a file, or fills an empty one.
                        (true, _) if text.is_empty() => new,
                        (true, _) => return None,
                        (false, true) => text.replace(&old, &new),
                        (false, false) => text.replacen(&old, &new, 1),
                    };
                }
                Some(text.into_bytes())
            }
            Self::Unknown => None,
        }
    }
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
    fn what_an_edit_makes_is_known_before_it_runs() {
        let edited = |tool: &str, input: Value, now: &str| {
            let made = Becomes::of(tool, &input).apply(Some(now.as_bytes()));
            made.map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let one = json!({"old_string": "a", "new_string": "b"});
        assert_eq!(edited("Edit", one, "aa").as_deref(), Some("ba"));
        let all = json!({"old_string": "a", "new_string": "b", "replace_all": true});
        assert_eq!(edited("Edit", all.clone(), "aa").as_deref(), Some("bb"));
        let then = json!({"old_string": "bb", "new_string": "c"});
        let both = json!({"edits": [all, then]});
        assert_eq!(edited("MultiEdit", both, "aa").as_deref(), Some("c"));
        let new = json!({"old_string": "", "new_string": "made"});
        assert_eq!(edited("Edit", new.clone(), "").as_deref(), Some("made"));
        assert_eq!(edited("Edit", new, "full"), None);
        assert_eq!(edited("Write", json!({"content": "x"}), "").as_deref(), Some("x"));
        assert_eq!(edited("NotebookEdit", json!({"new_source": "x"}), ""), None);
        assert_eq!(edited("Edit", json!({}), "a"), None);
    }
}
