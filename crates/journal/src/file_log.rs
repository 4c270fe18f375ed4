//! One session of the embedded store: its journal, its saved state, its ids.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest, EventId};

use crate::chain::{check_line, claimed_seq, seal};
use crate::definitions::LoadedDefinitions;
use crate::error::{Context as _, StoreError};
use crate::file_store::{definition_in, definition_name, journal_file};
use crate::files::{create_directory, sync_directory, write_private};
use crate::head::Head;
use crate::ids::Ids;
use crate::lines::{for_each_line, line_from, line_start, locate};
use crate::record::{Body, Line, SNAPSHOT_MARK, parse_record};
use crate::slots::SavedState;
use crate::store::DefinitionSource;
use crate::{Log, lock, slots};

/// How far back a snapshot is looked for at first.
const REACH_BYTES: u64 = 1 << 20;

/// The file of records, open.
struct Journal {
    file: File,
    /// Its device and its number there, by which it is told from another of its name.
    which: (u64, u64),
    /// How long it is, as long as nobody else can write to it.
    length: Option<u64>,
}

/// A record, and the byte of the file at which it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    head: Head,
    bytes: u64,
}

/// The journal of one session in its directory.
pub(crate) struct FileLog {
    directory: PathBuf,
    /// Where the definitions of all sessions are.
    definitions: PathBuf,
    boot: u64,
    journal: Option<Journal>,
    state: Option<File>,
    ids: Option<Ids>,
    /// The last record as of the last look under the lock.
    end: Option<End>,
    /// The record of the state that was loaded last.
    loaded_state: Option<End>,
    repaired: Option<u64>,
    loaded: LoadedDefinitions,
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
            repaired: None,
            loaded,
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

    /// How long the journal is.
    fn length(&self) -> Result<u64, StoreError> {
        if let Some(length) = self.journal.as_ref().and_then(|journal| journal.length) {
            return Ok(length);
        }
        Ok(self.journal()?.metadata().context("look at the journal")?.len())
    }

    /// Remembers how long it is for as long as it is locked.
    fn set_length(&mut self, length: Option<u64>) {
        if let Some(journal) = &mut self.journal {
            journal.length = length;
        }
    }

    fn ids(&mut self) -> Result<&Ids, StoreError> {
        if self.ids.is_none() {
            let file = self.open_private("ids", "open the table of ids")?;
            self.ids = Some(Ids::new(file, self.boot));
        }
        self.ids
            .as_ref()
            .ok_or_else(|| io::Error::other("not open"))
            .context("use the table of ids")
    }

    /// Reads and checks every record behind `start`; gives the last one, and how many bytes after
    /// it belong to no complete record.
    fn scan(&self, start: Option<End>) -> Result<(Option<End>, u64), StoreError> {
        let file = self.journal()?;
        let mut end = start;
        let from = start.map_or(0, |end| end.bytes);
        let torn = for_each_line(file, from, &mut |line| {
            let head = end.map(|end| end.head);
            let fail = |reason: String| StoreError::Tampered { record: name(line, head), reason };
            let sealed = check_line(line).map_err(|fault| fail(fault.to_string()))?;
            let prev = head.map_or(Digest::ZERO, |head| head.hash);
            let next = Head::next_seq(head);
            if sealed.prev != prev || claimed_seq(line) != Some(next) {
                return Err(fail("it does not follow the record before it".to_owned()));
            }
            let bytes = end.map_or(0, |end| end.bytes) + line.len() as u64 + 1;
            end = Some(End { head: Head { seq: next, hash: sealed.hash }, bytes });
            Ok(())
        })
        .map_err(|error| error.or_io("read the journal"))?;
        Ok((end, torn))
    }

    /// Whether the journal still has, at the state's head, the record the state was saved with.
    /// Looks at its last bytes only.
    fn check_end(&self, end: &End, length: u64) -> Result<(), StoreError> {
        let End { head, bytes } = end;
        if length < *bytes {
            // If what is left is not what was written, that is the worse news.
            let (last, _) = self.scan(None)?;
            let found = last.map_or_else(|| "none".to_owned(), |end| end.head.seq.to_string());
            return Err(StoreError::Truncated { found, expected: head.seq });
        }
        let expected = format!("\"{}\"}}\n", head.hash);
        let mut last = vec![0; expected.len()];
        self.journal()?
            .read_exact_at(&mut last, bytes.saturating_sub(expected.len() as u64))
            .context("read the journal")?;
        if last != expected.as_bytes() {
            let reason = "it is not the record that was answered".to_owned();
            return Err(StoreError::Tampered { record: head.seq.to_string(), reason });
        }
        Ok(())
    }

    /// The record of the saved state; looked at again only where it has changed.
    fn saved_end(&mut self) -> Result<Option<End>, StoreError> {
        if let (Some(loaded), Some(file)) = (&self.loaded_state, &self.state)
            && slots::is_newest(file, &loaded.head)
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
                Ok(file) => self.state = Some(in_use(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                // Looking must work where writing does not.
                Err(_) => return slots::read(&File::open(&path).context("open the saved state")?),
            }
        }
        self.state.as_ref().map_or(Ok(None), slots::read)
    }

    /// Where the journal ends, after a torn tail was repaired.
    fn find_end(&mut self) -> Result<Option<End>, StoreError> {
        let length = self.length()?;
        if self.end.is_some_and(|end| end.bytes == length) {
            return Ok(self.end);
        }
        // An end that is remembered is as good as a saved one.
        let saved = self.saved_end()?;
        let known = self.end.into_iter().chain(saved).max_by_key(|end| end.head.seq);
        if let Some(known) = &known {
            self.check_end(known, length)?;
        }
        let (end, torn) = match known {
            Some(known) if known.bytes == length => (Some(known), 0),
            _ => self.scan(known)?,
        };
        if torn > 0 {
            self.set_length(None);
            let file = self.journal()?;
            file.set_len(end.map_or(0, |end| end.bytes)).context("repair the journal")?;
            file.sync_all().context("sync the journal")?;
            self.repaired = Some(self.repaired.unwrap_or(0) + torn);
        }
        self.end = end;
        Ok(end)
    }

    /// Where a record begins; none if there is no such record.
    fn start_of(&self, seq: u64) -> Result<Option<u64>, StoreError> {
        let known = self.end.into_iter().chain(self.loaded_state);
        if seq == 0 {
            return Ok(Some(0));
        }
        if let Some(before) = { known }.find(|end| end.head.seq + 1 == seq) {
            return Ok(Some(before.bytes));
        }
        let file = self.journal()?;
        let length = file.metadata().context("look at the journal")?.len();
        locate(file, seq, (0, length)).context("read the journal")
    }

    /// Adds new records to the table, if it is complete up to them.
    fn remember(
        &mut self,
        offsets: &[(Option<&EventId>, u64)],
        start: u64,
        end: u64,
    ) -> Result<(), StoreError> {
        let ids = self.ids()?;
        if ids.covers().context("read the table of ids")? == start {
            for (id, offset) in offsets {
                if let Some(id) = id {
                    ids.insert(id, *offset).context("write the table of ids")?;
                }
            }
            ids.set_covers(end).context("write the table of ids")?;
        }
        Ok(())
    }

    /// Looks an id up in the table, after completing it.
    fn look_up(&mut self, id: &EventId, end: u64) -> Result<Option<u64>, StoreError> {
        let covered = self.ids()?.covers().context("read the table of ids")?;
        if covered > end {
            return Err(io::Error::from(io::ErrorKind::InvalidData))
                .context("read the table of ids");
        }
        if covered < end {
            self.index(covered, end)?;
        }
        self.ids()?.find(id).context("read the table of ids")
    }

    fn clear_ids(&mut self) -> Result<(), StoreError> {
        self.ids()?.clear().context("write the table of ids")
    }

    /// Where the first record of an id begins, by reading the whole journal.
    fn search(&self, id: &EventId) -> Result<Option<u64>, StoreError> {
        let found = self.ids_from(0)?;
        Ok(found.into_iter().find(|(known, _)| known == id).map(|(_, offset)| offset))
    }

    /// Every id from a byte of the journal on, and where its record begins.
    fn ids_from(&self, from: u64) -> Result<Vec<(EventId, u64)>, StoreError> {
        let mut found = Vec::new();
        let mut offset = from;
        for_each_line(self.journal()?, from, &mut |line| {
            if let Ok(Line::Event(record)) = parse_record(line)
                && let Some(id) = record.event.id
            {
                found.push((id, offset));
            }
            offset += line.len() as u64 + 1;
            Ok::<(), StoreError>(())
        })
        .map_err(|error| error.or_io("read the journal"))?;
        Ok(found)
    }

    fn index(&mut self, from: u64, to: u64) -> Result<(), StoreError> {
        let found = self.ids_from(from)?;
        let ids = self.ids()?;
        for (id, offset) in found {
            ids.insert(&id, offset).context("write the table of ids")?;
        }
        ids.set_covers(to).context("write the table of ids")
    }
}

impl Log for FileLog {
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
            self.journal = Some(Journal { file, which, length: None });
        }
        let Some(journal) = &mut self.journal else { return Err(StoreError::Removed) };
        lock::exclusive(&journal.file)?;
        // If the name leads to another file or to none, this one was removed
        // since it was opened, and what is written there is lost.
        let named = fs::metadata(&path).ok();
        let ours = named.filter(|named| (named.dev(), named.ino()) == journal.which);
        journal.length = ours.map(|ours| ours.len());
        if journal.length.is_some() {
            return Ok(());
        }
        let _ = journal.file.unlock();
        Err(StoreError::Removed)
    }

    fn is_behind(&self, head: &Head) -> bool {
        // The last record that is known here tells how long the journal was at that head.
        let known = self.end.into_iter().chain(self.loaded_state).find(|end| end.head == *head);
        let length = self.length();
        !known.is_some_and(|end| length.is_ok_and(|length| length == end.bytes))
    }

    fn unlock(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.length = None;
            let _ = journal.file.unlock();
        }
    }

    fn head(&mut self) -> Result<Option<Head>, StoreError> {
        Ok(self.find_end()?.map(|end| end.head))
    }

    fn take_repaired(&mut self) -> Option<u64> {
        self.repaired.take()
    }

    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
        let saved = self.read_state()?;
        let end = |saved: &SavedState| End { head: saved.head, bytes: saved.journal_bytes };
        self.loaded_state = saved.as_ref().map(end);
        Ok(saved.map(|saved| (saved.head, saved.bytes)))
    }

    fn append(&mut self, expected: Option<Head>, bodies: &[Body]) -> Result<Head, StoreError> {
        let before = self.find_end()?;
        if before.map(|end| end.head) != expected {
            return Err(StoreError::Moved);
        }
        let start = before.map_or(0, |end| end.bytes);
        let mut head = expected;
        let mut bytes = Vec::new();
        let mut offsets = Vec::new();
        for body in bodies {
            let (line, hash) = seal(&body.json, &head.map_or(Digest::ZERO, |head| head.hash));
            offsets.push((body.id.as_ref(), start + bytes.len() as u64));
            bytes.extend_from_slice(&line);
            head = Some(Head { seq: body.seq, hash });
        }
        let nothing = || io::Error::other("there is nothing to append");
        let head = head.ok_or_else(nothing).context("append to the journal")?;
        self.set_length(None);
        let file = self.journal()?;
        let written = { file }.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Nothing was answered yet, so nothing may stay; what can't be
            // removed now is a torn tail for the next one who looks.
            let _ = file.set_len(start);
            return Err(error).context("append to the journal");
        }
        let end = start + bytes.len() as u64;
        self.end = Some(End { head, bytes: end });
        self.set_length(Some(end));
        // The record is durable, so nothing may fail from here on: a table that
        // is behind is completed by the next one who looks something up.
        let _ = self.remember(&offsets, start, end);
        Ok(head)
    }

    fn save_state(&mut self, head: &Head, state: &[u8]) -> Result<(), StoreError> {
        let next = match self.start_of(head.seq + 1)? {
            Some(next) => next,
            None => self.length()?,
        };
        if self.state.is_none() {
            self.state = Some(in_use(self.open_private("state", "open the saved state")?));
        }
        self.state
            .as_ref()
            .map_or(Ok(()), |file| slots::write(file, head, next, state))
            .context("write the saved state")
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Some(start) = self.start_of(from)? else { return Ok(()) };
        for_each_line(self.journal()?, start, each)
            .map(|_| ())
            .map_err(|error| error.or_io("read the journal"))
    }

    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match File::open(journal_file(&self.directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => line_from(&opened.context("open the journal")?, 0)
                .map_err(|error| error.or_io("read the journal")),
        }
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        let end = self.find_end()?.map_or(0, |end| end.bytes);
        let file = self.journal()?;
        let mut found = None;
        // Backwards by chunks that grow, each read forwards by lines: a
        // snapshot is never more than a few thousand records away.
        let mut reach = REACH_BYTES;
        while found.is_none() {
            let from = line_start(file, end.saturating_sub(reach)).context("read the journal")?;
            for_each_line(file, from, &mut |line| {
                if line.windows(SNAPSHOT_MARK.len()).rev().any(|window| window == SNAPSHOT_MARK)
                    && let Ok(Line::Event(record)) = parse_record(line)
                    && record.snapshot.is_some()
                {
                    found = Some(record.seq);
                }
                Ok::<(), StoreError>(())
            })
            .map_err(|error| error.or_io("read the journal"))?;
            if reach >= end {
                break;
            }
            reach = reach.saturating_mul(8);
        }
        Ok(found)
    }

    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(end) = self.find_end()?.map(|end| end.bytes) else { return Ok(None) };
        let offset = match self.look_up(id, end) {
            Ok(offset) => offset,
            // A damaged table is made anew; where even that fails, the journal
            // itself is searched. Slow is better than twice.
            Err(_) => match self.clear_ids().and_then(|()| self.look_up(id, end)) {
                Ok(offset) => offset,
                Err(_) => self.search(id)?,
            },
        };
        let Some(offset) = offset else { return Ok(None) };
        let line =
            line_from(self.journal()?, offset).map_err(|error| error.or_io("read the journal"))?;
        // The table is only a hint: the record itself says whose it is.
        Ok(line.filter(|line| match parse_record(line) {
            Ok(Line::Event(record)) => record.event.id.as_ref() == Some(id),
            _ => false,
        }))
    }

    fn keep_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError> {
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
        // Where a file system has no links, each session has a copy.
        if fs::hard_link(&shared, &own).is_err() && !own.exists() {
            write_private(&own, &fs::read(&shared).context("read a definition")?)?;
        }
        Ok(sync_directory(&self.directory)?)
    }

    fn definitions(&self) -> Box<dyn DefinitionSource> {
        Box::new(SessionDefinitions {
            directory: self.directory.clone(),
            loaded: self.loaded.clone(),
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
        self.loaded.load(digest, || definition_in(&self.directory, digest))
    }
}

/// Marks a session as open here for as long as the file is: retention leaves
/// it alone. Where that can't be, it is as if nobody had it open.
fn in_use(state: File) -> File {
    let _ = state.try_lock_shared();
    state
}

fn name(line: &[u8], head: Option<Head>) -> String {
    let expected = head.map_or(0, |head| head.seq + 1);
    match claimed_seq(line) {
        Some(seq) if seq == expected => seq.to_string(),
        Some(seq) => format!("{expected} (it says {seq})"),
        None => expected.to_string(),
    }
}
