//! Unpacks gzip as it is read: a file of any size in a fixed room.
//!
//! Members may follow each other, as `cat a.gz b.gz` leaves them. A file that
//! ends too early, or whose checksum is wrong, is an error and not a shorter file.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// How a gzip file begins.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads the unpacked bytes of all members.
///
/// `MultiGzDecoder` does nearly this, but refuses the zeros that tapes pad with.
pub(super) struct Gunzip<R> {
    /// The member under way; none after the last.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gunzip<R> {
    pub(super) fn new(source: R) -> Self {
        Self { member: Some(GzDecoder::new(source)) }
    }

    /// Begins the member that follows, if there is one.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(member) = self.member.take() else { return Ok(()) };
        let mut source = member.into_inner();
        while source.fill_buf()?.first() == Some(&0) {
            source.consume(1);
        }
        let begin = source.fill_buf()?;
        if begin.is_empty() {
            return Ok(());
        }
        if !MAGIC.starts_with(begin.get(..MAGIC.len()).unwrap_or(begin)) {
            return Err(invalid("what follows is not gzip"));
        }
        self.member = Some(GzDecoder::new(source));
        Ok(())
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            match member.read(out).map_err(explain)? {
                0 => self.next_member()?,
                count => return Ok(count),
            }
        }
        Ok(0)
    }
}

/// Says what is wrong with the file. An error of the system stays as it is.
fn explain(error: io::Error) -> io::Error {
    match error.kind() {
        _ if error.raw_os_error().is_some() => error,
        ErrorKind::UnexpectedEof => invalid("it is cut off"),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => invalid("it was damaged"),
        _ => error,
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("it can't be unpacked: {what}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::GzEncoder;
    use flate2::{Compression, Crc};

    use super::*;

    /// What `gzip` would have written.
    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
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
        let mut sum = Crc::new();
        sum.update(&[&bytes[..10], &fields].concat());
        let sum = sum.sum().to_le_bytes();
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
