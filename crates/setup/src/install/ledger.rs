//! Records the changes on this machine, so that they can be undone.
//!
//! `installs/` in the state home has one entry for each file: its digest after our change, and the
//! path of the backup of its old bytes in `backups/`.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

use super::InstallError;
use super::mcp_servers::WrappedServers;
use jackline_clients::installation::LocationError;

/// What we changed in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerEntry {
    /// The file.
    pub(crate) path: PathBuf,
    /// The backup of the old content; nothing if there was no file.
    pub(crate) original: Option<PathBuf>,
    /// The digest of the content that we wrote.
    pub(crate) after: Digest,
    /// The directories that we created for it, the outermost first.
    pub(crate) made: Vec<PathBuf>,
    /// The MCP servers in it that we wrapped. Missing if the file has another purpose, or if an
    /// older version wrote the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) servers: Option<Vec<ServersAtPath>>,
}

/// The wrapped servers at one position in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServersAtPath {
    /// The keys that lead to the servers.
    pub(crate) place: Vec<String>,
    /// The servers that we wrapped.
    pub(crate) servers: WrappedServers,
}

/// The state of a file before we changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileBackup {
    /// It did not exist.
    NoFile,
    /// It had this content.
    Bytes(Vec<u8>),
}

impl FileBackup {
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::NoFile => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// The records of all changes in a state home.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    home: PathBuf,
}

impl Ledger {
    pub(crate) fn of(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Locks out every other installation until the returned file is dropped.
    pub(crate) fn lock(&self) -> Result<File, InstallError> {
        let directory = self.home.join("installs");
        let failed = |error| InstallError::io(&directory, "lock", error);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        let lock = File::open(&directory).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(lock)
    }

    /// The entry for a file, if it can be read.
    pub(crate) fn read(&self, target: &Path) -> Option<LedgerEntry> {
        let text = fs::read(self.entry_path(target)).ok()?;
        let entry: LedgerEntry = serde_json::from_slice(&text).ok()?;
        (entry.path == target).then_some(entry)
    }

    /// The original content of a changed file; nothing if the backup is lost.
    pub(crate) fn original(&self, entry: &LedgerEntry) -> Option<FileBackup> {
        match &entry.original {
            None => Some(FileBackup::NoFile),
            Some(path) => {
                let bytes = fs::read(self.home.join(path)).ok()?;
                (*path == backup_path(&entry.path, &bytes)).then_some(FileBackup::Bytes(bytes))
            }
        }
    }

    /// Saves the content of a file. Returns the path of the backup.
    pub(crate) fn back_up(&self, target: &Path, bytes: &[u8]) -> Result<PathBuf, InstallError> {
        let path = backup_path(target, bytes);
        Self::write(&self.home.join(&path), bytes)?;
        Ok(path)
    }

    /// The absolute path of a backup.
    pub(crate) fn absolute(&self, backup: &Path) -> PathBuf {
        self.home.join(backup)
    }

    pub(crate) fn write_entry(&self, entry: &LedgerEntry) -> Result<(), InstallError> {
        let text = serde_json::to_vec(entry)
            .map_err(|_| LocationError::NotUtf8 { path: entry.path.clone() })?;
        Self::write(&self.entry_path(&entry.path), &text)
    }

    pub(crate) fn remove_entry(&self, target: &Path) {
        let _ = fs::remove_file(self.entry_path(target));
    }

    fn entry_path(&self, target: &Path) -> PathBuf {
        let digest = Digest::of(target.as_os_str().as_encoded_bytes()).to_string();
        self.home.join("installs").join(format!("{digest}.json"))
    }

    fn write(path: &Path, bytes: &[u8]) -> Result<(), InstallError> {
        if fs::read(path).is_ok_and(|present| present == bytes) {
            return Ok(());
        }
        write_private(path, bytes).map_err(|source| InstallError::Backup { source })
    }
}

/// The path of the backup of this content. Its name contains the digest, to detect a damaged
/// backup.
fn backup_path(target: &Path, bytes: &[u8]) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let digest = Digest::of(bytes).to_string();
    let short = digest.get(..16).unwrap_or(&digest);
    Path::new("backups").join(format!("{short}-{name}"))
}
