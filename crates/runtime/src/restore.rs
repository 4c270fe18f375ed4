//! Restores protected files.
//!
//! While a protected file is unchanged, the store has a copy of its contents. If the file was
//! changed, the store also gets the changed version before the old one replaces it, so no version
//! is lost. Links are never followed: the target of a link is not the protected file.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::observe::Blob;
use jackline_journal::Store;
use rustix::fs::OFlags;

/// The largest file that the store takes.
const STORED_BYTES_MAX: u64 = 16 << 20;

/// The mode of a restored file if there was no file.
pub(crate) const PRIVATE_MODE: u32 = 0o600;

/// The permission that the owner always gets on a restored file.
const OWNER_READ_MODE: u32 = 0o400;

/// How many names are tried for a renamed file.
const ASIDE_MAX: u32 = 1000;

/// The original file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginalFile {
    /// There was no file.
    Missing,
    /// A file with these contents, of which the store has a copy.
    File(Digest),
}

/// The version that a restore has replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplacedVersion {
    /// Its digest in the store.
    pub sha256: Option<Digest>,
    /// Its new path, if the store can't take it, for example a directory or a huge file.
    pub renamed_to: Option<PathBuf>,
}

/// Stores the contents of a file, and returns their digest.
pub fn store_file(store: &dyn Store, path: &Path) -> io::Result<Digest> {
    store_bytes(store, read_file(path)?)
}

/// Restores the original file at a path. `path` is absolute and had no links when it was stored.
/// Does nothing if the file is unchanged.
pub fn restore_file(
    store: &dyn Store,
    path: &Path,
    was: OriginalFile,
) -> io::Result<ReplacedVersion> {
    refuse_links(parent(path))?;
    let current = match fs::symlink_metadata(path) {
        Ok(current) => Some(current),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match (was, current) {
        (OriginalFile::Missing, None) => Ok(ReplacedVersion::default()),
        (OriginalFile::Missing, Some(current)) => remove(store, path, &current),
        (OriginalFile::File(sha256), current) => write_back(store, path, &sha256, current.as_ref()),
    }
}

fn remove(store: &dyn Store, path: &Path, current: &Metadata) -> io::Result<ReplacedVersion> {
    let replaced = save_replaced(store, path, current)?;
    if replaced.renamed_to.is_none() {
        fs::remove_file(path)?;
    }
    sync(parent(path))?;
    Ok(replaced)
}

fn write_back(
    store: &dyn Store,
    path: &Path,
    sha256: &Digest,
    current: Option<&Metadata>,
) -> io::Result<ReplacedVersion> {
    // This comes first: without the stored contents, no file may be changed.
    let bytes = stored_bytes(store, sha256)?;
    let file = current.filter(|current| current.is_file());
    if file.is_some() && read_file(path).is_ok_and(|current| current == bytes) {
        return Ok(ReplacedVersion::default());
    }
    let replaced = current.map(|current| save_replaced(store, path, current)).transpose()?;
    // The program that changed the file may have removed the permission to read it.
    let mode = file.map_or(PRIVATE_MODE, |file| file.permissions().mode() | OWNER_READ_MODE);
    fs::create_dir_all(parent(path))?;
    write(path, &bytes, mode)?;
    sync(parent(path))?;
    Ok(replaced.unwrap_or_default())
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn store_bytes(store: &dyn Store, bytes: Vec<u8>) -> io::Result<Digest> {
    let sha256 = Digest::of(&bytes);
    store.put_blobs(&[Blob { sha256, bytes }]).map_err(io::Error::other)?;
    Ok(sha256)
}

/// The stored contents with a digest, if they are intact.
fn stored_bytes(store: &dyn Store, sha256: &Digest) -> io::Result<Vec<u8>> {
    let bytes = store.blob(sha256).map_err(io::Error::other)?;
    bytes.filter(|bytes| Digest::of(bytes) == *sha256).ok_or_else(|| {
        let text = format!("the stored contents `{sha256}` are missing or damaged");
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Reads a regular file of bounded size. Never follows a link, and never waits for a pipe.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        let text = format!("`{}` is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    file.take(STORED_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > STORED_BYTES_MAX {
        let text = format!("`{}` has more than {STORED_BYTES_MAX} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Stores the current version, or renames it if the store can't take it.
fn save_replaced(
    store: &dyn Store,
    path: &Path,
    current: &Metadata,
) -> io::Result<ReplacedVersion> {
    let bytes = if current.is_symlink() {
        // The target of a link is not touched, so storing the link itself is enough.
        fs::read_link(path).map(|target| target.as_os_str().as_bytes().to_vec())
    } else {
        read_file(path)
    };
    match bytes {
        Ok(bytes) => {
            Ok(ReplacedVersion { sha256: Some(store_bytes(store, bytes)?), renamed_to: None })
        }
        Err(_) => Ok(ReplacedVersion { sha256: None, renamed_to: Some(rename_aside(path)?) }),
    }
}

/// Renames the file at a path, in the same directory.
pub(crate) fn rename_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..=ASIDE_MAX {
        let aside = path.with_file_name(format!("{name}.replaced-{number}"));
        if fs::symlink_metadata(&aside).is_err() {
            fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("no name is free beside `{name}`")))
}

/// Writes a file atomically. A link at its path is replaced and not followed.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unnamed = path.with_file_name(format!(".{name}.jackline-{}", std::process::id()));
    // A file that an earlier process left must not be written through.
    let _ = fs::remove_file(&unnamed);
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(PRIVATE_MODE).open(&unnamed)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&unnamed, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&unnamed);
    }
    written
}

pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Whether no link leads a restore of this path to another file.
pub(crate) fn can_restore(path: &Path) -> bool {
    refuse_links(parent(path)).is_ok()
}

/// Fails if a directory of the path became a link, because it would lead to other files.
fn refuse_links(directory: &Path) -> io::Result<()> {
    let is_link = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match directory.ancestors().find(is_link) {
        None => Ok(()),
        Some(link) => {
            let text = format!("`{}` is now a link to another path", link.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}
