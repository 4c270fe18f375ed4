//! Gives protected files back as they were.
//!
//! What a file held is kept in the store while it is in order. When it was
//! changed all the same, the changed version is kept too before the old one
//! takes its place: nothing that anybody wrote is lost. Links are never
//! followed: what lies behind one is not the file that is protected.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::observe::Blob;
use jackline_journal::Store;
use rustix::fs::OFlags;

/// The largest file that is kept.
const KEPT_BYTES_MAX: u64 = 16 << 20;

/// The mode of a file that is given back where nothing says another.
pub(crate) const PRIVATE: u32 = 0o600;

/// What its owner may always do with a file that is given back.
const READABLE: u32 = 0o400;

/// How often another name is tried for what can't be kept.
const ASIDE_MAX: u32 = 1000;

/// What was at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    /// Nothing.
    Missing,
    /// A file with these contents, which were kept.
    File(Digest),
}

/// What became of the version that was in the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Where the store keeps it.
    pub sha256: Option<Digest>,
    /// Where it lies now, if it is nothing that a store keeps, such as a
    /// directory or a huge file.
    pub aside: Option<PathBuf>,
}

/// Keeps what a file holds, and gives the name under which it is kept.
pub fn keep(store: &dyn Store, path: &Path) -> io::Result<Digest> {
    put(store, read_file(path)?)
}

/// Makes a path be what it was. `path` is absolute and led through no links
/// when it was kept. Does nothing where it is in order.
pub fn give_back(store: &dyn Store, path: &Path, was: Was) -> io::Result<Replaced> {
    refuse_links(parent(path))?;
    let there = match fs::symlink_metadata(path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match (was, there) {
        (Was::Missing, None) => Ok(Replaced::default()),
        (Was::Missing, Some(there)) => remove(store, path, &there),
        (Was::File(sha256), there) => put_back(store, path, &sha256, there.as_ref()),
    }
}

fn remove(store: &dyn Store, path: &Path, there: &Metadata) -> io::Result<Replaced> {
    let replaced = save(store, path, there)?;
    if replaced.aside.is_none() {
        fs::remove_file(path)?;
    }
    sync(parent(path))?;
    Ok(replaced)
}

fn put_back(
    store: &dyn Store,
    path: &Path,
    sha256: &Digest,
    there: Option<&Metadata>,
) -> io::Result<Replaced> {
    // First, because without it nothing may be touched.
    let bytes = kept(store, sha256)?;
    let file = there.filter(|there| there.is_file());
    if file.is_some() && read_file(path).is_ok_and(|found| found == bytes) {
        return Ok(Replaced::default());
    }
    let replaced = there.map(|there| save(store, path, there)).transpose()?;
    // Whoever changed it may have shut it, too.
    let mode = file.map_or(PRIVATE, |file| file.permissions().mode() | READABLE);
    fs::create_dir_all(parent(path))?;
    write(path, &bytes, mode)?;
    sync(parent(path))?;
    Ok(replaced.unwrap_or_default())
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn put(store: &dyn Store, bytes: Vec<u8>) -> io::Result<Digest> {
    let sha256 = Digest::of(&bytes);
    store.put_blobs(&[Blob { sha256, bytes }]).map_err(io::Error::other)?;
    Ok(sha256)
}

/// What was kept under a name, if it is still what it was.
fn kept(store: &dyn Store, sha256: &Digest) -> io::Result<Vec<u8>> {
    let bytes = store.blob(sha256).map_err(io::Error::other)?;
    bytes.filter(|bytes| Digest::of(bytes) == *sha256).ok_or_else(|| {
        let text = format!("what was kept as `{sha256}` is not there any more");
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Reads a file of bounded size that is no link and nothing one waits for.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        let text = format!("`{}` is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    file.take(KEPT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > KEPT_BYTES_MAX {
        let text = format!("`{}` has more than {KEPT_BYTES_MAX} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Keeps what is in the way, or puts it aside where no store would take it.
fn save(store: &dyn Store, path: &Path, there: &Metadata) -> io::Result<Replaced> {
    let bytes = if there.is_symlink() {
        // What it leads to is not touched, so only the way there can get lost.
        fs::read_link(path).map(|target| target.as_os_str().as_bytes().to_vec())
    } else {
        read_file(path)
    };
    match bytes {
        Ok(bytes) => Ok(Replaced { sha256: Some(put(store, bytes)?), aside: None }),
        Err(_) => Ok(Replaced { sha256: None, aside: Some(put_aside(path)?) }),
    }
}

/// Gives what is at a path another name beside it.
pub(crate) fn put_aside(path: &Path) -> io::Result<PathBuf> {
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

/// Writes a file as a whole: a link in its place is replaced, not followed.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unnamed = path.with_file_name(format!(".{name}.jackline-{}", std::process::id()));
    // One that an earlier process left behind is not written through.
    let _ = fs::remove_file(&unnamed);
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&unnamed)?;
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

/// A directory above that became a link leads to somebody else's files.
fn refuse_links(directory: &Path) -> io::Result<()> {
    let is_link = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match directory.ancestors().find(is_link) {
        None => Ok(()),
        Some(link) => {
            let text = format!("`{}` is a link now, and leads elsewhere", link.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}
