//! Unpacks gzip as it is read: a file of any size in a fixed room.
//!
//! Members may follow each other, as `cat a.gz b.gz` leaves them. A file that
//! ends too early, or whose sum is wrong, is an error and not a shorter file.

use std::io::{self, BufRead, Read};

use zlib_rs::{Inflate, InflateFlush, Status};

/// How a gzip file begins.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The largest window, and a header and sum as gzip has them.
const GZIP: u8 = 15 + 16;

/// Reads what was packed.
pub(super) struct Gunzip<R> {
    source: R,
    at: At,
}

enum At {
    /// Before the first member, or one that may follow.
    Between {
        first: bool,
    },
    Member(Box<Inflate>),
    End,
}

impl<R: BufRead> Gunzip<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, at: At::Between { first: true } }
    }

    /// Begins with a member, where there is one left.
    fn next(&mut self, first: bool) -> io::Result<At> {
        if !first {
            // Tapes pad with zeros.
            while self.source.fill_buf()?.first() == Some(&0) {
                self.source.consume(1);
            }
            if self.source.fill_buf()?.is_empty() {
                return Ok(At::End);
            }
        }
        let begins = self.source.fill_buf()?;
        if !MAGIC.starts_with(begins.get(..MAGIC.len()).unwrap_or(begins)) {
            return Err(broken("what follows is not gzip"));
        }
        Ok(At::Member(Box::new(Inflate::new(true, GZIP))))
    }
}

/// Unpacks some of a member; none is its end.
fn unpack(state: &mut Inflate, source: &mut impl BufRead, out: &mut [u8]) -> io::Result<usize> {
    loop {
        let input = source.fill_buf()?;
        let last = input.is_empty();
        let (taken, given) = (state.total_in(), state.total_out());
        let status = state.decompress(input, out, InflateFlush::NoFlush);
        let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
        source.consume(count(state.total_in(), taken));
        let written = count(state.total_out(), given);
        match status {
            Err(_) => return Err(broken("it was damaged")),
            Ok(_) if written > 0 => return Ok(written),
            Ok(Status::StreamEnd) => return Ok(0),
            Ok(Status::Ok | Status::BufError) if !last => {}
            Ok(Status::Ok | Status::BufError) => {
                return Err(broken("it is cut off"));
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
            self.at = match &mut self.at {
                At::End => return Ok(0),
                At::Between { first } => {
                    let first = *first;
                    self.next(first)?
                }
                At::Member(state) => match unpack(state, &mut self.source, out)? {
                    0 => At::Between { first: false },
                    count => return Ok(count),
                },
            };
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it can't be unpacked: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zlib_rs::{Deflate, DeflateFlush, crc32};

    /// What `gzip` would have written.
    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; bytes.len() + 100];
        let mut state = Deflate::new(6, true, GZIP);
        let status = state.compress(bytes, &mut out, DeflateFlush::Finish).unwrap();
        assert_eq!(status, Status::StreamEnd);
        out.truncate(usize::try_from(state.total_out()).unwrap());
        out
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
        // A sum of its own, more fields, a name, a comment.
        bytes[3] = 2 | 4 | 8 | 16;
        let fields = [&[2, 0, 9, 9][..], b"name\0", b"comment\0"].concat();
        let sum = crc32::crc32(0, &[&bytes[..10], &fields].concat()).to_le_bytes();
        bytes.splice(10..10, [&fields, &sum[..2]].concat());
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
