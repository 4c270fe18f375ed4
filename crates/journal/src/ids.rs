//! Where the record of an event id begins: a table on disk that grows without
//! ever being copied.
//!
//! Levels of growing size. An id goes to the first level that has room in the
//! few places where the id may stand; nothing is ever removed, so a search
//! ends at the first free place. The table is a cache of the journal: it says
//! up to where it is complete, and what is missing is added again. Header and
//! entries carry checks, so that a damaged table is made anew.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use jackline_engine::EventId;
use jackline_engine::digest::Digest128;

const MAGIC: &[u8; 8] = b"JLIDS\0\x02\0";

/// Magic, boot, covers, length, check.
const FIELDS_BYTES: usize = 8 + 8 + 8 + 8;
const HEADER_BYTES: u64 = 64;

/// A digest, an offset plus one so that zero means free, and a check.
const ENTRY_BYTES: usize = 16 + 8 + 8;

/// How many neighbouring places an id may stand in, on each level.
const PLACES: usize = 16;

/// The places of the first level; each further level has four times as many. Small, because ids
/// fall anywhere in a level and each touched page is a block on the disk.
const FIRST_LEVEL: u64 = 64;

/// More levels than any journal can fill.
const LEVELS_MAX: u32 = 20;

/// The table of one session.
pub(crate) struct Ids {
    file: File,
    /// Which start of the machine wrote the table: after a crash of the whole
    /// machine its pages may be lost in any order, so it is made anew.
    boot: u64,
}

impl Ids {
    pub(crate) fn new(file: File, boot: u64) -> Self {
        Self { file, boot }
    }

    /// Up to which byte of the journal the table is complete. One that is
    /// damaged, or of another boot, is emptied.
    pub(crate) fn covers(&self) -> io::Result<u64> {
        if let Some(covers) = self.read_header() {
            return Ok(covers);
        }
        self.clear()?;
        Ok(0)
    }

    fn read_header(&self) -> Option<u64> {
        let mut header = [0; FIELDS_BYTES + 8];
        self.file.read_exact_at(&mut header, 0).ok()?;
        let (fields, checked) = header.split_at(FIELDS_BYTES);
        let mut rest = fields;
        let magic = rest.split_off(..8);
        let boot = rest.split_off(..8);
        let covers = rest.split_off(..8).and_then(number);
        let length = number(rest);
        let whole = checked == check(fields)
            && magic == Some(MAGIC)
            && boot == Some(&self.boot.to_le_bytes())
            && length.is_some_and(|length| self.length().is_ok_and(|found| found >= length));
        covers.filter(|_| whole)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Empties the table.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Says that the table is complete up to a byte of the journal.
    pub(crate) fn set_covers(&self, bytes: u64) -> io::Result<()> {
        let mut header = Vec::with_capacity(FIELDS_BYTES + 8);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&self.boot.to_le_bytes());
        header.extend_from_slice(&bytes.to_le_bytes());
        header.extend_from_slice(&self.length()?.to_le_bytes());
        let checked = check(&header);
        header.extend_from_slice(&checked);
        self.file.write_all_at(&header, 0)
    }

    /// Where the record of an id begins; an error of kind `InvalidData` if the
    /// table is damaged.
    pub(crate) fn find(&self, id: &EventId) -> io::Result<Option<u64>> {
        Ok(match self.locate(&digest(id))? {
            Place::Taken(offset) => Some(offset),
            Place::Free(_) | Place::None => None,
        })
    }

    /// Remembers where the record of an id begins; the first one stays.
    pub(crate) fn insert(&self, id: &EventId, offset: u64) -> io::Result<()> {
        let digest = digest(id);
        if let Place::Free(at) = self.locate(&digest)? {
            let mut entry = digest.as_bytes().to_vec();
            entry.extend_from_slice(&(offset + 1).to_le_bytes());
            let checked = check(&entry);
            entry.extend_from_slice(&checked);
            self.file.write_all_at(&entry, at)?;
        }
        Ok(())
    }

    fn locate(&self, digest: &Digest128) -> io::Result<Place> {
        let hash = digest.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let mut level_at = HEADER_BYTES;
        let mut level_places = FIRST_LEVEL;
        for _ in 0..LEVELS_MAX {
            let at = level_at + (hash % level_places) * ENTRY_BYTES as u64;
            let mut window = [0; PLACES * ENTRY_BYTES];
            read_up_to(&self.file, &mut window, at)?;
            for (place, entry) in window.chunks_exact(ENTRY_BYTES).enumerate() {
                if entry.iter().all(|byte| *byte == 0) {
                    return Ok(Place::Free(at + (place * ENTRY_BYTES) as u64));
                }
                let (fields, checked) = entry.split_at(ENTRY_BYTES - 8);
                if checked != check(fields) {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a damaged table"));
                }
                let (known, offset) = fields.split_at(16);
                let offset = number(offset).unwrap_or(1);
                if known == digest.as_bytes() {
                    return Ok(Place::Taken(offset.saturating_sub(1)));
                }
            }
            // The window may reach past the level, so levels end with spare places.
            level_at += (level_places + PLACES as u64) * ENTRY_BYTES as u64;
            level_places *= 4;
        }
        Ok(Place::None)
    }
}

enum Place {
    Taken(u64),
    Free(u64),
    None,
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Eight bytes that tell whether others are what was written.
fn check(bytes: &[u8]) -> [u8; 8] {
    Digest128::of(bytes).as_bytes().first_chunk().copied().unwrap_or_default()
}

fn digest(id: &EventId) -> Digest128 {
    Digest128::of(id.as_str().as_bytes())
}

/// Reads what is there; beyond the end everything is free.
fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_found_and_no_other() {
        let ids = Ids::new(tempfile::tempfile().unwrap(), 7);
        let id = |n: u64| EventId::parse(format!("event-{n}")).unwrap();
        for n in 0..20_000 {
            ids.insert(&id(n), n * 10).unwrap();
        }
        for n in 0..20_000 {
            assert_eq!(ids.find(&id(n)).unwrap(), Some(n * 10), "id {n}");
            assert_eq!(ids.find(&id(n + 1_000_000)).unwrap(), None);
        }
    }

    #[test]
    fn the_first_record_of_an_id_stays() {
        let ids = Ids::new(tempfile::tempfile().unwrap(), 7);
        let id = EventId::parse("e").unwrap();
        ids.insert(&id, 5).unwrap();
        ids.insert(&id, 9).unwrap();
        assert_eq!(ids.find(&id).unwrap(), Some(5));
    }

    #[test]
    fn a_table_of_another_boot_is_made_anew() {
        let file = tempfile::tempfile().unwrap();
        let ids = Ids::new(file.try_clone().unwrap(), 7);
        ids.insert(&EventId::parse("e").unwrap(), 5).unwrap();
        ids.set_covers(100).unwrap();
        assert_eq!(ids.covers().unwrap(), 100);
        let ids = Ids::new(file, 8);
        assert_eq!(ids.covers().unwrap(), 0);
        assert_eq!(ids.find(&EventId::parse("e").unwrap()).unwrap(), None);
    }
}
