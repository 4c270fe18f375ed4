//! The log itself: a line a step, each of them on the disk before the step is made.
//!
//! That of an attempt has one writer. That of calls is shared: every process adds lines of
//! its own, in one write each, and one that was cut off must not spoil those behind it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Image, UndoError, kept};

const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// What was at a path, and the number of its copy.
    Before {
        path: String,
        image: Image,
        copy: usize,
        #[serde(default, skip_serializing_if = "is_zero")]
        bytes: u64,
        /// The text itself, where it is short: then there is no copy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// What somebody else has made of a path meanwhile: that is to be put back now.
    Moved { path: String, image: Image, copy: usize, bytes: u64 },
    /// What was at a path is not kept, and why.
    NotKept { path: String, why: String },
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
    /// Whether several processes write into it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// What a log tells.
pub(super) struct Told {
    /// The workspace it is about.
    pub(super) root: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// Lines that nobody can read.
    pub(super) unreadable: usize,
    /// Whether nothing more was written into it.
    pub(super) is_full: bool,
    /// Where it ends, unless several processes write into it.
    ends: Option<u64>,
}

/// How often another number is tried for a file.
const NUMBERS_MAX: usize = 64;

/// How long a shared log may be: it is read with every call.
pub(super) const SHARED_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    /// Where the next line goes, in a log with one writer.
    room: Option<Room>,
}

/// Zeros ahead of the next line. To write over what the file has already is on the disk in half
/// the time that it takes to make the file longer.
#[derive(Debug, Default)]
struct Room {
    next: u64,
    end: u64,
}

/// How much room is made at least, and at most.
const ROOM_BYTES: (u64, u64) = (16 << 10, 1 << 20);

impl Room {
    fn write(&mut self, file: &File, mut text: Vec<u8>) -> io::Result<()> {
        let at = self.next;
        self.next += text.len() as u64;
        if self.next > self.end {
            self.end = self.next + self.next.clamp(ROOM_BYTES.0, ROOM_BYTES.1);
            text.resize(usize::try_from(self.end - at).map_err(io::Error::other)?, 0);
        }
        file.write_all_at(&text, at)
    }
}

impl Log {
    /// Makes a log where there is none.
    pub(super) fn create(directory: &Path, root: &Path) -> Result<Self, UndoError> {
        make(directory)?;
        let path = directory.join("log");
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(kept("making", &path))?;
        let mut log = Self { file, path, room: Some(Room::default()) };
        log.lines(&[Head { undo: VERSION, root: root.to_owned(), shared: false }])?;
        sync_to_be_found(directory)?;
        Ok(log)
    }

    /// Opens a log that others write into as well, and makes it where there is none.
    pub(super) fn share(directory: &Path, root: &Path) -> Result<Self, UndoError> {
        let path = directory.join("log");
        if path.exists() {
            return Self::open(directory);
        }
        make(directory)?;
        // It is there with its first line, or not at all.
        let draft = directory.join(format!("log.{}", reserve(directory, "log.", 0)?));
        let opened = OpenOptions::new().append(true).open(&draft);
        let file = opened.map_err(kept("making", &draft))?;
        let mut log = Self { file, path: draft, room: None };
        log.lines(&[Head { undo: VERSION, root: root.to_owned(), shared: true }])?;
        match fs::hard_link(&log.path, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(kept("making", &path)(error));
            }
            _ => {}
        }
        let _ = fs::remove_file(&log.path);
        sync_to_be_found(directory)?;
        Self::open(directory)
    }

    /// Opens a log that is there.
    pub(super) fn open(directory: &Path) -> Result<Self, UndoError> {
        let path = directory.join("log");
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(kept("opening", &path))?;
        Ok(Self { file, path, room: None })
    }

    /// Opens a log that was read, to go on behind its last line.
    pub(super) fn go_on(directory: &Path, told: &Told) -> Result<Self, UndoError> {
        let log = Self::open(directory)?;
        if let Some(ends) = told.ends {
            log.file.set_len(ends).map_err(kept("writing", &log.path))?;
        }
        Ok(log)
    }

    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), UndoError> {
        self.lines(std::slice::from_ref(entry))
    }

    /// Adds lines at once. One that an earlier process has left unfinished is ended first.
    pub(super) fn lines(&mut self, values: &[impl Serialize]) -> Result<(), UndoError> {
        let mut text = Vec::new();
        let look = self.file.metadata().map_err(kept("looking at", &self.path))?;
        if look.nlink() == 0 {
            return Err(kept("writing", &self.path)(io::ErrorKind::NotFound.into()));
        }
        let bytes = look.len();
        let mut last = [b'\n'];
        if self.room.is_none()
            && bytes > 0
            && self.file.read_exact_at(&mut last, bytes - 1).is_ok()
            && last != *b"\n"
        {
            text.push(b'\n');
        }
        for value in values {
            serde_json::to_writer(&mut text, value)
                .map_err(|error| kept("writing", &self.path)(io::Error::other(error)))?;
            text.push(b'\n');
        }
        let written = match &mut self.room {
            Some(room) => room.write(&self.file, text),
            None => self.file.write_all(&text),
        };
        written.and_then(|()| self.file.sync_data()).map_err(kept("writing", &self.path))
    }

    /// Nothing is written behind the last line any more.
    pub(super) fn end(self) {
        if let Some(room) = self.room {
            let _ = self.file.set_len(room.next);
        }
    }

    /// All that is in it, as text.
    pub(super) fn text(&self) -> Result<Vec<u8>, UndoError> {
        fs::read(&self.path).map_err(kept("reading", &self.path))
    }

    /// Reads a log. A last line that was cut off tells of a step that was not made; so does
    /// one of which only some blocks have reached the disk, and others are still zeros.
    pub(super) fn read(directory: &Path) -> Result<Told, UndoError> {
        let path = directory.join("log");
        let text = fs::read(&path).map_err(kept("reading", &path))?;
        let unknown = || UndoError::Unknown { path: path.display().to_string() };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = text.get(..whole).unwrap_or_default();
        let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|line| line.contains(&0)) {
            lines.pop();
        }
        let ends = lines.iter().map(|line| line.len() as u64).sum();
        let mut lines = lines.into_iter().filter(|line| *line != b"\n");
        let head = lines.next().ok_or_else(unknown)?;
        let head: Head = serde_json::from_slice(head).map_err(|_| unknown())?;
        if head.undo != VERSION {
            return Err(unknown());
        }
        let is_full = head.shared && text.len() as u64 >= SHARED_BYTES_MAX;
        let (mut entries, mut unreadable) = (Vec::new(), 0);
        for line in lines {
            match serde_json::from_slice(line) {
                Ok(entry) => entries.push(entry),
                // A process ended in the middle of it, and another went on behind.
                Err(_) if head.shared => unreadable += 1,
                Err(_) => return Err(unknown()),
            }
        }
        let ends = (!head.shared).then_some(ends);
        Ok(Told { root: head.root, entries, unreadable, is_full, ends })
    }
}

/// Takes a number, for a file with a beginning of its name, that no other process has.
pub(super) fn reserve(directory: &Path, beginning: &str, from: usize) -> Result<usize, UndoError> {
    for number in from..from + NUMBERS_MAX {
        let path = directory.join(format!("{beginning}{number}"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => return Ok(number),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(kept("making", &path)(error)),
        }
    }
    Err(kept("making", directory)(io::ErrorKind::AlreadyExists.into()))
}

fn make(directory: &Path) -> Result<(), UndoError> {
    let mut made = fs::DirBuilder::new();
    made.recursive(true).mode(0o700).create(directory).map_err(kept("making", directory))
}

/// The log has to be found after a crash, too.
fn sync_to_be_found(directory: &Path) -> Result<(), UndoError> {
    for directory in [Some(directory), directory.parent()].into_iter().flatten() {
        let synced = File::open(directory).and_then(|opened| opened.sync_all());
        synced.map_err(kept("syncing", directory))?;
    }
    Ok(())
}
