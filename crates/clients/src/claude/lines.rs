//! What all who read transcripts need: a file that surely is one, and values
//! that may be anything.
//!
//! The client writes these files for itself and changes their shape as it likes.
//! So a field that is missing, or of another type, is just not there.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A value that may be of any type.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// Opens a regular file. Nothing else is waited for: a pipe that nobody writes
/// to would hold the gate for ever.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

/// The value, where it is of this type.
pub(super) fn read<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// The text, where it is one.
pub(super) fn text(raw: Raw<'_>) -> Option<String> {
    read(raw)
}

/// Whether it is true.
pub(super) fn flag(raw: Raw<'_>) -> bool {
    read(raw) == Some(true)
}
