//! Helpers for reading transcripts: open a regular file, and read values that may have any type.
//!
//! The client writes these files for itself and may change their format. A field that is missing or
//! has another type is treated as absent.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A value that may be of any type.
pub(super) type OptionalRaw<'a> = Option<&'a RawValue>;

/// Opens a regular file, without blocking: a pipe without a writer would block the gate forever.
pub(super) fn open_regular_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// The value, if it has this type.
pub(super) fn parse_raw<'a, T: Deserialize<'a>>(raw: OptionalRaw<'a>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// The text, if the value is a string.
pub(super) fn raw_text(raw: OptionalRaw<'_>) -> Option<String> {
    parse_raw(raw)
}

/// Whether the value is `true`.
pub(super) fn raw_flag(raw: OptionalRaw<'_>) -> bool {
    parse_raw(raw) == Some(true)
}
