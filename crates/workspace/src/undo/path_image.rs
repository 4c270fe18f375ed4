//! Reads, copies and compares the state of a path.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jackline_engine::Digest;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, fsync, openat, readlinkat, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{COPY_BYTES_MAX, UndoError, storage_error};
use crate::jail::{Jail, file_type, file_type_name};

/// The longest text that is stored in the log itself. Such a text is synced with its line and needs
/// no file.
const LOGGED_TEXT_BYTES_MAX: u64 = 16 << 10;

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PathImage {
    /// Nothing exists there.
    Missing,
    /// A regular file.
    File {
        /// The digest of the contents.
        digest: Digest,
        /// The permissions, if they are recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// The modification time in seconds and nanoseconds, if it matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified: Option<(i64, i64)>,
    },
    /// A symbolic link.
    Link {
        /// The target path as bytes.
        target: Vec<u8>,
    },
    /// A directory.
    Directory {
        /// The permissions, if they are recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
}

impl PathImage {
    /// A file with these contents.
    pub fn of_contents(content: &[u8]) -> Self {
        Self::File { digest: Digest::of(content), mode: None, modified: None }
    }

    /// Whether two states are the same, as far as both are recorded. The modification time is not
    /// compared.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let modes = |one: &Option<u32>, other: &Option<u32>| {
            one.zip(*other).is_none_or(|(one, other)| one == other)
        };
        match (self, other) {
            (Self::Missing, Self::Missing) => true,
            (Self::Link { target: one }, Self::Link { target: other }) => one == other,
            (Self::Directory { mode: one }, Self::Directory { mode: other }) => modes(one, other),
            (
                Self::File { digest, mode, .. },
                Self::File { digest: other, mode: other_mode, .. },
            ) => digest == other && modes(mode, other_mode),
            _ => false,
        }
    }
}

/// Reads the state of a path.
pub(super) fn read_image(jail: &Jail, path: &str) -> Result<PathImage, UndoError> {
    let (parent, name) = split_parent(path);
    let failed = |errno: Errno| storage_error("looking at", Path::new(path))(errno.into());
    match jail.open_without_links(Path::new(parent)) {
        Ok(parent) => read_image_at(&parent, name, path, None),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(PathImage::Missing),
        Err(errno) => Err(failed(errno)),
    }
}

/// Reads the state of a path and copies its file.
pub(super) fn copy_image(jail: &Jail, path: &str, copy: &Path) -> Result<PathImage, UndoError> {
    let (parent, name) = split_parent(path);
    match jail.open_without_links(Path::new(parent)) {
        Ok(parent) => read_image_at(&parent, name, path, Some(copy)),
        Err(Errno::NOENT) => Ok(PathImage::Missing),
        Err(errno) => Err(storage_error("looking at", Path::new(path))(errno.into())),
    }
}

/// The state and the text of a file, if the text is short.
pub(super) fn read_short_text(jail: &Jail, path: &str) -> Option<(PathImage, String)> {
    let (parent, name) = split_parent(path);
    let parent = jail.open_without_links(Path::new(parent)).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(&parent, name, flags, Mode::empty()).ok()?;
    let stat = fstat(&opened).ok().filter(|stat| file_type(stat) == FileType::RegularFile)?;
    let mut bytes = Vec::new();
    File::from(opened).take(LOGGED_TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let digest = Digest::of(text.as_bytes());
    let (mode, modified) = (Some(stat.st_mode & 0o7777), Some(modified_time(&stat)));
    (text.len() as u64 <= LOGGED_TEXT_BYTES_MAX)
        .then_some((PathImage::File { digest, mode, modified }, text))
}

pub(super) fn split_parent(path: &str) -> (&str, &OsStr) {
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    (parent, OsStr::new(name))
}

fn read_image_at(
    parent: &OwnedFd,
    name: &OsStr,
    path: &str,
    copy: Option<&Path>,
) -> Result<PathImage, UndoError> {
    let failed = |errno: Errno| storage_error("looking at", Path::new(path))(errno.into());
    let stat = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(PathImage::Missing),
        stat => stat.map_err(failed)?,
    };
    let mode = Some(stat.st_mode & 0o7777);
    match file_type(&stat) {
        FileType::Directory => Ok(PathImage::Directory { mode }),
        FileType::Symlink => {
            let target = readlinkat(parent, name, Vec::new()).map_err(failed)?;
            Ok(PathImage::Link { target: target.into_bytes() })
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let opened = openat(parent, name, flags, Mode::empty()).map_err(failed)?;
            let stat = fstat(&opened).map_err(failed)?;
            if file_type(&stat) != FileType::RegularFile {
                return Err(not_restorable(path, "is no longer a regular file"));
            }
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            if copy.is_some() && bytes > COPY_BYTES_MAX {
                return Err(not_restorable(path, "is too large to be copied"));
            }
            let digest = copy_and_digest(File::from(opened), bytes, copy)
                .map_err(storage_error("keeping", copy.unwrap_or(Path::new(path))))?;
            Ok(PathImage::File { digest, mode, modified: Some(modified_time(&stat)) })
        }
        other => Err(not_restorable(path, file_type_name(other))),
    }
}

fn not_restorable(path: &str, why: &'static str) -> UndoError {
    let why = if why.starts_with("is") { why } else { "is not a file, directory or link" };
    UndoError::NotRestorable { path: path.to_owned(), why }
}

fn modified_time(stat: &Stat) -> (i64, i64) {
    (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0))
}

/// Reads a file of about `bytes` bytes to its end, and copies it durably if a copy is given.
fn copy_and_digest(mut from: File, bytes: u64, copy: Option<&Path>) -> io::Result<Digest> {
    let mut to = match copy {
        Some(copy) => Some(
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(copy)?,
        ),
        None => None,
    };
    let mut hasher = Digest::hasher();
    let mut buffer = vec![0; usize::try_from(bytes + 1).unwrap_or(0).clamp(512, 128 << 10)];
    loop {
        let bytes = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let part = buffer.get(..bytes).unwrap_or_default();
        if part.is_empty() {
            break;
        }
        hasher.update(part);
        if let Some(to) = &mut to {
            to.write_all(part)?;
        }
    }
    if let Some(to) = to {
        to.sync_data()?;
    }
    Ok(hasher.finish())
}

/// Removes our temporary file next to a path, if it exists.
pub(super) fn remove_beside(jail: &Jail, path: &str, name: &str) {
    if let Ok(parent) = jail.open_without_links(Path::new(split_parent(path).0)) {
        let _ = unlinkat(&parent, name, AtFlags::empty());
    }
}

/// Syncs the parent directories, so that changed names survive a crash of the machine.
pub(super) fn sync_parents<'p>(
    jail: &Jail,
    paths: impl Iterator<Item = &'p str>,
) -> Result<(), UndoError> {
    let parents: BTreeSet<&str> = paths.map(|path| split_parent(path).0).collect();
    for parent in parents {
        // A directory that the attempt created may have been removed.
        if let Ok(opened) = jail.open_without_links(Path::new(parent)) {
            fsync(&opened)
                .map_err(|errno| storage_error("syncing", Path::new(parent))(errno.into()))?;
        }
    }
    Ok(())
}
