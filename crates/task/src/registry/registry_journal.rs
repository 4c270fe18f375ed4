//! The journal of a registry: one change per line. The last complete line was applied, or is to be
//! applied.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::Timestamp;
use jackline_journal::write_private;

use crate::registry::registry_change::{ChangeRecord, RegistryChange};
use crate::registry::registry_error::RegistryError;
use crate::registry::registry_files::io_error;

/// How long the journal may get before it is rotated. The previous file is stored.
const JOURNAL_BYTES_MAX: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) struct RegistryJournal {
    path: PathBuf,
    rotated_path: PathBuf,
}

impl RegistryJournal {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            path: directory.join("journal.jsonl"),
            rotated_path: directory.join("journal.before.jsonl"),
        }
    }

    /// The last change. An incomplete line was never applied and is ignored. If the last complete
    /// line can't be parsed, no earlier change is applied in its place.
    pub(crate) fn last_change(&self) -> Result<Option<ChangeRecord>, RegistryError> {
        let text = self.read()?;
        Ok(complete_lines(&text).next().and_then(|line| serde_json::from_slice(line).ok()))
    }

    /// The number of the last change.
    fn last_number(&self) -> Result<u64, RegistryError> {
        let text = self.read()?;
        let mut unread = 0;
        for line in complete_lines(&text) {
            match serde_json::from_slice::<ChangeRecord>(line) {
                Ok(line) => return Ok(line.seq + unread),
                Err(_) => unread += 1,
            }
        }
        Ok(unread)
    }

    /// Removes an incomplete last line.
    pub(crate) fn remove_torn_line(&mut self) -> Result<(), RegistryError> {
        let text = self.read()?;
        let whole = complete_bytes(&text);
        if whole < text.len() {
            let file = OpenOptions::new().write(true).open(&self.path);
            let cut = file.and_then(|file| {
                file.set_len(whole as u64)?;
                file.sync_data()
            });
            cut.map_err(|error| io_error("repair", &self.path, error))?;
        }
        Ok(())
    }

    /// Appends a change and syncs it to disk.
    pub(crate) fn append(
        &mut self,
        at: Timestamp,
        change: RegistryChange,
    ) -> Result<ChangeRecord, RegistryError> {
        let seq = self.last_number()? + 1;
        let line = ChangeRecord { seq, at, change };
        let text = encode_line(&line).map_err(|error| io_error("write", &self.path, error))?;
        let is_new = !self.path.exists();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        let written = file.and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_data()
        });
        written.map_err(|error| io_error("write", &self.path, error))?;
        if is_new && let Some(directory) = self.path.parent() {
            let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|error| io_error("sync", directory, error))?;
        }
        Ok(line)
    }

    /// Rotates a journal that is too long. All of its changes must be applied.
    pub(crate) fn rotate_if_long(&mut self, last: &ChangeRecord) -> Result<(), RegistryError> {
        if fs::metadata(&self.path).map_or(0, |found| found.len()) <= JOURNAL_BYTES_MAX {
            return Ok(());
        }
        let _ = fs::remove_file(&self.rotated_path);
        fs::hard_link(&self.path, &self.rotated_path)
            .map_err(|error| io_error("keep", &self.rotated_path, error))?;
        let line = ChangeRecord { change: RegistryChange::Shortened, ..last.clone() };
        let text = encode_line(&line).map_err(|error| io_error("write", &self.path, error))?;
        Ok(write_private(&self.path, &text)?)
    }

    fn read(&self) -> Result<Vec<u8>, RegistryError> {
        match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            text => Ok(text.map_err(|error| io_error("read", &self.path, error))?),
        }
    }
}

/// The complete lines of a journal, the last one first.
fn complete_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = text.get(..complete_bytes(text)).unwrap_or_default();
    whole.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The length of the complete lines of a journal.
fn complete_bytes(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn encode_line(line: &ChangeRecord) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}
