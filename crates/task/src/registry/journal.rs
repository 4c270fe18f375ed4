//! The changes, a line each. The last one that is whole has been made, or is to be made.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::Timestamp;
use jackline_journal::write_private;

use crate::registry::change::{Change, Line};
use crate::registry::error::RegistryError;
use crate::registry::files::io_error;

/// How long the journal may get before it is begun anew; the one before it is kept.
const BYTES_MAX: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    before: PathBuf,
}

impl Journal {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            path: directory.join("journal.jsonl"),
            before: directory.join("journal.before.jsonl"),
        }
    }

    /// The last change. A line that was cut off was never made; of one that nobody can
    /// read any more nobody knows what to do, and no earlier one is made in its place.
    pub(crate) fn last(&self) -> Result<Option<Line>, RegistryError> {
        let text = self.text()?;
        Ok(lines(&text).next().and_then(|line| serde_json::from_slice(line).ok()))
    }

    /// The number of the last change.
    fn seq(&self) -> Result<u64, RegistryError> {
        let text = self.text()?;
        let mut unread = 0;
        for line in lines(&text) {
            match serde_json::from_slice::<Line>(line) {
                Ok(line) => return Ok(line.seq + unread),
                Err(_) => unread += 1,
            }
        }
        Ok(unread)
    }

    /// Takes away a line that was cut off.
    pub(crate) fn repair(&mut self) -> Result<(), RegistryError> {
        let text = self.text()?;
        let whole = whole(&text);
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

    /// Writes a change down, durably.
    pub(crate) fn append(&mut self, at: Timestamp, change: Change) -> Result<Line, RegistryError> {
        let seq = self.seq()? + 1;
        let line = Line { seq, at, change };
        let text = to_text(&line).map_err(|error| io_error("write", &self.path, error))?;
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

    /// Begins anew where it has become long. Everything in it is made.
    pub(crate) fn shorten(&mut self, last: &Line) -> Result<(), RegistryError> {
        if fs::metadata(&self.path).map_or(0, |found| found.len()) <= BYTES_MAX {
            return Ok(());
        }
        let _ = fs::remove_file(&self.before);
        fs::hard_link(&self.path, &self.before)
            .map_err(|error| io_error("keep", &self.before, error))?;
        let line = Line { change: Change::Shortened, ..last.clone() };
        let text = to_text(&line).map_err(|error| io_error("write", &self.path, error))?;
        Ok(write_private(&self.path, &text)?)
    }

    fn text(&self) -> Result<Vec<u8>, RegistryError> {
        match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            text => Ok(text.map_err(|error| io_error("read", &self.path, error))?),
        }
    }
}

/// The whole lines of a journal, the last one first.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = text.get(..whole(text)).unwrap_or_default();
    whole.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// How much of a journal is whole lines.
fn whole(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn to_text(line: &Line) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}
