//! A journal read line by line, in bounded memory but for the line itself.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::StoreError;

/// How much of a journal is read at once, after a first smaller piece.
const CHUNK_BYTES: usize = 1 << 20;

/// Why reading lines ended early.
pub(crate) enum ScanError {
    Io(io::Error),
    Store(StoreError),
    Enough,
}

impl ScanError {
    pub(crate) fn or_io(self, what: &'static str, path: &Path) -> StoreError {
        match self {
            Self::Io(source) => StoreError::Io { what, path: path.to_owned(), source },
            Self::Store(error) => error,
            Self::Enough => StoreError::Io {
                what,
                path: path.to_owned(),
                source: io::Error::other("reading ended early"),
            },
        }
    }
}

impl From<StoreError> for ScanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Where lines come from.
pub(crate) trait Bytes {
    /// Reads some bytes from an offset on; none are left where it gives 0.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Bytes for File {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, out, offset)
    }
}

impl Bytes for Vec<u8> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.get(from..).unwrap_or_default();
        let count = rest.len().min(out.len());
        out.iter_mut().zip(rest).for_each(|(out, byte)| *out = *byte);
        Ok(count)
    }
}

/// Calls `each` for every complete line from byte `from` on, without its
/// newline, and says how many bytes follow the last one.
pub(crate) fn for_each_line<E: Into<ScanError>>(
    file: &(impl Bytes + ?Sized),
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

/// The complete line that begins at a byte, without its newline.
pub(crate) fn line_from(
    file: &(impl Bytes + ?Sized),
    from: u64,
) -> Result<Option<Vec<u8>>, ScanError> {
    let mut found = None;
    let read = for_each_line(file, from, &mut |line| {
        found = Some(line.to_vec());
        Err(ScanError::Enough)
    });
    match read {
        Ok(_) | Err(ScanError::Enough) => Ok(found),
        Err(error) => Err(error),
    }
}

/// The first line that begins at or after a byte.
pub(crate) fn line_start(file: &(impl Bytes + ?Sized), at: u64) -> io::Result<u64> {
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
