//! A journal for those who only look: a consistent view without holding it up.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use jackline_engine::{Event, EventKind, SessionId, SessionStarted};

use crate::error::{Context as _, StoreError};
use crate::export::{self, Export};
use crate::head::Head;
use crate::lines::{Bytes, ScanError, for_each_line, line_from, line_start};
use crate::record::{Line, Opened, parse_record};
use crate::{lock, slots};

/// How much of a journal is read for its first event.
const START_BYTES_MAX: u64 = 16 << 20;

/// A journal file as it was at one moment, or the journal in an export.
pub struct JournalFile {
    path: PathBuf,
    file: Source,
    bytes: u64,
    saved: Option<(Head, Vec<u8>)>,
}

/// Where the lines are.
enum Source {
    File(File),
    /// In memory, with all else that the export says.
    Export(Vec<u8>, Box<Export>),
}

impl Bytes for Source {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => Bytes::read_at(file, out, offset),
            Self::Export(lines, _) => lines.read_at(out, offset),
        }
    }
}

impl JournalFile {
    /// Opens a journal, alone or in its session's directory.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = File::open(path).context("open", path)?;
        if let Some(mut export) = export::read(&file, path)? {
            let lines = export.lines();
            export.journal.clear();
            let bytes = lines.len() as u64;
            let file = Source::Export(lines, Box::new(export));
            return Ok(Self { path: path.to_owned(), file, bytes, saved: None });
        }
        // The lock is held for a moment: long enough that no record is half written.
        lock::shared(&file, path)?;
        let saved = saved_beside(path)?;
        let bytes = file.metadata().context("look at", path)?.len();
        file.unlock().context("unlock", path)?;
        Ok(Self { path: path.to_owned(), file: Source::File(file), bytes, saved })
    }

    /// The same without the lock, for who looks often: nobody is held up, and
    /// nobody holds this up. A record that is half written has no newline yet
    /// and is passed over. The state is read first, so it is never ahead of a
    /// journal that is whole.
    pub fn glance(path: &Path) -> Result<Self, StoreError> {
        let saved = saved_beside(path)?;
        let file = File::open(path).context("open", path)?;
        let bytes = file.metadata().context("look at", path)?.len();
        Ok(Self { path: path.to_owned(), file: Source::File(file), bytes, saved })
    }

    /// The head of the state that was saved beside it.
    pub fn saved(&self) -> Option<Head> {
        self.saved.as_ref().map(|(head, _)| *head)
    }

    /// The state that was saved beside it, and the head it belongs to.
    pub fn saved_state(&self) -> Option<(Head, &[u8])> {
        self.saved.as_ref().map(|(head, state)| (*head, state.as_slice()))
    }

    /// The export that it lies in, without its lines.
    pub fn export(&self) -> Option<&Export> {
        match &self.file {
            Source::File(_) => None,
            Source::Export(_, export) => Some(export),
        }
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The line that begins at a byte, without its newline; nothing if there is
    /// none.
    pub fn line_at(&self, from: u64) -> Result<Option<Vec<u8>>, StoreError> {
        line_from(&self.file, from).map_err(|error| error.or_io("read", &self.path))
    }

    /// Calls `each` for every complete line, without its newline, and says how
    /// many bytes follow the last one.
    pub fn for_each<E: From<StoreError>>(
        &self,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.for_each_from(0, each)
    }

    /// The same for the lines that begin in the last so many bytes, so that a
    /// long journal costs no more than a short one.
    pub fn for_each_of_last<E: From<StoreError>>(
        &self,
        bytes: u64,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let from =
            line_start(&self.file, self.bytes.saturating_sub(bytes)).context("read", &self.path)?;
        self.for_each_from(from, each)
    }

    /// The same for the lines behind a head.
    pub fn for_each_after<E: From<StoreError>>(
        &self,
        head: &Head,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.for_each_from(head.bytes, each)
    }

    fn for_each_from<E: From<StoreError>>(
        &self,
        from: u64,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut read = from;
        let mut failed = None;
        let scanned = for_each_line(&self.file, from, &mut |line| {
            read += line.len() as u64 + 1;
            if read > self.bytes {
                // Written since this view was taken.
                return Err(ScanError::Enough);
            }
            each(line).map_err(|error| {
                failed = Some(error);
                ScanError::Enough
            })
        });
        match (failed, scanned) {
            (Some(error), _) => Err(error),
            (None, Ok(torn)) => Ok(if read + torn > self.bytes { self.bytes - read } else { torn }),
            (None, Err(ScanError::Enough)) => Ok(0),
            (None, Err(error)) => Err(error.or_io("read", &self.path).into()),
        }
    }
}

/// The newer state in the file beside a journal that lies in its session's
/// directory.
fn saved_beside(path: &Path) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
    let beside = path.file_name().is_some_and(|name| name == "journal.jsonl");
    match File::open(path.with_file_name("state")) {
        Ok(state) if beside => slots::read(&state),
        _ => Ok(None),
    }
}

/// The session that a session belongs to, as its first event says.
pub fn read_parent(path: &Path) -> Option<SessionId> {
    match first_event(path)?.kind {
        EventKind::SessionStarted(SessionStarted { parent, .. }) => parent,
        _ => None,
    }
}

/// The directory that a run was started in, where its first event says so: it need not be
/// the one that it works in.
pub fn read_started_in(path: &Path) -> Option<PathBuf> {
    let meta = first_event(path)?.meta?;
    meta.get("started_in")?.as_str().map(PathBuf::from)
}

fn first_event(path: &Path) -> Option<Event> {
    let mut lines = BufReader::new(File::open(path).ok()?.take(START_BYTES_MAX)).split(b'\n');
    let line = lines.nth(1)?.ok()?;
    match parse_record(&line).ok()? {
        Line::Event(record) => Some(record.event),
        Line::Opened(_) => None,
    }
}

/// What a session was opened with, from the first line of its journal.
pub fn read_first(path: &Path) -> Result<Option<Opened>, StoreError> {
    let mut file = File::open(path).context("open", path)?;
    if let Some(export) = export::read(&file, path)? {
        let Some(first) = export.journal.first() else { return Ok(None) };
        return opening(first.as_bytes());
    }
    let mut line = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = file.read(&mut chunk).context("read", path)?;
        let part = chunk.get(..read).unwrap_or(&[]);
        if let Some(end) = part.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(part.get(..end).unwrap_or(part));
            break;
        }
        if part.is_empty() {
            return Ok(None);
        }
        line.extend_from_slice(part);
    }
    opening(&line)
}

fn opening(line: &[u8]) -> Result<Option<Opened>, StoreError> {
    match parse_record(line)? {
        Line::Opened(opened) => Ok(Some(*opened)),
        Line::Event(_) => Ok(None),
    }
}
