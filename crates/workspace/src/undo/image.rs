//! What is at a path: looked at, copied away, and put back.

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

use super::{KEPT_BYTES_MAX, UndoError, kept};
use crate::jail::{Jail, kind, kind_name};

/// How long a text may be that stands in the log itself: what is written there is on the
/// disk with its line, and needs no file of its own.
const TEXT_BYTES_MAX: u64 = 16 << 10;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Image {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// What is in it.
        digest: Digest,
        /// Who may do what with it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// When it was written, where that matters: seconds and nanoseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified: Option<(i64, i64)>,
    },
    /// A symbolic link.
    Link {
        /// The bytes of where it points to.
        target: Vec<u8>,
    },
    /// A directory.
    Directory {
        /// Who may do what with it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
}

impl Image {
    /// A file with these contents.
    pub fn of(content: &[u8]) -> Self {
        Self::File { digest: Digest::of(content), mode: None, modified: None }
    }

    /// Whether two looks are of the same thing, as far as both know it. When a file
    /// was written is no part of what it is.
    pub(super) fn is_like(&self, other: &Self) -> bool {
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

/// Looks at a path.
pub(super) fn look(jail: &Jail, path: &str) -> Result<Image, UndoError> {
    let (parent, name) = split(path);
    let failed = |errno: Errno| kept("looking at", Path::new(path))(errno.into());
    match jail.open_walked(Path::new(parent)) {
        Ok(parent) => image(&parent, name, path, None),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(Image::Missing),
        Err(errno) => Err(failed(errno)),
    }
}

/// Looks at a path, and copies what is there.
pub(super) fn keep(jail: &Jail, path: &str, copy: &Path) -> Result<Image, UndoError> {
    let (parent, name) = split(path);
    match jail.open_walked(Path::new(parent)) {
        Ok(parent) => image(&parent, name, path, Some(copy)),
        Err(Errno::NOENT) => Ok(Image::Missing),
        Err(errno) => Err(kept("looking at", Path::new(path))(errno.into())),
    }
}

/// The text of a file that is as it was looked at, where that is short.
pub(super) fn short_text(jail: &Jail, path: &str) -> Option<(Image, String)> {
    let (parent, name) = split(path);
    let parent = jail.open_walked(Path::new(parent)).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(&parent, name, flags, Mode::empty()).ok()?;
    let look = fstat(&opened).ok().filter(|look| kind(look) == FileType::RegularFile)?;
    let mut bytes = Vec::new();
    File::from(opened).take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let digest = Digest::of(text.as_bytes());
    let (mode, modified) = (Some(look.st_mode & 0o7777), Some(modified(&look)));
    (text.len() as u64 <= TEXT_BYTES_MAX).then_some((Image::File { digest, mode, modified }, text))
}

pub(super) fn split(path: &str) -> (&str, &OsStr) {
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    (parent, OsStr::new(name))
}

fn image(
    parent: &OwnedFd,
    name: &OsStr,
    path: &str,
    copy: Option<&Path>,
) -> Result<Image, UndoError> {
    let failed = |errno: Errno| kept("looking at", Path::new(path))(errno.into());
    let look = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Image::Missing),
        look => look.map_err(failed)?,
    };
    let mode = Some(look.st_mode & 0o7777);
    match kind(&look) {
        FileType::Directory => Ok(Image::Directory { mode }),
        FileType::Symlink => {
            let target = readlinkat(parent, name, Vec::new()).map_err(failed)?;
            Ok(Image::Link { target: target.into_bytes() })
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let opened = openat(parent, name, flags, Mode::empty()).map_err(failed)?;
            let look = fstat(&opened).map_err(failed)?;
            if kind(&look) != FileType::RegularFile {
                return Err(not_keepable(path, "is no file any more"));
            }
            let bytes = u64::try_from(look.st_size).unwrap_or(0);
            if copy.is_some() && bytes > KEPT_BYTES_MAX {
                return Err(not_keepable(path, "is too large to be kept"));
            }
            let digest = read(File::from(opened), bytes, copy)
                .map_err(kept("keeping", copy.unwrap_or(Path::new(path))))?;
            Ok(Image::File { digest, mode, modified: Some(modified(&look)) })
        }
        other => Err(not_keepable(path, kind_name(other))),
    }
}

fn not_keepable(path: &str, why: &'static str) -> UndoError {
    let why = if why.starts_with("is") { why } else { "is neither file, directory nor link" };
    UndoError::NotKeepable { path: path.to_owned(), why }
}

fn modified(look: &Stat) -> (i64, i64) {
    (look.st_mtime, i64::try_from(look.st_mtime_nsec).unwrap_or(0))
}

/// Reads a file of about so many bytes to its end, and copies it durably where that is wanted.
fn read(mut from: File, bytes: u64, copy: Option<&Path>) -> io::Result<Digest> {
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

/// Removes a file of ours beside a path, if it is there.
pub(super) fn remove_beside(jail: &Jail, path: &str, name: &str) {
    if let Ok(parent) = jail.open_walked(Path::new(split(path).0)) {
        let _ = unlinkat(&parent, name, AtFlags::empty());
    }
}

/// Makes sure that what was done to names in directories outlives the machine.
pub(super) fn sync_parents<'p>(
    jail: &Jail,
    paths: impl Iterator<Item = &'p str>,
) -> Result<(), UndoError> {
    let parents: BTreeSet<&str> = paths.map(|path| split(path).0).collect();
    for parent in parents {
        // One that was made by the attempt may be gone with it.
        if let Ok(opened) = jail.open_walked(Path::new(parent)) {
            fsync(&opened).map_err(|errno| kept("syncing", Path::new(parent))(errno.into()))?;
        }
    }
    Ok(())
}
