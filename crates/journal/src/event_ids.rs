//! A table on disk from event ids to record offsets. It grows without being copied.
//!
//! The table has levels of growing size, and each level is an array of slots. A slot is free or has
//! the entry of one id. An id is stored in the first level with a free slot among the few slots
//! that its hash selects. Entries are never removed, so a search ends at the first free slot.
//!
//! The table is a cache of the journal. `FileLog` in `file_log.rs` is its only user:
//!
//! - After it appends records, it adds their ids. It ignores errors, because the records are
//!   already durable. The table is then outdated.
//! - Before it looks up an id, it completes an outdated table from the journal. The header tells up
//!   to which offset of the journal the table is complete.
//! - If a lookup fails, it clears the table, creates all entries again and repeats the lookup. If
//!   that fails too, it searches the journal itself.
//!
//! Header and entries have checksums. A damaged header is not an error: `covered_bytes` clears the
//! table and returns 0, so the next lookup adds all entries again. A damaged entry is an error of
//! `find` and `insert`. A lookup that gets this error clears the table.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use jackline_engine::EventId;
use jackline_engine::digest::Digest128;

const MAGIC: &[u8; 8] = b"JLIDS\0\x02\0";

/// The fields of the header: the magic bytes, the boot, the covered bytes, and the length of the
/// file when the header was written. A checksum follows.
///
/// A file that is shorter than this length has lost entries, and its missing slots would count as
/// free. So its header is not valid.
const FIELDS_BYTES: usize = 8 + 8 + 8 + 8;
const HEADER_BYTES: u64 = 64;

/// An entry: the digest of the id, the offset of its record plus one, and a checksum. One is added
/// so that an entry is never all zeros: a slot of zeros is free.
const ENTRY_BYTES: usize = 16 + 8 + 8;

/// The number of neighbouring slots of each level in which an id may be stored.
const SLOTS_PER_LEVEL: usize = 16;

/// The number of slots in the first level; each further level has four times as many. It is small,
/// because ids are spread over a whole level and each touched page is a block on disk.
const FIRST_LEVEL_SLOTS: u64 = 64;

/// The number of levels. No journal has enough ids to fill them.
const LEVELS_MAX: u32 = 20;

/// The table of one session.
pub(crate) struct EventIdTable {
    file: File,
    /// The boot in which the table was written. After a crash of the machine, any of its pages may
    /// be lost, so it is created again.
    boot: u64,
}

impl EventIdTable {
    pub(crate) fn new(file: File, boot: u64) -> Self {
        Self { file, boot }
    }

    /// The offset in the journal up to which the table is complete. A table from another boot or
    /// with a damaged header is cleared, and the offset is then 0. Entries are not checked here.
    pub(crate) fn covered_bytes(&self) -> io::Result<u64> {
        if let Some(covered_bytes) = self.read_header() {
            return Ok(covered_bytes);
        }
        self.clear()?;
        Ok(0)
    }

    /// The covered bytes in the header, if it is valid.
    fn read_header(&self) -> Option<u64> {
        let mut header = [0; FIELDS_BYTES + 8];
        self.file.read_exact_at(&mut header, 0).ok()?;
        let (fields, stored_checksum) = header.split_at(FIELDS_BYTES);
        let mut rest = fields;
        let magic = rest.split_off(..8);
        let boot = rest.split_off(..8);
        let covered_bytes = rest.split_off(..8).and_then(parse_u64);
        let length = parse_u64(rest);
        let is_valid = stored_checksum == checksum(fields)
            && magic == Some(MAGIC)
            && boot == Some(&self.boot.to_le_bytes())
            && length.is_some_and(|length| self.length().is_ok_and(|current| current >= length));
        covered_bytes.filter(|_| is_valid)
    }

    /// The current length of the file.
    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Removes all entries.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Sets the offset in the journal up to which the table is complete. The caller has added all
    /// ids before this offset.
    pub(crate) fn set_covered_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut header = Vec::with_capacity(FIELDS_BYTES + 8);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&self.boot.to_le_bytes());
        header.extend_from_slice(&bytes.to_le_bytes());
        header.extend_from_slice(&self.length()?.to_le_bytes());
        let header_checksum = checksum(&header);
        header.extend_from_slice(&header_checksum);
        self.file.write_all_at(&header, 0)
    }

    /// The offset of the record of an id. Fails with `InvalidData` if the search meets a damaged
    /// entry. The caller then clears the table and creates it again.
    pub(crate) fn find(&self, id: &EventId) -> io::Result<Option<u64>> {
        Ok(match self.find_slot(&digest(id))? {
            IdSlot::Taken(offset) => Some(offset),
            IdSlot::Free(_) | IdSlot::None => None,
        })
    }

    /// Adds the offset of the record of an id, unless the id is already stored. Fails like `find`.
    ///
    /// If all slots of the id are taken in all levels, the id is dropped without an error, and
    /// `find` will not find it. `LEVELS_MAX` is so large that this does not happen.
    pub(crate) fn insert(&self, id: &EventId, offset: u64) -> io::Result<()> {
        let digest = digest(id);
        if let IdSlot::Free(slot_at) = self.find_slot(&digest)? {
            let mut entry = digest.as_bytes().to_vec();
            entry.extend_from_slice(&(offset + 1).to_le_bytes());
            let entry_checksum = checksum(&entry);
            entry.extend_from_slice(&entry_checksum);
            self.file.write_all_at(&entry, slot_at)?;
        }
        Ok(())
    }

    /// The slot of an id, or else the slot in which to store it. Goes through the slots that the
    /// hash of the id selects, level by level.
    fn find_slot(&self, digest: &Digest128) -> io::Result<IdSlot> {
        let hash = digest.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let mut level_at = HEADER_BYTES;
        let mut level_slots = FIRST_LEVEL_SLOTS;
        for _ in 0..LEVELS_MAX {
            let slots_at = level_at + (hash % level_slots) * ENTRY_BYTES as u64;
            let mut slots = [0; SLOTS_PER_LEVEL * ENTRY_BYTES];
            read_up_to(&self.file, &mut slots, slots_at)?;
            for (index, slot) in slots.chunks_exact(ENTRY_BYTES).enumerate() {
                if slot.iter().all(|byte| *byte == 0) {
                    return Ok(IdSlot::Free(slots_at + (index * ENTRY_BYTES) as u64));
                }
                let (fields, stored_checksum) = slot.split_at(ENTRY_BYTES - 8);
                if stored_checksum != checksum(fields) {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the table of ids is damaged",
                    ));
                }
                let (stored_digest, offset) = fields.split_at(16);
                let offset = parse_u64(offset).unwrap_or(1);
                if stored_digest == digest.as_bytes() {
                    return Ok(IdSlot::Taken(offset.saturating_sub(1)));
                }
            }
            // The slots of an id may reach past the end of the level, so each level ends with spare
            // slots.
            level_at += (level_slots + SLOTS_PER_LEVEL as u64) * ENTRY_BYTES as u64;
            level_slots *= 4;
        }
        Ok(IdSlot::None)
    }
}

/// The result of the search for the slot of an id.
enum IdSlot {
    /// The id is stored, with this offset of its record in the journal.
    Taken(u64),
    /// The id is not stored. The slot at this offset of the table is free for it.
    Free(u64),
    /// The id is not stored, and no slot is free for it in any level.
    None,
}

fn parse_u64(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// A checksum of eight bytes.
fn checksum(bytes: &[u8]) -> [u8; 8] {
    Digest128::of(bytes).as_bytes().first_chunk().copied().unwrap_or_default()
}

fn digest(id: &EventId) -> Digest128 {
    Digest128::of(id.as_str().as_bytes())
}

/// Reads the existing bytes. Bytes after the end of the file stay zero, so those slots are free.
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
    fn every_stored_id_is_found_and_no_other() {
        let ids = EventIdTable::new(tempfile::tempfile().unwrap(), 7);
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
        let ids = EventIdTable::new(tempfile::tempfile().unwrap(), 7);
        let id = EventId::parse("e").unwrap();
        ids.insert(&id, 5).unwrap();
        ids.insert(&id, 9).unwrap();
        assert_eq!(ids.find(&id).unwrap(), Some(5));
    }

    #[test]
    fn a_table_of_another_boot_is_created_again() {
        let file = tempfile::tempfile().unwrap();
        let ids = EventIdTable::new(file.try_clone().unwrap(), 7);
        ids.insert(&EventId::parse("e").unwrap(), 5).unwrap();
        ids.set_covered_bytes(100).unwrap();
        assert_eq!(ids.covered_bytes().unwrap(), 100);
        let ids = EventIdTable::new(file, 8);
        assert_eq!(ids.covered_bytes().unwrap(), 0);
        assert_eq!(ids.find(&EventId::parse("e").unwrap()).unwrap(), None);
    }
}
