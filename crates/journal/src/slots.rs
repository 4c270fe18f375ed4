//! The saved state: two slots in one file, written in turn, so that a write
//! that is cut short leaves the other one whole.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use jackline_engine::{Digest, STATE_BYTES_MAX};

use crate::error::StoreError;
use crate::head::Head;

const MAGIC: &[u8; 8] = b"JLSTATE\0";
const FORMAT: u32 = 1;

/// Magic, format, length, sequence, bytes, head, checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 8 + 32 + 32;
const CHECKSUM_AT: usize = HEADER_BYTES - 32;
const SLOT_BYTES: u64 = 256 * 1024;

/// Writes the state of `head` into its slot.
pub(crate) fn write(file: &File, head: &Head, state: &[u8]) -> io::Result<()> {
    if state.len() > STATE_BYTES_MAX {
        return Err(io::Error::other(format!("a state of {} bytes", state.len())));
    }
    let mut slot = Vec::with_capacity(HEADER_BYTES + state.len());
    slot.extend_from_slice(MAGIC);
    slot.extend_from_slice(&FORMAT.to_le_bytes());
    slot.extend_from_slice(&u32::try_from(state.len()).unwrap_or(0).to_le_bytes());
    slot.extend_from_slice(&head.seq.to_le_bytes());
    slot.extend_from_slice(&head.bytes.to_le_bytes());
    slot.extend_from_slice(head.hash.as_bytes());
    let mut hashed = slot.clone();
    hashed.extend_from_slice(state);
    slot.extend_from_slice(Digest::of(&hashed).as_bytes());
    slot.extend_from_slice(state);
    file.write_all_at(&slot, (head.seq % 2) * SLOT_BYTES)
}

/// Reads the newer of the whole slots; a damaged slot counts as absent.
pub(crate) fn read(file: &File) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
    let slots = [read_slot(file, 0)?, read_slot(file, 1)?];
    Ok(slots.into_iter().flatten().max_by_key(|(head, _)| head.seq))
}

fn read_slot(file: &File, number: u64) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
    let mut header = [0; HEADER_BYTES];
    if file.read_exact_at(&mut header, number * SLOT_BYTES).is_err() {
        return Ok(None);
    }
    let Some((fields, checksum)) = header.split_at_checked(CHECKSUM_AT) else { return Ok(None) };
    let mut fields_left = fields;
    if take::<8>(&mut fields_left).as_ref() != Some(MAGIC) {
        return Ok(None);
    }
    let parsed = (|| {
        let format = u32::from_le_bytes(take(&mut fields_left)?);
        let length = u32::from_le_bytes(take(&mut fields_left)?);
        let seq = u64::from_le_bytes(take(&mut fields_left)?);
        let bytes = u64::from_le_bytes(take(&mut fields_left)?);
        let hash = Digest::from_bytes(take(&mut fields_left)?);
        Some((format, length, Head { seq, hash, bytes }))
    })();
    let Some((format, length, head)) = parsed else { return Ok(None) };
    let length = length as usize;
    if length > STATE_BYTES_MAX {
        return Ok(None);
    }
    let mut hashed = fields.to_vec();
    hashed.resize(fields.len() + length, 0);
    let Some(state) = hashed.get_mut(fields.len()..) else { return Ok(None) };
    if file.read_exact_at(state, number * SLOT_BYTES + HEADER_BYTES as u64).is_err() {
        return Ok(None);
    }
    if Digest::of(&hashed).as_bytes() != checksum {
        return Ok(None);
    }
    if format > FORMAT {
        return Err(StoreError::Newer { what: "the saved state", found: format, known: FORMAT });
    }
    Ok(Some((head, hashed.split_off(fields.len()))))
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
        Head { seq, hash: Digest::of(&seq.to_le_bytes()), bytes: seq * 100 }
    }

    #[test]
    fn a_damaged_slot_leaves_the_other() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(read(&file).unwrap(), None);
        write(&file, &head(1), b"one").unwrap();
        write(&file, &head(2), b"two").unwrap();
        assert_eq!(read(&file).unwrap(), Some((head(2), b"two".to_vec())));
        for at in 0..(HEADER_BYTES as u64 + 3) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at).unwrap();
            assert_eq!(read(&file).unwrap(), Some((head(1), b"one".to_vec())), "byte {at}");
            file.write_all_at(&byte, at).unwrap();
        }
    }

    #[test]
    fn a_slot_of_a_newer_format_is_refused_by_name() {
        let file = tempfile::tempfile().unwrap();
        write(&file, &head(2), b"two").unwrap();
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
