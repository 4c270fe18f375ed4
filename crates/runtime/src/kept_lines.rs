//! Small files of the state home with one JSON object a line, which people's commands change.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use jackline_journal::{StoreError, write_private};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Such a file.
#[derive(Debug, Clone)]
pub(crate) struct KeptLines {
    pub(crate) file: PathBuf,
}

impl KeptLines {
    /// What every line says, or why it can't be read. No file is no lines.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> io::Result<Vec<serde_json::Result<T>>> {
        match std::fs::read_to_string(&self.file) {
            Ok(text) => Ok(text.lines().map(serde_json::from_str).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The lines that can be read.
    pub(crate) fn list<T: DeserializeOwned>(&self) -> Vec<T> {
        self.read().unwrap_or_default().into_iter().flatten().collect()
    }

    /// Changes the lines that can be read.
    pub(crate) fn change<T: Clone + PartialEq + Serialize + DeserializeOwned>(
        &self,
        change: impl FnOnce(&mut Vec<T>),
    ) -> Result<(), StoreError> {
        // Two people at once must not undo each other. Where there is no
        // directory to lock yet, there is nothing to undo.
        let lock = self.file.parent().and_then(|home| File::open(home).ok());
        if let Some(lock) = &lock {
            let _ = lock.lock();
        }
        let mut kept = self.list();
        let before = kept.clone();
        change(&mut kept);
        if kept == before {
            return Ok(());
        }
        let line = |one: &T| {
            serde_json::to_string(one).map(|line| format!("{line}\n")).unwrap_or_default()
        };
        write_private(&self.file, kept.iter().map(line).collect::<String>().as_bytes())
    }
}
