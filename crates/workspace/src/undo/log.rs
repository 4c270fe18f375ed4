//! The undo log: one line per step, synced to disk before the step is made.
//!
//! The log of an attempt has one writer. The log of client calls is shared: every process appends
//! its lines with one write each, and an incomplete line must not damage the next ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{PathImage, UndoError, storage_error};

const VERSION: u32 = 1;

/// One line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UndoLogEntry {
    /// The previous state of a path, and the number of its copy.
    Before {
        path: String,
        image: PathImage,
        copy: usize,
        #[serde(default, skip_serializing_if = "is_zero")]
        bytes: u64,
        /// The text itself, if it is short. Then there is no copy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// The state of a path that another program changed in between. This state is the one to
    /// restore.
    Moved { path: String, image: PathImage, copy: usize, bytes: u64 },
    /// The file of a path was not copied, with the reason.
    NotKept { path: String, why: String },
    /// The new state of a path, and the name of the temporary file next to it.
    Becomes {
        path: String,
        image: PathImage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temporary: Option<String>,
    },
    /// The attempt was committed.
    Committed,
    /// The attempt was rolled back.
    RolledBack,
}

#[derive(Serialize, Deserialize)]
struct UndoLogHeader {
    undo: u32,
    root: PathBuf,
    /// Whether several processes write to the log.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// The contents of a log.
pub(super) struct UndoLogContents {
    /// The workspace of the log.
    pub(super) root: PathBuf,
    pub(super) entries: Vec<UndoLogEntry>,
    /// How many lines can't be parsed.
    pub(super) unreadable: usize,
    /// Whether the log is full, so that later calls were not recorded.
    pub(super) is_full: bool,
    /// Where the log ends, unless several processes write to it.
    ends_at: Option<u64>,
}

/// How many numbers are tried for a new file.
const NUMBER_TRIES_MAX: usize = 64;

/// The largest shared log. It is read at every call, so it must stay small.
pub(super) const SHARED_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct UndoLog {
    file: File,
    path: PathBuf,
    /// The position of the next line, in a log with one writer.
    preallocated: Option<PreallocatedTail>,
}

/// Zeros after the last line. Overwriting existing bytes syncs twice as fast as making the file
/// longer.
#[derive(Debug, Default)]
struct PreallocatedTail {
    next_at: u64,
    ends_at: u64,
}

/// How many zeros are added at least and at most.
const PREALLOCATED_BYTES: (u64, u64) = (16 << 10, 1 << 20);

impl PreallocatedTail {
    fn write(&mut self, file: &File, mut text: Vec<u8>) -> io::Result<()> {
        let at = self.next_at;
        self.next_at += text.len() as u64;
        if self.next_at > self.ends_at {
            self.ends_at =
                self.next_at + self.next_at.clamp(PREALLOCATED_BYTES.0, PREALLOCATED_BYTES.1);
            text.resize(usize::try_from(self.ends_at - at).map_err(io::Error::other)?, 0);
        }
        file.write_all_at(&text, at)
    }
}

impl UndoLog {
    /// Creates a new log.
    pub(super) fn create(directory: &Path, root: &Path) -> Result<Self, UndoError> {
        make_directory(directory)?;
        let path = directory.join("log");
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(storage_error("making", &path))?;
        let mut log = Self { file, path, preallocated: Some(PreallocatedTail::default()) };
        log.append_all(&[UndoLogHeader { undo: VERSION, root: root.to_owned(), shared: false }])?;
        sync_directories(directory)?;
        Ok(log)
    }

    /// Opens a shared log, or creates it if it is missing.
    pub(super) fn open_shared(directory: &Path, root: &Path) -> Result<Self, UndoError> {
        let path = directory.join("log");
        if path.exists() {
            return Self::open(directory);
        }
        make_directory(directory)?;
        // The log appears together with its first line, or not at all.
        let draft = directory.join(format!("log.{}", reserve_number(directory, "log.", 0)?));
        let opened = OpenOptions::new().append(true).open(&draft);
        let file = opened.map_err(storage_error("making", &draft))?;
        let mut log = Self { file, path: draft, preallocated: None };
        log.append_all(&[UndoLogHeader { undo: VERSION, root: root.to_owned(), shared: true }])?;
        match fs::hard_link(&log.path, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(storage_error("making", &path)(error));
            }
            _ => {}
        }
        let _ = fs::remove_file(&log.path);
        sync_directories(directory)?;
        Self::open(directory)
    }

    /// Opens an existing log.
    pub(super) fn open(directory: &Path) -> Result<Self, UndoError> {
        let path = directory.join("log");
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(storage_error("opening", &path))?;
        Ok(Self { file, path, preallocated: None })
    }

    /// Opens a log that was read, to append after its last line.
    pub(super) fn open_to_continue(
        directory: &Path,
        contents: &UndoLogContents,
    ) -> Result<Self, UndoError> {
        let log = Self::open(directory)?;
        if let Some(ends) = contents.ends_at {
            log.file.set_len(ends).map_err(storage_error("writing", &log.path))?;
        }
        Ok(log)
    }

    pub(super) fn append(&mut self, entry: &UndoLogEntry) -> Result<(), UndoError> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// Appends lines in one write. If another process left an incomplete line, ends it first.
    pub(super) fn append_all(&mut self, values: &[impl Serialize]) -> Result<(), UndoError> {
        let mut text = Vec::new();
        let metadata = self.file.metadata().map_err(storage_error("looking at", &self.path))?;
        if metadata.nlink() == 0 {
            return Err(storage_error("writing", &self.path)(io::ErrorKind::NotFound.into()));
        }
        let bytes = metadata.len();
        let mut last = [b'\n'];
        if self.preallocated.is_none()
            && bytes > 0
            && self.file.read_exact_at(&mut last, bytes - 1).is_ok()
            && last != *b"\n"
        {
            text.push(b'\n');
        }
        for value in values {
            serde_json::to_writer(&mut text, value)
                .map_err(|error| storage_error("writing", &self.path)(io::Error::other(error)))?;
            text.push(b'\n');
        }
        let written = match &mut self.preallocated {
            Some(room) => room.write(&self.file, text),
            None => self.file.write_all(&text),
        };
        written.and_then(|()| self.file.sync_data()).map_err(storage_error("writing", &self.path))
    }

    /// Ends the log: removes the zeros after the last line.
    pub(super) fn trim(self) {
        if let Some(room) = self.preallocated {
            let _ = self.file.set_len(room.next_at);
        }
    }

    /// The complete text of the log.
    pub(super) fn read_text(&self) -> Result<Vec<u8>, UndoError> {
        fs::read(&self.path).map_err(storage_error("reading", &self.path))
    }

    /// Reads a log. An incomplete last line belongs to a step that was not made. So does a last
    /// line with zeros, of which only some blocks reached the disk.
    pub(super) fn read(directory: &Path) -> Result<UndoLogContents, UndoError> {
        let path = directory.join("log");
        let text = fs::read(&path).map_err(storage_error("reading", &path))?;
        let unknown = || UndoError::UnknownFormat { path: path.display().to_string() };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = text.get(..whole).unwrap_or_default();
        let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|line| line.contains(&0)) {
            lines.pop();
        }
        let ends = lines.iter().map(|line| line.len() as u64).sum();
        let mut lines = lines.into_iter().filter(|line| *line != b"\n");
        let head = lines.next().ok_or_else(unknown)?;
        let head: UndoLogHeader = serde_json::from_slice(head).map_err(|_| unknown())?;
        if head.undo != VERSION {
            return Err(unknown());
        }
        let is_full = head.shared && text.len() as u64 >= SHARED_BYTES_MAX;
        let (mut entries, mut unreadable) = (Vec::new(), 0);
        for line in lines {
            match serde_json::from_slice(line) {
                Ok(entry) => entries.push(entry),
                // A process was killed while it wrote the line, and another one continued after it.
                Err(_) if head.shared => unreadable += 1,
                Err(_) => return Err(unknown()),
            }
        }
        let ends = (!head.shared).then_some(ends);
        Ok(UndoLogContents { root: head.root, entries, unreadable, is_full, ends_at: ends })
    }
}

/// Creates a file with this name prefix and a number that no other process uses. Returns the
/// number.
pub(super) fn reserve_number(
    directory: &Path,
    beginning: &str,
    from: usize,
) -> Result<usize, UndoError> {
    for number in from..from + NUMBER_TRIES_MAX {
        let path = directory.join(format!("{beginning}{number}"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => return Ok(number),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(storage_error("making", &path)(error)),
        }
    }
    Err(storage_error("making", directory)(io::ErrorKind::AlreadyExists.into()))
}

fn make_directory(directory: &Path) -> Result<(), UndoError> {
    let mut made = fs::DirBuilder::new();
    made.recursive(true).mode(0o700).create(directory).map_err(storage_error("making", directory))
}

/// Syncs the directories, so that the log is found after a crash.
fn sync_directories(directory: &Path) -> Result<(), UndoError> {
    for directory in [Some(directory), directory.parent()].into_iter().flatten() {
        let synced = File::open(directory).and_then(|opened| opened.sync_all());
        synced.map_err(storage_error("syncing", directory))?;
    }
    Ok(())
}
