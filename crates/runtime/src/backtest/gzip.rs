//! Unpacks gzip as it is read: a file of any size in a fixed room.
//!
//! Members may follow each other, as `cat a.gz b.gz` leaves them. A file that
//! ends too early, or whose sum is wrong, is an error and not a shorter file.

use std::io::{self, BufRead, Read};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

/// How a gzip file begins.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What the flags of a header say: a sum of its own, more fields, a name, a comment.
const SUMMED: u8 = 2;
const EXTRA: u8 = 4;
const NAMED: u8 = 8;
const COMMENTED: u8 = 16;

/// Reads what was packed.
pub(super) struct Gunzip<R> {
    source: R,
    state: Box<InflateState>,
    at: At,
    crc: u32,
    bytes: u64,
}

enum At {
    /// Before the header of the first member, or of one that may follow.
    Header {
        first: bool,
    },
    Body,
    End,
}

impl<R: BufRead> Gunzip<R> {
    pub(super) fn new(source: R) -> Self {
        let state = InflateState::new_boxed(DataFormat::Raw);
        Self { source, state, at: At::Header { first: true }, crc: 0, bytes: 0 }
    }

    /// Begins with a member, or says that there is none left.
    fn header(&mut self, first: bool) -> io::Result<bool> {
        if !first {
            // Tapes pad with zeros.
            while self.source.fill_buf()?.first() == Some(&0) {
                self.source.consume(1);
            }
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
        }
        let begins = self.source.fill_buf()?;
        if !MAGIC.starts_with(begins.get(..MAGIC.len()).unwrap_or(begins)) {
            return Err(broken("what follows is not gzip"));
        }
        let [one, two, method, flags, ..] = self.take::<10>()?;
        if [one, two] != MAGIC || method != 8 {
            return Err(broken("what follows is not gzip"));
        }
        if flags & EXTRA != 0 {
            for _ in 0..u16::from_le_bytes(self.take::<2>()?) {
                self.take::<1>()?;
            }
        }
        for text in [NAMED, COMMENTED] {
            while flags & text != 0 && self.take::<1>()? != [0] {}
        }
        if flags & SUMMED != 0 {
            self.take::<2>()?;
        }
        self.state.reset(DataFormat::Raw);
        (self.crc, self.bytes) = (0, 0);
        Ok(true)
    }

    fn trailer(&mut self) -> io::Result<()> {
        let crc = u32::from_le_bytes(self.take()?);
        let bytes = u32::from_le_bytes(self.take()?);
        // It counts up to 4 GB, and then from the beginning.
        if crc == self.crc && u64::from(bytes) == self.bytes & u64::from(u32::MAX) {
            return Ok(());
        }
        Err(broken("its sum is wrong: it was damaged"))
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(cut_off)?;
        Ok(bytes)
    }

    /// Unpacks some of a member; none is its end.
    fn body(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = self.source.fill_buf()?;
            let last = input.is_empty();
            let done = inflate(&mut self.state, input, out, MZFlush::None);
            self.source.consume(done.bytes_consumed);
            let written = out.get(..done.bytes_written).unwrap_or_default();
            self.crc = crc32(self.crc, written);
            self.bytes += done.bytes_written as u64;
            match done.status {
                _ if done.bytes_written > 0 => return Ok(done.bytes_written),
                Ok(MZStatus::StreamEnd) => return Ok(0),
                Ok(_) | Err(MZError::Buf) if !last => {}
                Ok(_) | Err(MZError::Buf) => {
                    return Err(cut_off(io::ErrorKind::UnexpectedEof.into()));
                }
                Err(_) => return Err(broken("it was damaged")),
            }
        }
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.at {
                At::End => return Ok(0),
                At::Header { first } => {
                    self.at = if self.header(first)? { At::Body } else { At::End };
                }
                At::Body => match self.body(out)? {
                    0 => {
                        self.trailer()?;
                        self.at = At::Header { first: false };
                    }
                    count => return Ok(count),
                },
            }
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it can't be unpacked: {what}"))
}

fn cut_off(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => broken("it is cut off"),
        _ => error,
    }
}

/// The remainders of a byte with so many zero bytes behind it.
const TABLES: [[u32; 256]; 16] = tables();

#[expect(clippy::indexing_slicing, reason = "runs when it is compiled, and would fail there")]
const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut sum = byte;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte as usize] = sum;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// The sum that gzip keeps, sixteen bytes at a time.
fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let [plain, ..] = &TABLES;
    let of = |table: &[u32; 256], byte: u8| table.get(usize::from(byte)).copied().unwrap_or(0);
    let mut sum = !before;
    let (chunks, rest) = bytes.as_chunks::<16>();
    for chunk in chunks {
        // What the sum is so far counts with the first four.
        let mut chunk = *chunk;
        chunk.iter_mut().zip(sum.to_le_bytes()).for_each(|(byte, of_sum)| *byte ^= of_sum);
        let tables = TABLES.iter().rev();
        sum = tables.zip(chunk).fold(0, |sum, (table, byte)| sum ^ of(table, byte));
    }
    for byte in rest {
        let [low, ..] = sum.to_le_bytes();
        sum = (sum >> 8) ^ of(plain, low ^ byte);
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec;

    /// What `gzip` would have written.
    fn packed(bytes: &[u8]) -> Vec<u8> {
        let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        let crc = crc32(0, bytes).to_le_bytes();
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&header[..], &compress_to_vec(bytes, 6), &crc, &length].concat()
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        // Input in small pieces, as a slow disk gives it.
        let source = io::BufReader::with_capacity(7, bytes);
        Gunzip::new(source).read_to_end(&mut out).map_err(|error| error.to_string())?;
        Ok(out)
    }

    fn text() -> Vec<u8> {
        (0..20_000_u32).flat_map(|n| (n * n % 977).to_string().into_bytes()).collect()
    }

    #[test]
    fn the_sum_is_the_one_that_others_make() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        let (one, two) = b"123456789".split_at(4);
        assert_eq!(crc32(crc32(0, one), two), 0xcbf4_3926);
        let long = text();
        let byte_by_byte = long.iter().fold(0, |sum, byte| crc32(sum, &[*byte]));
        assert_eq!(crc32(0, &long), byte_by_byte);
    }

    #[test]
    fn what_was_packed_comes_out() {
        for bytes in [&b""[..], b"x", &text()] {
            assert_eq!(unpacked(&packed(bytes)).unwrap(), bytes);
        }
        let two = [packed(b"one"), packed(b"two"), vec![0; 9]].concat();
        assert_eq!(unpacked(&two).unwrap(), b"onetwo");
    }

    #[test]
    fn every_field_of_a_header_is_passed_over() {
        let mut bytes = packed(b"x");
        bytes[3] = SUMMED | EXTRA | NAMED | COMMENTED;
        let fields = [&[2, 0, 9, 9][..], b"name\0", b"comment\0", &[1, 2]].concat();
        bytes.splice(10..10, fields);
        assert_eq!(unpacked(&bytes).unwrap(), b"x");
    }

    #[test]
    fn a_file_that_ends_too_early_is_an_error_wherever_it_ends() {
        let whole = packed(&text()[..500]);
        for end in 1..whole.len() {
            let error = unpacked(&whole[..end]).unwrap_err();
            assert_eq!(error, "it can't be unpacked: it is cut off", "after {end} bytes");
        }
    }

    #[test]
    fn damage_shows() {
        let whole = packed(&text());
        for at in [12, whole.len() / 2, whole.len() - 6, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(unpacked(&bytes).unwrap_err().contains("damaged"), "at {at}");
        }
        let behind = [&whole[..], b"more"].concat();
        let said = unpacked(&behind).unwrap_err();
        assert_eq!(said, "it can't be unpacked: what follows is not gzip");
    }
}
