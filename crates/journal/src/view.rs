//! A read-only view of a journal at one moment.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use jackline_engine::{Definition, Digest, Timestamp};

use crate::definitions::LoadedDefinitions;
use crate::error::{IoContext as _, StoreError};
use crate::export::{self, Export};
use crate::file_store::{JOURNAL_FILE, journal_file, read_definition};
use crate::head::JournalHead;
use crate::lines::{ByteSource, ScanError, for_each_line, last_line, locate_record};
use crate::record::{JournalLine, parse_record};
use crate::session_entry::{JournalBeginning, JournalLocation, SessionEntry};
use crate::state_slots::SavedState;
use crate::store::{DefinitionSource, ReadMode};
use crate::{chain, lock, state_slots};

/// How much of a journal is read to find its first two records.
const BEGINNING_BYTES_MAX: u64 = 16 << 20;

/// A journal at one moment. It comes from a session, from a separate file, or from an export.
pub struct JournalView {
    lines: LineSource,
    /// The length of the journal at that moment.
    end: u64,
    saved_head: Option<SavedState>,
    forms: FormSource,
    definition_cache: LoadedDefinitions,
}

/// The source of the records.
enum LineSource {
    File(File),
    Memory(Vec<u8>),
    /// In memory, with the other fields of the export.
    Export(Vec<u8>, Box<Export>),
}

/// The source of the definitions that records refer to.
enum FormSource {
    /// A session's directory, or the directory of a separate journal file.
    Directory(PathBuf),
    Memory(BTreeMap<Digest, Vec<u8>>),
}

impl ByteSource for LineSource {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => ByteSource::read_at(file, out, offset),
            Self::Memory(lines) | Self::Export(lines, _) => lines.read_at(out, offset),
        }
    }
}

impl JournalView {
    /// Opens a journal file or an export. A journal may be in its session's directory or alone.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_file(path, ReadMode::Consistent, LoadedDefinitions::default())
    }

    pub(crate) fn open_file(
        path: &Path,
        reading: ReadMode,
        loaded: LoadedDefinitions,
    ) -> Result<Self, StoreError> {
        let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
        // Without the lock, the state must be read first, so that it is never newer than an intact
        // journal.
        let unlocked_state =
            if reading == ReadMode::Unlocked { read_saved_state(path)? } else { None };
        let file = File::open(path).context("open the journal")?;
        if let Some(export) = export::read_export(&file)? {
            return Ok(Self::of_export(export));
        }
        let saved = match reading {
            ReadMode::Unlocked => unlocked_state,
            ReadMode::Consistent => {
                // The lock is needed only for a moment, to be sure that no record is half written.
                lock::shared(&file)?;
                read_saved_state(path)?
            }
        };
        let end = file.metadata().context("look at the journal")?.len();
        if reading == ReadMode::Consistent {
            file.unlock().context("unlock the journal")?;
        }
        let stored = FormSource::Directory(directory);
        Ok(Self {
            lines: LineSource::File(file),
            end,
            saved_head: saved,
            forms: stored,
            definition_cache: loaded,
        })
    }

    fn of_export(mut export: Export) -> Self {
        let lines = export.lines();
        export.journal.clear();
        let stored = std::mem::take(&mut export.stored_definitions);
        let stored = stored.into_iter().map(|(digest, form)| (digest, form.into_bytes()));
        let stored = FormSource::Memory(stored.collect());
        let end = lines.len() as u64;
        let lines = LineSource::Export(lines, Box::new(export));
        Self {
            lines,
            end,
            saved_head: None,
            forms: stored,
            definition_cache: LoadedDefinitions::default(),
        }
    }

    /// A journal from records that a store has read, in order and without newlines, with the last
    /// saved state and the stored forms of the definitions.
    pub fn of_records<'a>(
        records: impl Iterator<Item = &'a [u8]>,
        saved: Option<(JournalHead, Vec<u8>)>,
        definitions: BTreeMap<Digest, Vec<u8>>,
    ) -> Self {
        Self::in_memory(records, saved, definitions, LoadedDefinitions::default())
    }

    pub(crate) fn in_memory<'a>(
        records: impl Iterator<Item = &'a [u8]>,
        saved: Option<(JournalHead, Vec<u8>)>,
        stored: BTreeMap<Digest, Vec<u8>>,
        loaded: LoadedDefinitions,
    ) -> Self {
        let (mut lines, mut saved_end) = (Vec::new(), 0);
        for (seq, record) in (0..).zip(records) {
            lines.extend_from_slice(record);
            lines.push(b'\n');
            if saved.as_ref().is_some_and(|(head, _)| head.seq == seq) {
                saved_end = lines.len() as u64;
            }
        }
        let saved = saved.map(|(head, bytes)| SavedState { head, journal_bytes: saved_end, bytes });
        let (end, stored) = (lines.len() as u64, FormSource::Memory(stored));
        Self {
            lines: LineSource::Memory(lines),
            end,
            saved_head: saved,
            forms: stored,
            definition_cache: loaded,
        }
    }

    /// The head of the state that was saved beside the journal.
    pub fn saved_head(&self) -> Option<JournalHead> {
        self.saved_head.as_ref().map(|saved| saved.head)
    }

    /// The state that was saved beside the journal, with its head; `None` if the journal is shorter
    /// than the state requires.
    pub fn saved_state(&self) -> Option<(JournalHead, &[u8])> {
        let saved = self.saved_head.as_ref().filter(|saved| saved.journal_bytes <= self.end)?;
        Some((saved.head, &saved.bytes))
    }

    /// The export that contains the journal, without its records and definitions.
    pub fn export(&self) -> Option<&Export> {
        match &self.lines {
            LineSource::Export(_, export) => Some(export),
            LineSource::File(_) | LineSource::Memory(_) => None,
        }
    }

    /// Parses a record, and loads the definitions that it refers to.
    pub fn parse(&self, line: &[u8]) -> Result<JournalLine, StoreError> {
        let mut line = parse_record(line)?;
        line.load_definitions(|digest| self.definition(digest))?;
        Ok(line)
    }

    /// A definition that a record refers to.
    pub fn definition(&self, digest: &Digest) -> Result<Arc<Definition>, StoreError> {
        self.definition_cache.load(digest, || self.stored_form(digest))
    }

    /// The stored form of a definition that a record refers to.
    pub fn stored_form(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        match &self.forms {
            FormSource::Memory(forms) => Ok(forms.get(digest).cloned()),
            FormSource::Directory(directory) => read_definition(directory, digest),
        }
    }

    /// One record without its newline; `None` if there is no such record.
    pub fn record(&self, seq: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let mut found = None;
        self.read_from(seq, |line| {
            found = Some(line.to_vec());
            Err(StopReading::Found)
        })
        .or_else(|enough| match enough {
            StopReading::Found => Ok(0),
            StopReading::Failed(error) => Err(error),
        })?;
        Ok(found)
    }

    /// Calls `each` for every record, without its newline. Returns how many bytes follow the last
    /// record; they are an incomplete record.
    pub fn for_each<E: From<StoreError>>(
        &self,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.for_each_from(0, each)
    }

    /// The same for the records from a number on.
    pub fn read_from<E: From<StoreError>>(
        &self,
        seq: u64,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let saved = self.saved_head.as_ref().filter(|saved| saved.head.seq + 1 == seq);
        let from = match saved {
            _ if seq == 0 => 0,
            Some(saved) => saved.journal_bytes.min(self.end),
            None => {
                let located = locate_record(&self.lines, seq, (0, self.end));
                let located = located.context("read the journal").map_err(E::from)?;
                let Some(at) = located else { return Ok(0) };
                at
            }
        };
        self.for_each_from(from, each)
    }

    /// The same for the last records, so that a long journal takes no longer than a short one.
    pub fn for_each_of_last<E: From<StoreError>>(
        &self,
        records: u64,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let last = self.last_seq()?.unwrap_or_default();
        self.read_from((last + 1).saturating_sub(records), each)
    }

    /// The number of the last record.
    pub fn last_seq(&self) -> Result<Option<u64>, StoreError> {
        let last = last_line(&self.lines, self.end);
        let last = last.map_err(|error| error.into_store_error("read the journal"))?;
        Ok(last.and_then(|line| chain::parse_seq(&line)))
    }

    fn for_each_from<E: From<StoreError>>(
        &self,
        from: u64,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut read = from;
        let mut failed = None;
        let scanned = for_each_line(&self.lines, from, &mut |line| {
            read += line.len() as u64 + 1;
            if read > self.end {
                // Another process has written this record after the view was opened.
                return Err(ScanError::Stopped);
            }
            each(line).map_err(|error| {
                failed = Some(error);
                ScanError::Stopped
            })
        });
        match (failed, scanned) {
            (Some(error), _) => Err(error),
            (None, Ok(torn)) => Ok(if read + torn > self.end { self.end - read } else { torn }),
            (None, Err(ScanError::Stopped)) => Ok(0),
            (None, Err(error)) => Err(error.into_store_error("read the journal").into()),
        }
    }
}

impl DefinitionSource for JournalView {
    fn load(&self, digest: &Digest) -> Result<Arc<Definition>, StoreError> {
        self.definition(digest)
    }
}

/// Why reading ended before the last record.
enum StopReading {
    Found,
    Failed(StoreError),
}

impl From<StoreError> for StopReading {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// The saved state beside a journal in its session's directory.
fn read_saved_state(path: &Path) -> Result<Option<SavedState>, StoreError> {
    let beside = path.file_name().is_some_and(|name| name == JOURNAL_FILE);
    match File::open(path.with_file_name("state")) {
        Ok(state) if beside => state_slots::read_state(&state),
        _ => Ok(None),
    }
}

impl SessionEntry {
    /// The session of a journal file or an export that a person passed; `None` if there is no such
    /// file. A file that begins like an export but is not a complete one is an error.
    pub fn of_file(file: &Path) -> Result<Option<Self>, StoreError> {
        let Some(modified) = modified(file) else { return Ok(None) };
        let beginning = match read_beginning(file) {
            Err(error @ StoreError::Export { .. }) => return Err(error),
            beginning => beginning.unwrap_or_default(),
        };
        Ok(Some(Self::new(JournalLocation::File(file.to_owned()), beginning, modified)))
    }

    /// The session in a directory of the file store; `None` if it contains no journal.
    pub(crate) fn in_directory(directory: PathBuf) -> Option<Self> {
        let file = journal_file(&directory);
        let modified = modified(&file)?;
        let beginning = read_beginning(&file).unwrap_or_default();
        Some(Self::new(JournalLocation::Directory(directory), beginning, modified))
    }
}

/// When a file was last written to; `None` if it is not a file.
#[expect(clippy::option_option, reason = "a file system may not store modification times")]
pub(crate) fn modified(file: &Path) -> Option<Option<Timestamp>> {
    let metadata = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Some(since.and_then(|since| i64::try_from(since.as_millis()).ok()).map(Timestamp::from_ms))
}

/// The first two records of a journal file or an export.
fn read_beginning(path: &Path) -> Result<JournalBeginning, StoreError> {
    let file = File::open(path).context("open the journal")?;
    if let Some(export) = export::read_export(&file)? {
        return Ok(JournalBeginning::of(export.journal.iter().map(String::as_bytes)));
    }
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    let mut source = file.take(BEGINNING_BYTES_MAX);
    let mut newlines = 0;
    while newlines < 2 {
        let read = source.read(&mut chunk).context("read the journal")?;
        let part = chunk.get(..read).unwrap_or_default();
        if part.is_empty() {
            break;
        }
        newlines += part.split(|byte| *byte == b'\n').count() - 1;
        bytes.extend_from_slice(part);
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = bytes.get(..whole).unwrap_or_default();
    Ok(JournalBeginning::of(
        lines.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end),
    ))
}

impl JournalBeginning {
    /// Parses the first two lines.
    pub(crate) fn of<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let Some(first) = lines.next() else { return Self { is_empty: true, ..Self::default() } };
        let mut beginning = Self::default();
        match parse_record(first) {
            Ok(JournalLine::Opened(opened)) => beginning.opened = Some(*opened),
            // Another version wrote this record. Any other error means that it is not a first
            // record.
            Err(error) if error.seq == "0" => beginning.unreadable = Some(error),
            Ok(JournalLine::Event(_)) | Err(_) => {}
        }
        if let Some(Ok(JournalLine::Event(record))) = lines.next().map(parse_record) {
            beginning.first_event = Some(record.event);
        }
        beginning
    }
}
