//! One session of the file store: its journal, its saved state and its table of ids.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest, EventId};

use crate::chain::{check_line, parse_seq, seal};
use crate::definitions::LoadedDefinitions;
use crate::error::{IoContext as _, StoreError};
use crate::event_ids::EventIdTable;
use crate::file_store::{definition_name, journal_file, read_definition};
use crate::files::{create_directory, sync_directory, write_private};
use crate::head::JournalHead;
use crate::lines::{for_each_line, line_from, line_start, locate_record};
use crate::record::{JournalLine, RecordBody, SNAPSHOT_MARKER, parse_record};
use crate::state_slots::SavedState;
use crate::store::DefinitionSource;
use crate::{SessionLog, lock, state_slots};

/// How far back the first search for a snapshot goes.
const SEARCH_BYTES: u64 = 1 << 20;

/// The open journal file.
struct JournalFile {
    file: File,
    /// Its device and inode, which identify the file behind its name.
    device_and_inode: (u64, u64),
    /// Its length, while no other process can write to it.
    length: Option<u64>,
}

/// A record, and the offset in the file at which it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JournalEnd {
    head: JournalHead,
    bytes: u64,
}

/// The log of one session in its directory.
pub(crate) struct FileLog {
    directory: PathBuf,
    /// The directory with the definitions of all sessions.
    definitions: PathBuf,
    boot: u64,
    journal: Option<JournalFile>,
    state: Option<File>,
    ids: Option<EventIdTable>,
    /// The last record, as read under the lock.
    end: Option<JournalEnd>,
    /// The record of the last loaded state.
    loaded_state: Option<JournalEnd>,
    repaired_bytes: Option<u64>,
    definition_cache: LoadedDefinitions,
}

impl FileLog {
    pub(crate) fn new(
        directory: PathBuf,
        definitions: PathBuf,
        boot: u64,
        loaded: LoadedDefinitions,
    ) -> Self {
        Self {
            directory,
            definitions,
            boot,
            journal: None,
            state: None,
            ids: None,
            end: None,
            loaded_state: None,
            repaired_bytes: None,
            definition_cache: loaded,
        }
    }

    fn open_private(&self, name: &str, what: &'static str) -> Result<File, StoreError> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.directory.join(name))
            .context(what)
    }

    fn journal(&self) -> Result<&File, StoreError> {
        let unlocked = || io::Error::other("the session is not locked");
        let journal = self.journal.as_ref().ok_or_else(unlocked).context("use the journal")?;
        Ok(&journal.file)
    }

    /// The length of the journal.
    fn length(&self) -> Result<u64, StoreError> {
        if let Some(length) = self.journal.as_ref().and_then(|journal| journal.length) {
            return Ok(length);
        }
        Ok(self.journal()?.metadata().context("look at the journal")?.len())
    }

    /// Sets the known length, while the journal is locked.
    fn set_length(&mut self, length: Option<u64>) {
        if let Some(journal) = &mut self.journal {
            journal.length = length;
        }
    }

    fn ids(&mut self) -> Result<&EventIdTable, StoreError> {
        if self.ids.is_none() {
            let file = self.open_private("ids", "open the table of ids")?;
            self.ids = Some(EventIdTable::new(file, self.boot));
        }
        self.ids
            .as_ref()
            .ok_or_else(|| io::Error::other("not open"))
            .context("use the table of ids")
    }

    /// Reads and checks every record after `start`. Returns the last one, and how many bytes follow
    /// it that are not a complete record.
    fn check_records(
        &self,
        start: Option<JournalEnd>,
    ) -> Result<(Option<JournalEnd>, u64), StoreError> {
        let file = self.journal()?;
        let mut end = start;
        let from = start.map_or(0, |end| end.bytes);
        let torn = for_each_line(file, from, &mut |line| {
            let head = end.map(|end| end.head);
            let fail =
                |reason: String| StoreError::Tampered { record: record_name(line, head), reason };
            let sealed = check_line(line).map_err(|fault| fail(fault.to_string()))?;
            let prev = head.map_or(Digest::ZERO, |head| head.hash);
            let next = JournalHead::next_seq(head);
            if sealed.prev != prev || parse_seq(line) != Some(next) {
                return Err(fail("it does not follow the previous record".to_owned()));
            }
            let bytes = end.map_or(0, |end| end.bytes) + line.len() as u64 + 1;
            end = Some(JournalEnd { head: JournalHead { seq: next, hash: sealed.hash }, bytes });
            Ok(())
        })
        .map_err(|error| error.into_store_error("read the journal"))?;
        Ok((end, torn))
    }

    /// Checks that the journal still contains the record with which the state was saved. Reads only
    /// the last bytes of that record.
    fn check_end(&self, end: &JournalEnd, length: u64) -> Result<(), StoreError> {
        let JournalEnd { head, bytes } = end;
        if length < *bytes {
            // Check the remaining records first, because tampering is more serious than truncation.
            let (last, _) = self.check_records(None)?;
            let found = last.map_or_else(|| "none".to_owned(), |end| end.head.seq.to_string());
            return Err(StoreError::Truncated { found, expected: head.seq });
        }
        let expected = format!("\"{}\"}}\n", head.hash);
        let mut last = vec![0; expected.len()];
        self.journal()?
            .read_exact_at(&mut last, bytes.saturating_sub(expected.len() as u64))
            .context("read the journal")?;
        if last != expected.as_bytes() {
            let reason = "it differs from the record that was answered".to_owned();
            return Err(StoreError::Tampered { record: head.seq.to_string(), reason });
        }
        Ok(())
    }

    /// The record of the saved state. The state is read again only if it has changed.
    fn saved_end(&mut self) -> Result<Option<JournalEnd>, StoreError> {
        if let (Some(loaded), Some(file)) = (&self.loaded_state, &self.state)
            && state_slots::is_newest(file, &loaded.head)
        {
            return Ok(self.loaded_state);
        }
        self.load_state()?;
        Ok(self.loaded_state)
    }

    fn read_state(&mut self) -> Result<Option<SavedState>, StoreError> {
        if self.state.is_none() {
            let path = self.directory.join("state");
            match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(file) => self.state = Some(mark_in_use(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                // Reading must work where the file can't be written.
                Err(_) => {
                    return state_slots::read_state(
                        &File::open(&path).context("open the saved state")?,
                    );
                }
            }
        }
        self.state.as_ref().map_or(Ok(None), state_slots::read_state)
    }

    /// The end of the journal, after an incomplete record at its end was removed.
    fn repair_and_find_end(&mut self) -> Result<Option<JournalEnd>, StoreError> {
        let length = self.length()?;
        if self.end.is_some_and(|end| end.bytes == length) {
            return Ok(self.end);
        }
        // A remembered end is as reliable as a saved one.
        let saved = self.saved_end()?;
        let latest = self.end.into_iter().chain(saved).max_by_key(|end| end.head.seq);
        if let Some(latest) = &latest {
            self.check_end(latest, length)?;
        }
        let (end, torn) = match latest {
            Some(latest) if latest.bytes == length => (Some(latest), 0),
            _ => self.check_records(latest)?,
        };
        if torn > 0 {
            self.set_length(None);
            let file = self.journal()?;
            file.set_len(end.map_or(0, |end| end.bytes)).context("repair the journal")?;
            file.sync_all().context("sync the journal")?;
            self.repaired_bytes = Some(self.repaired_bytes.unwrap_or(0) + torn);
        }
        self.end = end;
        Ok(end)
    }

    /// The offset of a record; `None` if there is no such record.
    fn record_offset(&self, seq: u64) -> Result<Option<u64>, StoreError> {
        let known_ends = self.end.into_iter().chain(self.loaded_state);
        if seq == 0 {
            return Ok(Some(0));
        }
        if let Some(before) = { known_ends }.find(|end| end.head.seq + 1 == seq) {
            return Ok(Some(before.bytes));
        }
        let file = self.journal()?;
        let length = file.metadata().context("look at the journal")?.len();
        locate_record(file, seq, (0, length)).context("read the journal")
    }

    /// Adds new records to the table of ids, if the table is complete up to them.
    fn add_ids(
        &mut self,
        offsets: &[(Option<&EventId>, u64)],
        start: u64,
        end: u64,
    ) -> Result<(), StoreError> {
        let ids = self.ids()?;
        if ids.covered_bytes().context("read the table of ids")? == start {
            for (id, offset) in offsets {
                if let Some(id) = id {
                    ids.insert(id, *offset).context("write the table of ids")?;
                }
            }
            ids.set_covered_bytes(end).context("write the table of ids")?;
        }
        Ok(())
    }

    /// Finds an id in the table, after completing the table.
    fn find_id(&mut self, id: &EventId, end: u64) -> Result<Option<u64>, StoreError> {
        let covered = self.ids()?.covered_bytes().context("read the table of ids")?;
        if covered > end {
            return Err(io::Error::from(io::ErrorKind::InvalidData))
                .context("read the table of ids");
        }
        if covered < end {
            self.index_ids(covered, end)?;
        }
        self.ids()?.find(id).context("read the table of ids")
    }

    fn clear_ids(&mut self) -> Result<(), StoreError> {
        self.ids()?.clear().context("write the table of ids")
    }

    /// The offset of the first record of an id, by reading the whole journal.
    fn search_journal(&self, id: &EventId) -> Result<Option<u64>, StoreError> {
        let found = self.ids_from(0)?;
        Ok(found.into_iter().find(|(known, _)| known == id).map(|(_, offset)| offset))
    }

    /// Every id after an offset in the journal, with the offset of its record.
    fn ids_from(&self, from: u64) -> Result<Vec<(EventId, u64)>, StoreError> {
        let mut found = Vec::new();
        let mut offset = from;
        for_each_line(self.journal()?, from, &mut |line| {
            if let Ok(JournalLine::Event(record)) = parse_record(line)
                && let Some(id) = record.event.id
            {
                found.push((id, offset));
            }
            offset += line.len() as u64 + 1;
            Ok::<(), StoreError>(())
        })
        .map_err(|error| error.into_store_error("read the journal"))?;
        Ok(found)
    }

    fn index_ids(&mut self, from: u64, to: u64) -> Result<(), StoreError> {
        let found = self.ids_from(from)?;
        let ids = self.ids()?;
        for (id, offset) in found {
            ids.insert(&id, offset).context("write the table of ids")?;
        }
        ids.set_covered_bytes(to).context("write the table of ids")
    }
}

impl SessionLog for FileLog {
    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }

    fn lock(&mut self) -> Result<(), StoreError> {
        let path = journal_file(&self.directory);
        if self.journal.is_none() {
            create_directory(&self.directory)?;
            let new = !path.exists();
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)
                .context("open the journal")?;
            if new {
                sync_directory(&self.directory)?;
            }
            let ours = file.metadata().context("look at the journal")?;
            let which = (ours.dev(), ours.ino());
            self.journal = Some(JournalFile { file, device_and_inode: which, length: None });
        }
        let Some(journal) = &mut self.journal else { return Err(StoreError::Removed) };
        lock::exclusive(&journal.file)?;
        // If the name leads to another file or to none, this file was removed after it was opened.
        // Data written to it would be lost.
        let current = fs::metadata(&path).ok();
        let ours =
            current.filter(|current| (current.dev(), current.ino()) == journal.device_and_inode);
        journal.length = ours.map(|ours| ours.len());
        if journal.length.is_some() {
            return Ok(());
        }
        let _ = journal.file.unlock();
        Err(StoreError::Removed)
    }

    fn is_behind(&self, head: &JournalHead) -> bool {
        // The last known record shows how long the journal was at that head.
        let known_end = self.end.into_iter().chain(self.loaded_state).find(|end| end.head == *head);
        let length = self.length();
        !known_end.is_some_and(|end| length.is_ok_and(|length| length == end.bytes))
    }

    fn unlock(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.length = None;
            let _ = journal.file.unlock();
        }
    }

    fn head(&mut self) -> Result<Option<JournalHead>, StoreError> {
        Ok(self.repair_and_find_end()?.map(|end| end.head))
    }

    fn take_repaired_bytes(&mut self) -> Option<u64> {
        self.repaired_bytes.take()
    }

    fn load_state(&mut self) -> Result<Option<(JournalHead, Vec<u8>)>, StoreError> {
        let saved = self.read_state()?;
        let end = |saved: &SavedState| JournalEnd { head: saved.head, bytes: saved.journal_bytes };
        self.loaded_state = saved.as_ref().map(end);
        Ok(saved.map(|saved| (saved.head, saved.bytes)))
    }

    fn append(
        &mut self,
        expected: Option<JournalHead>,
        bodies: &[RecordBody],
    ) -> Result<JournalHead, StoreError> {
        let before = self.repair_and_find_end()?;
        if before.map(|end| end.head) != expected {
            return Err(StoreError::HeadChanged);
        }
        let start = before.map_or(0, |end| end.bytes);
        let mut head = expected;
        let mut bytes = Vec::new();
        let mut offsets = Vec::new();
        for body in bodies {
            let (line, hash) = seal(&body.json, &head.map_or(Digest::ZERO, |head| head.hash));
            offsets.push((body.id.as_ref(), start + bytes.len() as u64));
            bytes.extend_from_slice(&line);
            head = Some(JournalHead { seq: body.seq, hash });
        }
        let nothing = || io::Error::other("there is nothing to append");
        let head = head.ok_or_else(nothing).context("append to the journal")?;
        self.set_length(None);
        let file = self.journal()?;
        let written = { file }.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // The record was not answered yet, so no part of it may stay. If it can't be removed
            // now, the next process removes it as an incomplete record.
            let _ = file.set_len(start);
            return Err(error).context("append to the journal");
        }
        let end = start + bytes.len() as u64;
        self.end = Some(JournalEnd { head, bytes: end });
        self.set_length(Some(end));
        // The record is durable, so this must not fail from here on. An outdated table is completed
        // by the next lookup.
        let _ = self.add_ids(&offsets, start, end);
        Ok(head)
    }

    fn save_state(&mut self, head: &JournalHead, state: &[u8]) -> Result<(), StoreError> {
        let next = match self.record_offset(head.seq + 1)? {
            Some(next) => next,
            None => self.length()?,
        };
        if self.state.is_none() {
            self.state = Some(mark_in_use(self.open_private("state", "open the saved state")?));
        }
        self.state
            .as_ref()
            .map_or(Ok(()), |file| state_slots::write_state(file, head, next, state))
            .context("write the saved state")
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Some(start) = self.record_offset(from)? else { return Ok(()) };
        for_each_line(self.journal()?, start, each)
            .map(|_| ())
            .map_err(|error| error.into_store_error("read the journal"))
    }

    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match File::open(journal_file(&self.directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => line_from(&opened.context("open the journal")?, 0)
                .map_err(|error| error.into_store_error("read the journal")),
        }
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        let end = self.repair_and_find_end()?.map_or(0, |end| end.bytes);
        let file = self.journal()?;
        let mut found = None;
        // Search backwards in growing ranges, and read each range forwards by lines. A snapshot is
        // at most a few thousand records away.
        let mut reach = SEARCH_BYTES;
        while found.is_none() {
            let from = line_start(file, end.saturating_sub(reach)).context("read the journal")?;
            for_each_line(file, from, &mut |line| {
                if line.windows(SNAPSHOT_MARKER.len()).rev().any(|window| window == SNAPSHOT_MARKER)
                    && let Ok(JournalLine::Event(record)) = parse_record(line)
                    && record.snapshot.is_some()
                {
                    found = Some(record.seq);
                }
                Ok::<(), StoreError>(())
            })
            .map_err(|error| error.into_store_error("read the journal"))?;
            if reach >= end {
                break;
            }
            reach = reach.saturating_mul(8);
        }
        Ok(found)
    }

    fn find_event(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(end) = self.repair_and_find_end()?.map(|end| end.bytes) else { return Ok(None) };
        let offset = match self.find_id(id, end) {
            Ok(offset) => offset,
            // A damaged table is created again. If that fails too, the journal itself is searched.
            // A slow search is better than recording an event twice.
            Err(_) => match self.clear_ids().and_then(|()| self.find_id(id, end)) {
                Ok(offset) => offset,
                Err(_) => self.search_journal(id)?,
            },
        };
        let Some(offset) = offset else { return Ok(None) };
        let line = line_from(self.journal()?, offset)
            .map_err(|error| error.into_store_error("read the journal"))?;
        // The table is only a hint, so the id in the record is checked.
        Ok(line.filter(|line| match parse_record(line) {
            Ok(JournalLine::Event(record)) => record.event.id.as_ref() == Some(id),
            _ => false,
        }))
    }

    fn store_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError> {
        let digest = definition.digest();
        let own = self.directory.join(definition_name(&digest));
        if own.exists() {
            return Ok(());
        }
        let shared = self.definitions.join(format!("{digest}.json"));
        if !shared.exists() {
            let missing = StoreError::DefinitionMissing { digest };
            write_private(&shared, &definition.stored_form().ok_or(missing)?)?;
        }
        // On a file system without hard links, each session has a copy.
        if fs::hard_link(&shared, &own).is_err() && !own.exists() {
            write_private(&own, &fs::read(&shared).context("read a definition")?)?;
        }
        Ok(sync_directory(&self.directory)?)
    }

    fn definitions(&self) -> Box<dyn DefinitionSource> {
        Box::new(SessionDefinitions {
            directory: self.directory.clone(),
            loaded: self.definition_cache.clone(),
        })
    }
}

/// The definitions in a session's directory.
struct SessionDefinitions {
    directory: PathBuf,
    loaded: LoadedDefinitions,
}

impl DefinitionSource for SessionDefinitions {
    fn load(&self, digest: &Digest) -> Result<Arc<Definition>, StoreError> {
        self.loaded.load(digest, || read_definition(&self.directory, digest))
    }
}

/// Marks a session as open in this process, so that retention does not remove it. If the lock is
/// not possible, the session counts as not open.
fn mark_in_use(state: File) -> File {
    let _ = state.try_lock_shared();
    state
}

fn record_name(line: &[u8], head: Option<JournalHead>) -> String {
    let expected = head.map_or(0, |head| head.seq + 1);
    match parse_seq(line) {
        Some(seq) if seq == expected => seq.to_string(),
        Some(seq) => format!("{expected} (its number is {seq})"),
        None => expected.to_string(),
    }
}
