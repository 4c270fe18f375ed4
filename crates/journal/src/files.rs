//! Private files and directories that are written atomically.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Why a file can't be written.
#[derive(Debug, thiserror::Error)]
#[error("can't {what} `{}`: {source}", .path.display())]
pub struct FileError {
    /// The attempted operation, as a verb.
    pub what: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The error of the file system.
    pub source: io::Error,
}

/// Adds the operation and the path to an I/O error.
trait FileContext<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError { what, path: path.to_owned(), source })
    }
}

/// Creates a private directory and its parents, and makes them durable.
pub fn create_directory(path: &Path) -> Result<(), FileError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_directory(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error).at("create", path),
        _ => path.parent().map_or(Ok(()), sync_directory),
    }
}

/// Makes the file names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), FileError> {
    File::open(path).and_then(|directory| directory.sync_all()).at("sync", path)
}

/// Writes a private file atomically.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    create_directory(parent)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = parent.join(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.at("write", path)?;
    sync_directory(parent)
}
