//! One session of the embedded store: its journal, its saved state, its ids.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::{Digest, EventId};

use crate::chain::{check_line, claimed_seq, seal};
use crate::error::{Context as _, StoreError};
use crate::file::{create_directory, sync_directory};
use crate::head::Head;
use crate::ids::Ids;
use crate::lines::{for_each_line, line_from, line_start};
use crate::record::{Body, Line, SNAPSHOT_MARK, parse_record};
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

/// The journal of one session in its directory.
pub struct FileLog {
    directory: PathBuf,
    boot: u64,
    journal: Option<Journal>,
    state: Option<File>,
    ids: Option<Ids>,
    /// The head as of the last look under the lock.
    head: Option<Head>,
    /// The head of the state that was loaded last.
    loaded: Option<Head>,
    repaired: Option<u64>,
}

impl FileLog {
    pub(crate) fn new(directory: PathBuf, boot: u64) -> Self {
        Self {
            directory,
            boot,
            journal: None,
            state: None,
            ids: None,
            head: None,
            loaded: None,
            repaired: None,
        }
    }

    /// The file of records.
    pub fn journal_path(&self) -> PathBuf {
        self.directory.join("journal.jsonl")
    }

    fn state_path(&self) -> PathBuf {
        self.directory.join("state")
    }

    fn open_private(path: &Path) -> Result<File, StoreError> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .context("open", path)
    }

    fn journal(&self) -> Result<(&File, PathBuf), StoreError> {
        let path = self.journal_path();
        match &self.journal {
            Some(journal) => Ok((&journal.file, path)),
            None => Err(io::Error::other("the session is not locked")).context("use", &path),
        }
    }

    /// How long the journal is.
    fn length(&self) -> Result<u64, StoreError> {
        if let Some(length) = self.journal.as_ref().and_then(|journal| journal.length) {
            return Ok(length);
        }
        let (file, path) = self.journal()?;
        Ok(file.metadata().context("look at", &path)?.len())
    }

    /// Remembers how long it is for as long as it is locked.
    fn set_length(&mut self, length: Option<u64>) {
        if let Some(journal) = &mut self.journal {
            journal.length = length;
        }
    }

    fn ids(&mut self) -> Result<&Ids, StoreError> {
        if self.ids.is_none() {
            let file = Self::open_private(&self.directory.join("ids"))?;
            self.ids = Some(Ids::new(file, self.boot));
        }
        let path = self.directory.join("ids");
        self.ids.as_ref().ok_or_else(|| io::Error::other("not open")).context("use", &path)
    }

    /// Reads and checks every line from `start` on; gives the last head and how
    /// many bytes after it belong to no complete line.
    fn scan(&self, start: Option<Head>) -> Result<(Option<Head>, u64), StoreError> {
        let (file, path) = self.journal()?;
        let mut head = start;
        let from = start.map_or(0, |head| head.bytes);
        let torn = for_each_line(file, from, &mut |line| {
            let fail = |reason: String| StoreError::Tampered { record: name(line, head), reason };
            let sealed = check_line(line).map_err(|fault| fail(fault.to_string()))?;
            let prev = head.map_or(Digest::ZERO, |head| head.hash);
            let next = head.map_or(0, |head| head.seq + 1);
            if sealed.prev != prev || claimed_seq(line) != Some(next) {
                return Err(fail("it does not follow the record before it".to_owned()));
            }
            let bytes = head.map_or(0, |head| head.bytes) + line.len() as u64 + 1;
            head = Some(Head { seq: next, hash: sealed.hash, bytes });
            Ok(())
        })
        .map_err(|error| error.or_io("read", &path))?;
        Ok((head, torn))
    }

    /// Whether the journal still has, at the state's head, the record the
    /// state was saved with. Looks at its last bytes only.
    fn check_head(&self, head: &Head, length: u64) -> Result<(), StoreError> {
        let (file, path) = self.journal()?;
        if length < head.bytes {
            // If what is left is not what was written, that is the worse news.
            let (last, _) = self.scan(None)?;
            let found = last.map_or_else(|| "none".to_owned(), |head| head.seq.to_string());
            return Err(StoreError::Truncated { found, expected: head.seq });
        }
        let expected = format!("\"{}\"}}\n", head.hash);
        let mut end = vec![0; expected.len()];
        file.read_exact_at(&mut end, head.bytes.saturating_sub(expected.len() as u64))
            .context("read", &path)?;
        if end != expected.as_bytes() {
            let reason = "it is not the record that was answered".to_owned();
            return Err(StoreError::Tampered { record: head.seq.to_string(), reason });
        }
        Ok(())
    }

    /// The head of the saved state; looked at again only where it has changed.
    fn saved_head(&mut self) -> Result<Option<Head>, StoreError> {
        if let (Some(loaded), Some(file)) = (&self.loaded, &self.state)
            && slots::is_newest(file, loaded)
        {
            return Ok(self.loaded);
        }
        Ok(self.load_state()?.map(|(head, _)| head))
    }

    fn read_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
        if self.state.is_none() {
            let path = self.state_path();
            match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(file) => self.state = Some(in_use(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                // Looking must work where writing does not.
                Err(_) => return slots::read(&File::open(&path).context("open", &path)?),
            }
        }
        self.state.as_ref().map_or(Ok(None), slots::read)
    }

    /// Adds new records to the table, if it is complete up to them.
    fn remember(
        &mut self,
        offsets: &[(Option<&EventId>, u64)],
        start: u64,
        end: u64,
    ) -> Result<(), StoreError> {
        let path = self.directory.join("ids");
        let ids = self.ids()?;
        if ids.covers().context("read", &path)? == start {
            for (id, offset) in offsets {
                if let Some(id) = id {
                    ids.insert(id, *offset).context("write", &path)?;
                }
            }
            ids.set_covers(end).context("write", &path)?;
        }
        Ok(())
    }

    /// Looks an id up in the table, after completing it.
    fn look_up(&mut self, id: &EventId, end: u64) -> Result<Option<u64>, StoreError> {
        let path = self.directory.join("ids");
        let covered = self.ids()?.covers().context("read", &path)?;
        if covered > end {
            return Err(io::Error::from(io::ErrorKind::InvalidData)).context("read", &path);
        }
        if covered < end {
            self.index(covered, end)?;
        }
        self.ids()?.find(id).context("read", &path)
    }

    fn clear_ids(&mut self) -> Result<(), StoreError> {
        let path = self.directory.join("ids");
        self.ids()?.clear().context("write", &path)
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
        let (file, path) = self.journal()?;
        for_each_line(file, from, &mut |line| {
            if let Ok(Line::Event(record)) = parse_record(line)
                && let Some(id) = record.event.id
            {
                found.push((id, offset));
            }
            offset += line.len() as u64 + 1;
            Ok::<(), StoreError>(())
        })
        .map_err(|error| error.or_io("read", &path))?;
        Ok(found)
    }

    fn index(&mut self, from: u64, to: u64) -> Result<(), StoreError> {
        let found = self.ids_from(from)?;
        let ids_path = self.directory.join("ids");
        let ids = self.ids()?;
        for (id, offset) in found {
            ids.insert(&id, offset).context("write", &ids_path)?;
        }
        ids.set_covers(to).context("write", &ids_path)
    }
}

impl Log for FileLog {
    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }

    fn lock(&mut self) -> Result<(), StoreError> {
        let path = self.journal_path();
        if self.journal.is_none() {
            create_directory(&self.directory)?;
            let new = !path.exists();
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)
                .context("open", &path)?;
            if new {
                sync_directory(&self.directory)?;
            }
            let ours = file.metadata().context("look at", &path)?;
            let which = (ours.dev(), ours.ino());
            self.journal = Some(Journal { file, which, length: None });
        }
        let Some(journal) = &mut self.journal else { return Err(StoreError::Removed) };
        lock::exclusive(&journal.file, &path)?;
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
        self.length().map_or(true, |length| length != head.bytes)
    }

    fn unlock(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.length = None;
            let _ = journal.file.unlock();
        }
    }

    fn head(&mut self) -> Result<Option<Head>, StoreError> {
        let length = self.length()?;
        if self.head.is_some_and(|head| head.bytes == length) {
            return Ok(self.head);
        }
        // A head that is remembered is as good as a saved one.
        let saved = self.saved_head()?;
        let known = self.head.into_iter().chain(saved).max_by_key(|head| head.seq);
        if let Some(known) = &known {
            self.check_head(known, length)?;
        }
        let (head, torn) = match known {
            Some(known) if known.bytes == length => (Some(known), 0),
            _ => self.scan(known)?,
        };
        if torn > 0 {
            self.set_length(None);
            let (file, path) = self.journal()?;
            file.set_len(head.map_or(0, |head| head.bytes)).context("repair", &path)?;
            file.sync_all().context("sync", &path)?;
            self.repaired = Some(self.repaired.unwrap_or(0) + torn);
        }
        self.head = head;
        Ok(head)
    }

    fn take_repaired(&mut self) -> Option<u64> {
        self.repaired.take()
    }

    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
        let loaded = self.read_state()?;
        self.loaded = loaded.as_ref().map(|(head, _)| *head);
        Ok(loaded)
    }

    fn append(&mut self, bodies: &[Body]) -> Result<Head, StoreError> {
        let before = self.head()?;
        let start = before.map_or(0, |head| head.bytes);
        let mut head = before;
        let mut bytes = Vec::new();
        let mut offsets = Vec::new();
        for body in bodies {
            let (line, hash) = seal(&body.json, &head.map_or(Digest::ZERO, |head| head.hash));
            offsets.push((body.id.as_ref(), start + bytes.len() as u64));
            bytes.extend_from_slice(&line);
            head = Some(Head { seq: body.seq, hash, bytes: start + bytes.len() as u64 });
        }
        self.set_length(None);
        let (file, path) = self.journal()?;
        let written = { file }.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Nothing was answered yet, so nothing may stay; what can't be
            // removed now is a torn tail for the next one who looks.
            let _ = file.set_len(start);
            return Err(error).context("append to", &path);
        }
        self.head = head;
        self.set_length(head.map(|head| head.bytes));
        // The record is durable, so nothing may fail from here on: a table that
        // is behind is completed by the next one who looks something up.
        let _ = self.remember(&offsets, start, head.map_or(0, |head| head.bytes));
        head.ok_or_else(|| io::Error::other("nothing to append")).context("append to", &path)
    }

    fn save_state(&mut self, head: &Head, state: &[u8]) -> Result<(), StoreError> {
        let path = self.state_path();
        if self.state.is_none() {
            self.state = Some(in_use(Self::open_private(&path)?));
        }
        self.state
            .as_ref()
            .map_or(Ok(()), |file| slots::write(file, head, state))
            .context("write", &path)
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (file, path) = self.journal()?;
        for_each_line(file, from, each).map(|_| ()).map_err(|error| error.or_io("read", &path))
    }

    fn line_at(&mut self, from: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.journal_path();
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => line_from(&opened.context("open", &path)?, from)
                .map_err(|error| error.or_io("read", &path)),
        }
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        let end = self.head()?.map_or(0, |head| head.bytes);
        let (file, path) = self.journal()?;
        let mut found = None;
        // Backwards by chunks that grow, each read forwards by lines: a
        // snapshot is never more than a few thousand records away.
        let mut reach = REACH_BYTES;
        while found.is_none() {
            let from = line_start(file, end.saturating_sub(reach)).context("read", &path)?;
            let mut offset = from;
            for_each_line(file, from, &mut |line| {
                if line.windows(SNAPSHOT_MARK.len()).rev().any(|window| window == SNAPSHOT_MARK)
                    && matches!(parse_record(line), Ok(Line::Event(record)) if record.snapshot.is_some())
                {
                    found = Some(offset);
                }
                offset += line.len() as u64 + 1;
                Ok::<(), StoreError>(())
            })
            .map_err(|error| error.or_io("read", &path))?;
            if reach >= end {
                break;
            }
            reach = reach.saturating_mul(8);
        }
        Ok(found)
    }

    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(head) = self.head()? else { return Ok(None) };
        let offset = match self.look_up(id, head.bytes) {
            Ok(offset) => offset,
            // A damaged table is made anew; where even that fails, the journal
            // itself is searched. Slow is better than twice.
            Err(_) => match self.clear_ids().and_then(|()| self.look_up(id, head.bytes)) {
                Ok(offset) => offset,
                Err(_) => self.search(id)?,
            },
        };
        let Some(offset) = offset else { return Ok(None) };
        let (file, path) = self.journal()?;
        let line = line_from(file, offset).map_err(|error| error.or_io("read", &path))?;
        // The table is only a hint: the record itself says whose it is.
        Ok(line.filter(|line| match parse_record(line) {
            Ok(Line::Event(record)) => record.event.id.as_ref() == Some(id),
            _ => false,
        }))
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
