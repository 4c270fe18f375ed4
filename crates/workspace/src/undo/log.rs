//! The log itself: a line a step, each of them on the disk before the step is made.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Image, UndoError, kept};

const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// What was at a path, and the number of its copy.
    Before { path: String, image: Image, copy: usize },
    /// What will be at a path, and the name of a file beside it that holds it first.
    Becomes {
        path: String,
        image: Image,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temporary: Option<String>,
    },
    /// Its attempt is done.
    Committed,
    /// Its attempt is undone.
    RolledBack,
}

#[derive(Serialize, Deserialize)]
struct Head {
    undo: u32,
    root: PathBuf,
}

#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// Makes a log where there is none.
    pub(super) fn create(directory: &Path, root: &Path) -> Result<Self, UndoError> {
        let mut made = fs::DirBuilder::new();
        made.recursive(true).mode(0o700).create(directory).map_err(kept("making", directory))?;
        let path = directory.join("log");
        let opened = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(kept("making", &path))?;
        let mut log = Self { file, path };
        log.line(&Head { undo: VERSION, root: root.to_owned() })?;
        // The log has to be found after a crash, too.
        for directory in [Some(directory), directory.parent()].into_iter().flatten() {
            let synced = File::open(directory).and_then(|opened| opened.sync_all());
            synced.map_err(kept("syncing", directory))?;
        }
        Ok(log)
    }

    /// Opens a log that is there.
    pub(super) fn open(directory: &Path) -> Result<Self, UndoError> {
        let path = directory.join("log");
        let file = OpenOptions::new().append(true).open(&path).map_err(kept("opening", &path))?;
        Ok(Self { file, path })
    }

    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), UndoError> {
        self.line(entry)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), UndoError> {
        let mut line = serde_json::to_vec(value)
            .map_err(|error| kept("writing", &self.path)(std::io::Error::other(error)))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(kept("writing", &self.path))
    }

    /// Reads a log: the workspace it is about, and its lines. A last line that was cut
    /// off tells of a step that was not made.
    pub(super) fn read(directory: &Path) -> Result<(PathBuf, Vec<Entry>), UndoError> {
        let path = directory.join("log");
        let text = fs::read(&path).map_err(kept("reading", &path))?;
        let unknown = || UndoError::Unknown { path: path.display().to_string() };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = text.get(..whole).unwrap_or_default();
        let mut lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let head = lines.next().ok_or_else(unknown)?;
        let head: Head = serde_json::from_slice(head).map_err(|_| unknown())?;
        if head.undo != VERSION {
            return Err(unknown());
        }
        let entries: Result<Vec<Entry>, _> = lines.map(serde_json::from_slice).collect();
        Ok((head.root, entries.map_err(|_| unknown())?))
    }
}
