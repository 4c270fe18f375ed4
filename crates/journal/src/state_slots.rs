//! The saved state, in two slots of one file. The slots are written in turn, so that an interrupted
//! write leaves the other slot intact.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use jackline_engine::Digest;
use jackline_engine::bounds::STATE_BYTES_MAX;

use crate::error::StoreError;
use crate::head::JournalHead;

/// A saved state, and the end of the journal to which it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedState {
    pub(crate) head: JournalHead,
    /// The length of the journal, up to the end of the head record.
    pub(crate) journal_bytes: u64,
    pub(crate) bytes: Vec<u8>,
}

const MAGIC: &[u8; 8] = b"JLSTATE\0";
const FORMAT: u32 = 1;

/// Magic, format, length, sequence, bytes, head, checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 8 + 32 + 32;
const CHECKSUM_AT: usize = HEADER_BYTES - 32;
const SLOT_BYTES: u64 = 256 * 1024;

/// Writes the state of `head` into its slot.
pub(crate) fn write_state(
    file: &File,
    head: &JournalHead,
    journal_bytes: u64,
    state: &[u8],
) -> io::Result<()> {
    if state.len() > STATE_BYTES_MAX {
        return Err(io::Error::other(format!("the state is too large: {} bytes", state.len())));
    }
    let mut slot = Vec::with_capacity(HEADER_BYTES + state.len());
    slot.extend_from_slice(MAGIC);
    slot.extend_from_slice(&FORMAT.to_le_bytes());
    slot.extend_from_slice(&u32::try_from(state.len()).unwrap_or(0).to_le_bytes());
    slot.extend_from_slice(&head.seq.to_le_bytes());
    slot.extend_from_slice(&journal_bytes.to_le_bytes());
    slot.extend_from_slice(head.hash.as_bytes());
    let mut hashed = slot.clone();
    hashed.extend_from_slice(state);
    slot.extend_from_slice(Digest::of(&hashed).as_bytes());
    slot.extend_from_slice(state);
    file.write_all_at(&slot, (head.seq % 2) * SLOT_BYTES)
}

/// Reads the newer intact slot. A damaged slot counts as missing.
pub(crate) fn read_state(file: &File) -> Result<Option<SavedState>, StoreError> {
    let mut slots = [SlotHeader::read(file, 0), SlotHeader::read(file, 1)];
    slots.sort_by_key(|slot| std::cmp::Reverse(slot.as_ref().map(|header| header.head.seq)));
    for header in slots.into_iter().flatten() {
        if let Some(bytes) = header.state(file) {
            if header.format > FORMAT {
                let (found, known) = (header.format, FORMAT);
                return Err(StoreError::Newer { what: "the saved state", found, known });
            }
            let SlotHeader { head, journal_bytes, .. } = header;
            return Ok(Some(SavedState { head, journal_bytes, bytes }));
        }
    }
    Ok(None)
}

/// Whether a head that was read before is still that of the newer slot. Reads only the headers.
pub(crate) fn is_newest(file: &File, head: &JournalHead) -> bool {
    let newest = [SlotHeader::read(file, 0), SlotHeader::read(file, 1)].into_iter().flatten();
    newest.map(|header| header.head).max_by_key(|head| head.seq) == Some(*head)
}

struct SlotHeader {
    at: u64,
    fields: [u8; CHECKSUM_AT],
    checksum: [u8; 32],
    format: u32,
    length: usize,
    head: JournalHead,
    journal_bytes: u64,
}

impl SlotHeader {
    fn read(file: &File, number: u64) -> Option<Self> {
        let at = number * SLOT_BYTES;
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, at).ok()?;
        let mut rest = bytes.as_slice();
        let fields: [u8; CHECKSUM_AT] = take(&mut rest)?;
        let checksum = take(&mut rest)?;
        let mut rest = fields.as_slice();
        if take::<8>(&mut rest).as_ref() != Some(MAGIC) {
            return None;
        }
        let format = u32::from_le_bytes(take(&mut rest)?);
        let length = u32::from_le_bytes(take(&mut rest)?) as usize;
        let seq = u64::from_le_bytes(take(&mut rest)?);
        let journal_bytes = u64::from_le_bytes(take(&mut rest)?);
        let hash = Digest::from_bytes(take(&mut rest)?);
        let head = JournalHead { seq, hash };
        let fits = length <= STATE_BYTES_MAX;
        fits.then_some(Self { at, fields, checksum, format, length, head, journal_bytes })
    }

    /// The state after the header, if it is intact.
    fn state(&self, file: &File) -> Option<Vec<u8>> {
        let mut hashed = self.fields.to_vec();
        hashed.resize(CHECKSUM_AT + self.length, 0);
        let state = hashed.get_mut(CHECKSUM_AT..)?;
        file.read_exact_at(state, self.at + HEADER_BYTES as u64).ok()?;
        (Digest::of(&hashed).as_bytes() == &self.checksum).then(|| hashed.split_off(CHECKSUM_AT))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(seq: u64) -> JournalHead {
        JournalHead { seq, hash: Digest::of(&seq.to_le_bytes()) }
    }

    fn saved(seq: u64, bytes: &[u8]) -> SavedState {
        SavedState { head: head(seq), journal_bytes: seq * 100, bytes: bytes.to_vec() }
    }

    #[test]
    fn a_damaged_slot_leaves_the_other() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(read_state(&file).unwrap(), None);
        write_state(&file, &head(1), 100, b"one").unwrap();
        write_state(&file, &head(2), 200, b"two").unwrap();
        assert_eq!(read_state(&file).unwrap(), Some(saved(2, b"two")));
        for at in 0..(HEADER_BYTES as u64 + 3) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at).unwrap();
            assert_eq!(read_state(&file).unwrap(), Some(saved(1, b"one")), "byte {at}");
            file.write_all_at(&byte, at).unwrap();
        }
    }

    #[test]
    fn a_slot_of_a_newer_format_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        write_state(&file, &head(2), 200, b"two").unwrap();
        let mut slot = vec![0; HEADER_BYTES + 3];
        file.read_exact_at(&mut slot, 0).unwrap();
        slot[8] = 9;
        let mut hashed = slot[..CHECKSUM_AT].to_vec();
        hashed.extend_from_slice(b"two");
        slot[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(Digest::of(&hashed).as_bytes());
        file.write_all_at(&slot, 0).unwrap();
        assert!(matches!(read_state(&file), Err(StoreError::Newer { found: 9, .. })));
    }
}
