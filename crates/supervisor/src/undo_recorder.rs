//! Stores the old contents of files before a tool call writes them, so that a person can undo it.
//!
//! This is best effort: if the contents can't be stored, a note is recorded and the call runs.

use std::path::{Path, PathBuf};

use jackline_workspace::undo::{UndoError, calls};
use jackline_workspace::{EDIT_FILE, WRITE_FILE};
use serde_json::Value;

/// Records the files that calls write.
pub(crate) struct UndoRecorder {
    directory: PathBuf,
    root: PathBuf,
}

impl UndoRecorder {
    /// A recorder for the calls of one session in a workspace.
    pub(crate) fn new(directory: &Path, root: &Path) -> Self {
        let directory = directory.join("undo").join("calls");
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self { directory, root }
    }

    /// Runs a call, and stores the file before and after it. `note` gets the errors.
    pub(crate) fn record_around<T>(
        &self,
        tool: &str,
        args: &Value,
        note: &mut dyn FnMut(String),
        call: impl FnOnce() -> T,
    ) -> T {
        let Some(path) = self.written_file(tool, args) else { return call() };
        let mut tell = |kept: Result<(), UndoError>| {
            if let Err(error) = kept {
                note(format!("`{}` can't be undone: {error}", path.display()));
            }
        };
        tell(calls::record_before_call(&self.directory, &path, |now| {
            contents_after(tool, args, now)
        }));
        let done = call();
        tell(calls::record_after_call(&self.directory, &path));
        done
    }

    /// The file that a call writes. `None` if the tool could not write it, because it is outside
    /// the workspace.
    fn written_file(&self, tool: &str, args: &Value) -> Option<PathBuf> {
        if !matches!(tool, WRITE_FILE | EDIT_FILE) {
            return None;
        }
        let path = calls::absolute_without_dots(&self.root.join(args.get("path")?.as_str()?))?;
        // The nearest existing ancestor shows where the file really is, after symbolic links.
        let real = path.ancestors().find_map(|part| part.canonicalize().ok())?;
        real.starts_with(&self.root).then_some(path)
    }
}

/// The contents of a file after a call; `now` are its current contents.
fn contents_after(tool: &str, args: &Value, now: Option<&[u8]>) -> Option<Vec<u8>> {
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    if tool == WRITE_FILE {
        return text("content").map(|content| content.as_bytes().to_vec());
    }
    let (old, new) = (text("old")?, text("new")?);
    let now = std::str::from_utf8(now?).ok()?;
    Some(now.replacen(old, new, 1).into_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn files_outside_the_workspace_are_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (root, state) = (dir.join("work"), dir.join("state"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&state).unwrap();
        fs::write(dir.join("key"), "PRIVATE").unwrap();
        std::os::unix::fs::symlink(dir.join("key"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&dir, root.join("out")).unwrap();
        let undoing = UndoRecorder::new(&state, &root);
        let outside = dir.join("key").display().to_string();
        for path in ["../key", &outside, "link", "out/key", "a/../../key"] {
            let args = json!({ "path": path, "content": "x" });
            let mut note = |text: String| panic!("{text}");
            undoing.record_around("write_file", &args, &mut note, || ());
            assert!(!state.join("undo").exists(), "{path}");
        }
        let args = json!({ "path": "new/a.txt", "content": "x" });
        undoing.record_around("write_file", &args, &mut |text| panic!("{text}"), || ());
        assert!(state.join("undo/calls/log").exists());
    }

    #[test]
    fn a_file_that_can_not_be_stored_is_reported_and_the_call_runs() {
        let dir = tempfile::tempdir().unwrap();
        let (root, state) = (dir.path().join("work"), dir.path().join("state"));
        fs::create_dir_all(&root).unwrap();
        // A file is in the place of the directory.
        fs::write(&state, "").unwrap();
        let undoing = UndoRecorder::new(&state, &root);
        let args = json!({ "path": "a.txt", "content": "x" });
        let mut notes = Vec::new();
        assert!(undoing.record_around("write_file", &args, &mut |text| notes.push(text), || true));
        let [one] = &notes[..] else { panic!("{notes:?}") };
        assert!(one.contains("a.txt` can't be undone: "), "{one}");
    }
}
