//! The saved state: two slots in one file, written in turn, so that a write
//! that is cut short leaves the other one whole.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use jackline_engine::Digest;
use jackline_engine::bounds::STATE_BYTES_MAX;

use crate::error::StoreError;
use crate::head::Head;

/// A saved state, and the end of the journal that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedState {
    pub(crate) head: Head,
    /// How long the journal is up to and with the head.
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
pub(crate) fn write(file: &File, head: &Head, journal_bytes: u64, state: &[u8]) -> io::Result<()> {
    if state.len() > STATE_BYTES_MAX {
        return Err(io::Error::other(format!("a state of {} bytes", state.len())));
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

/// Reads the newer of the whole slots; a damaged slot counts as absent.
pub(crate) fn read(file: &File) -> Result<Option<SavedState>, StoreError> {
    let mut slots = [Header::read(file, 0), Header::read(file, 1)];
    slots.sort_by_key(|slot| std::cmp::Reverse(slot.as_ref().map(|header| header.head.seq)));
    for header in slots.into_iter().flatten() {
        if let Some(bytes) = header.state(file) {
            if header.format > FORMAT {
                let (found, known) = (header.format, FORMAT);
                return Err(StoreError::Newer { what: "the saved state", found, known });
            }
            let Header { head, journal_bytes, .. } = header;
            return Ok(Some(SavedState { head, journal_bytes, bytes }));
        }
    }
    Ok(None)
}

/// Whether a head that was read before is still the one of the newer slot.
/// Looks at the headers only.
pub(crate) fn is_newest(file: &File, head: &Head) -> bool {
    let newest = [Header::read(file, 0), Header::read(file, 1)].into_iter().flatten();
    newest.map(|header| header.head).max_by_key(|head| head.seq) == Some(*head)
}

struct Header {
    at: u64,
    fields: [u8; CHECKSUM_AT],
    checksum: [u8; 32],
    format: u32,
    length: usize,
    head: Head,
    journal_bytes: u64,
}

impl Header {
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
        let head = Head { seq, hash };
        let fits = length <= STATE_BYTES_MAX;
        fits.then_some(Self { at, fields, checksum, format, length, head, journal_bytes })
    }

    /// The state behind the header, if it is whole.
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

    fn head(seq: u64) -> Head {
        Head { seq, hash: Digest::of(&seq.to_le_bytes()) }
    }

    fn saved(seq: u64, bytes: &[u8]) -> SavedState {
        SavedState { head: head(seq), journal_bytes: seq * 100, bytes: bytes.to_vec() }
    }

    #[test]
    fn a_damaged_slot_leaves_the_other() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(read(&file).unwrap(), None);
        write(&file, &head(1), 100, b"one").unwrap();
        write(&file, &head(2), 200, b"two").unwrap();
        assert_eq!(read(&file).unwrap(), Some(saved(2, b"two")));
        for at in 0..(HEADER_BYTES as u64 + 3) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at).unwrap();
            assert_eq!(read(&file).unwrap(), Some(saved(1, b"one")), "byte {at}");
            file.write_all_at(&byte, at).unwrap();
        }
    }

    #[test]
    fn a_slot_of_a_newer_format_is_refused_by_name() {
        let file = tempfile::tempfile().unwrap();
        write(&file, &head(2), 200, b"two").unwrap();
        let mut slot = vec![0; HEADER_BYTES + 3];
        file.read_exact_at(&mut slot, 0).unwrap();
        slot[8] = 9;
        let mut hashed = slot[..CHECKSUM_AT].to_vec();
        hashed.extend_from_slice(b"two");
        slot[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(Digest::of(&hashed).as_bytes());
        file.write_all_at(&slot, 0).unwrap();
        assert!(matches!(read(&file), Err(StoreError::Newer { found: 9, .. })));
    }
}
