//! What calls of the workspace's tools are about to write, kept so that a person can undo it.
//!
//! This observes: what can't be kept is written down, and holds up no call.

use std::path::{Path, PathBuf};

use jackline_workspace::undo::{UndoError, calls};
use jackline_workspace::{EDIT_FILE, WRITE_FILE};
use serde_json::Value;

/// Where what files were is kept.
pub(crate) struct Undoing {
    directory: PathBuf,
    root: PathBuf,
}

impl Undoing {
    /// For the calls of a session, whose directory this is, in a workspace.
    pub(crate) fn new(directory: &Path, root: &Path) -> Self {
        let directory = directory.join("undo").join("calls");
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self { directory, root }
    }

    /// Makes a call, and keeps what the file was that it writes; `note` is told what could
    /// not be kept.
    pub(crate) fn around<T>(
        &self,
        tool: &str,
        args: &Value,
        note: &mut dyn FnMut(String),
        call: impl FnOnce() -> T,
    ) -> T {
        let Some(path) = self.written(tool, args) else { return call() };
        let mut tell = |kept: Result<(), UndoError>| {
            if let Err(error) = kept {
                note(format!("`{}` can't be undone: {error}", path.display()));
            }
        };
        tell(calls::before(&self.directory, &path, |now| becomes(tool, args, now)));
        let done = call();
        tell(calls::after(&self.directory, &path));
        done
    }

    /// The file that a call writes, where the tool could write it: nothing is kept of what
    /// lies elsewhere.
    fn written(&self, tool: &str, args: &Value) -> Option<PathBuf> {
        if !matches!(tool, WRITE_FILE | EDIT_FILE) {
            return None;
        }
        let path = calls::plain(&self.root.join(args.get("path")?.as_str()?))?;
        // As much of it as is there says where it really lies.
        let real = path.ancestors().find_map(|part| part.canonicalize().ok())?;
        real.starts_with(&self.root).then_some(path)
    }
}

/// What a call makes of a file that holds this now.
fn becomes(tool: &str, args: &Value, now: Option<&[u8]>) -> Option<Vec<u8>> {
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
    fn nothing_is_kept_of_what_lies_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (root, state) = (place.join("work"), place.join("state"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&state).unwrap();
        fs::write(place.join("key"), "PRIVATE").unwrap();
        std::os::unix::fs::symlink(place.join("key"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&place, root.join("out")).unwrap();
        let undoing = Undoing::new(&state, &root);
        let outside = place.join("key").display().to_string();
        for path in ["../key", &outside, "link", "out/key", "a/../../key"] {
            let args = json!({ "path": path, "content": "x" });
            let mut note = |text: String| panic!("{text}");
            undoing.around("write_file", &args, &mut note, || ());
            assert!(!state.join("undo").exists(), "{path}");
        }
        let args = json!({ "path": "new/a.txt", "content": "x" });
        undoing.around("write_file", &args, &mut |text| panic!("{text}"), || ());
        assert!(state.join("undo/calls/log").exists());
    }

    #[test]
    fn what_can_not_be_kept_is_told_and_the_call_is_made() {
        let place = tempfile::tempdir().unwrap();
        let (root, state) = (place.path().join("work"), place.path().join("state"));
        fs::create_dir_all(&root).unwrap();
        // A file is where the directory has to be.
        fs::write(&state, "").unwrap();
        let undoing = Undoing::new(&state, &root);
        let args = json!({ "path": "a.txt", "content": "x" });
        let mut told = Vec::new();
        assert!(undoing.around("write_file", &args, &mut |text| told.push(text), || true));
        let [one] = &told[..] else { panic!("{told:?}") };
        assert!(one.contains("a.txt` can't be undone: "), "{one}");
    }
}
