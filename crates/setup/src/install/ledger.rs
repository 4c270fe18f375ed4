//! What was changed on this machine, so that it can be given back.
//!
//! `installs/` in the state home has one entry a file: what it looked like
//! after our change, and where its bytes from before are kept, in `backups/`.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

use super::InstallError;
use super::mcp_servers::Memory;
use jackline_clients::installation::LocationError;

/// What was done to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The file.
    pub(crate) path: PathBuf,
    /// Where the bytes are that come back; none where there was no file.
    pub(crate) original: Option<PathBuf>,
    /// What we made of it.
    pub(crate) after: Digest,
    /// The directories that were made for it, the outermost first.
    pub(crate) made: Vec<PathBuf>,
    /// The MCP servers in it that the guard was put before. None where the file is about
    /// something else, or the entry is of a time before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) servers: Option<Vec<ServersAt>>,
}

/// The servers at one place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServersAt {
    /// The keys that lead to them.
    pub(crate) place: Vec<String>,
    /// Those that the guard was put before.
    pub(crate) servers: Memory,
}

/// What a file was before us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Original {
    /// It was not there.
    Absent,
    /// It held these bytes.
    Bytes(Vec<u8>),
}

impl Original {
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Absent => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// The entries of a state home.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    home: PathBuf,
}

impl Ledger {
    pub(crate) fn of(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Keeps every other installation waiting, until it is dropped.
    pub(crate) fn lock(&self) -> Result<File, InstallError> {
        let directory = self.home.join("installs");
        let failed = |error| InstallError::of(&directory, "lock", error);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        let lock = File::open(&directory).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(lock)
    }

    /// What was done to a file, if its entry can be read.
    pub(crate) fn read(&self, target: &Path) -> Option<Entry> {
        let text = fs::read(self.place(target)).ok()?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        (entry.path == target).then_some(entry)
    }

    /// What comes back in place of a file that we changed; none where that is
    /// no longer known.
    pub(crate) fn original(&self, entry: &Entry) -> Option<Original> {
        match &entry.original {
            None => Some(Original::Absent),
            Some(path) => {
                let bytes = fs::read(self.home.join(path)).ok()?;
                (*path == place_of(&entry.path, &bytes)).then_some(Original::Bytes(bytes))
            }
        }
    }

    /// Keeps some bytes of a file; says where.
    pub(crate) fn back_up(&self, target: &Path, bytes: &[u8]) -> Result<PathBuf, InstallError> {
        let path = place_of(target, bytes);
        Self::write(&self.home.join(&path), bytes)?;
        Ok(path)
    }

    /// Where a backup is.
    pub(crate) fn absolute(&self, backup: &Path) -> PathBuf {
        self.home.join(backup)
    }

    pub(crate) fn keep(&self, entry: &Entry) -> Result<(), InstallError> {
        let text = serde_json::to_vec(entry)
            .map_err(|_| LocationError::NotUtf8 { path: entry.path.clone() })?;
        Self::write(&self.place(&entry.path), &text)
    }

    pub(crate) fn forget(&self, target: &Path) {
        let _ = fs::remove_file(self.place(target));
    }

    fn place(&self, target: &Path) -> PathBuf {
        let digest = Digest::of(target.as_os_str().as_encoded_bytes()).to_string();
        self.home.join("installs").join(format!("{digest}.json"))
    }

    fn write(path: &Path, bytes: &[u8]) -> Result<(), InstallError> {
        if fs::read(path).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        write_private(path, bytes).map_err(|source| InstallError::State { source })
    }
}

/// Where these bytes of a file are kept. The name tells whether they are still
/// the same.
fn place_of(target: &Path, bytes: &[u8]) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let digest = Digest::of(bytes).to_string();
    let short = digest.get(..16).unwrap_or(&digest);
    Path::new("backups").join(format!("{short}-{name}"))
}
