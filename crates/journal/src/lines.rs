//! Reads a journal line by line. Memory use is bounded, except for the line itself.

use std::fs::File;
use std::io;

use crate::chain::parse_seq;
use crate::error::StoreError;

/// How many bytes one read takes, after a first smaller read.
const CHUNK_BYTES: usize = 1 << 20;

/// Why reading lines ended early.
pub(crate) enum ScanError {
    Io(io::Error),
    Store(StoreError),
    Stopped,
}

impl ScanError {
    pub(crate) fn into_store_error(self, what: &'static str) -> StoreError {
        match self {
            Self::Io(source) => StoreError::Io { what, source },
            Self::Store(error) => error,
            Self::Stopped => {
                StoreError::Io { what, source: io::Error::other("reading ended early") }
            }
        }
    }
}

impl From<StoreError> for ScanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A source of lines.
pub(crate) trait ByteSource {
    /// Reads some bytes at an offset. Returns 0 at the end.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ByteSource for File {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, out, offset)
    }
}

impl ByteSource for Vec<u8> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.get(from..).unwrap_or_default();
        let count = rest.len().min(out.len());
        out.iter_mut().zip(rest).for_each(|(out, byte)| *out = *byte);
        Ok(count)
    }
}

/// Calls `each` for every complete line after byte `from`, without its newline. Returns how many
/// bytes follow the last one.
pub(crate) fn for_each_line<E: Into<ScanError>>(
    file: &(impl ByteSource + ?Sized),
    from: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, ScanError> {
    let mut at = from;
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = file.read_at(&mut chunk, at).map_err(ScanError::Io)?;
        at += read as u64;
        let Some(mut rest) = chunk.get(..read).filter(|rest| !rest.is_empty()) else { break };
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            if pending.is_empty() {
                each(line).map_err(Into::into)?;
            } else {
                pending.extend_from_slice(line);
                each(&pending).map_err(Into::into)?;
                pending.clear();
            }
            rest = after.get(1..).unwrap_or(&[]);
        }
        pending.extend_from_slice(rest);
        if chunk.len() < CHUNK_BYTES {
            chunk.resize(CHUNK_BYTES, 0);
        }
    }
    Ok(pending.len() as u64)
}

/// The complete line at an offset, without its newline.
pub(crate) fn line_from(
    file: &(impl ByteSource + ?Sized),
    from: u64,
) -> Result<Option<Vec<u8>>, ScanError> {
    let mut found = None;
    let read = for_each_line(file, from, &mut |line| {
        found = Some(line.to_vec());
        Err(ScanError::Stopped)
    });
    match read {
        Ok(_) | Err(ScanError::Stopped) => Ok(found),
        Err(error) => Err(error),
    }
}

/// The range that is searched line by line at the end of [`locate_record`].
const LINEAR_SEARCH_BYTES: u64 = 64 * 1024;

/// The offset of a record, between the offset of an earlier record and the end; `None` if there is
/// no such record. Records are sorted by number, so this is a binary search until the range is
/// small.
pub(crate) fn locate_record(
    file: &(impl ByteSource + ?Sized),
    seq: u64,
    (from, end): (u64, u64),
) -> io::Result<Option<u64>> {
    let (mut low, mut high) = (from, end);
    while high - low > LINEAR_SEARCH_BYTES {
        let middle = low + (high - low) / 2;
        let start = line_start(file, middle)?;
        let number = if start < high { seq_at(file, start)? } else { None };
        match number {
            Some(number) if number <= seq => low = start,
            _ => high = middle,
        }
    }
    let mut at = low;
    let mut found = None;
    let scanned = for_each_line(file, low, &mut |line| {
        if at >= end {
            return Err(ScanError::Stopped);
        }
        if parse_seq(line).is_some_and(|number| number >= seq) {
            found = Some(at).filter(|_| parse_seq(line) == Some(seq));
            return Err(ScanError::Stopped);
        }
        at += line.len() as u64 + 1;
        Ok(())
    });
    match scanned {
        Err(ScanError::Io(error)) => Err(error),
        _ => Ok(found),
    }
}

/// The number of the record at an offset.
fn seq_at(file: &(impl ByteSource + ?Sized), at: u64) -> io::Result<Option<u64>> {
    let mut beginning = [0; 64];
    let read = file.read_at(&mut beginning, at)?;
    Ok(parse_seq(beginning.get(..read).unwrap_or_default()))
}

/// The last complete line, without its newline.
pub(crate) fn last_line(
    file: &(impl ByteSource + ?Sized),
    end: u64,
) -> Result<Option<Vec<u8>>, ScanError> {
    let mut reach = LINEAR_SEARCH_BYTES;
    loop {
        let from = line_start(file, end.saturating_sub(reach)).map_err(ScanError::Io)?;
        let (mut last, mut at) = (None, from);
        let scanned = for_each_line(file, from, &mut |line| {
            at += line.len() as u64 + 1;
            if at > end {
                return Err(ScanError::Stopped);
            }
            last = Some(line.to_vec());
            Ok(())
        });
        match scanned {
            Ok(_) | Err(ScanError::Stopped) if last.is_none() && reach < end => {
                reach = reach.saturating_mul(8);
            }
            Ok(_) | Err(ScanError::Stopped) => return Ok(last),
            Err(error) => return Err(error),
        }
    }
}

/// The offset of the first line that begins at or after an offset.
pub(crate) fn line_start(file: &(impl ByteSource + ?Sized), at: u64) -> io::Result<u64> {
    if at == 0 {
        return Ok(0);
    }
    let mut offset = at - 1;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = file.read_at(&mut chunk, offset)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else {
            return Ok(offset);
        };
        if let Some(end) = part.iter().position(|byte| *byte == b'\n') {
            return Ok(offset + end as u64 + 1);
        }
        offset += read as u64;
    }
}
