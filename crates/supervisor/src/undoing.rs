//! What calls of the workspace's tools are about to write, kept so that a person can undo it.
//!
//! This observes: what can't be kept is written down, and holds up no call.

use std::path::{Path, PathBuf};

use jackline_engine::SessionId;
use jackline_runtime::keep_fault;
use jackline_workspace::undo::{UndoError, calls};
use serde_json::Value;

/// Where what files were is kept, and whose calls these are.
pub(crate) struct Undoing {
    directory: PathBuf,
    root: PathBuf,
    session: SessionId,
}

impl Undoing {
    /// For the calls of a session, whose directory this is.
    pub(crate) fn new(directory: &Path, root: &Path, session: SessionId) -> Self {
        let directory = directory.join("undo").join("calls");
        Self { directory, root: root.to_owned(), session }
    }

    /// Makes a call, and keeps what the file was that it writes.
    pub(crate) fn around<T>(&self, tool: &str, args: &Value, call: impl FnOnce() -> T) -> T {
        let Some(path) = self.written(tool, args) else { return call() };
        let known = calls::before(&self.directory, &path, |now| becomes(tool, args, now));
        self.note(&path, known);
        let done = call();
        self.note(&path, calls::after(&self.directory, &path));
        done
    }

    /// The file that a call writes.
    fn written(&self, tool: &str, args: &Value) -> Option<PathBuf> {
        if !matches!(tool, "write_file" | "edit_file") {
            return None;
        }
        calls::plain(&self.root.join(args.get("path")?.as_str()?))
    }

    fn note(&self, path: &Path, kept: Result<(), UndoError>) {
        if let Err(error) = kept {
            let reason = format!("`{}` can't be undone: {error}", path.display());
            keep_fault(Some(&self.session), "undo", &reason, false);
        }
    }
}

/// What a call makes of a file that holds this now.
fn becomes(tool: &str, args: &Value, now: Option<&[u8]>) -> Option<Vec<u8>> {
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    if tool == "write_file" {
        return text("content").map(|content| content.as_bytes().to_vec());
    }
    let (old, new) = (text("old")?, text("new")?);
    let now = std::str::from_utf8(now?).ok()?;
    Some(now.replacen(old, new, 1).into_bytes())
}
