//! Unpacks gzip while it is read, with fixed memory.
//!
//! A file may contain several members, as `cat a.gz b.gz` writes them. A file that ends too early
//! or has a wrong checksum is an error, and not a shorter file.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// The first bytes of a gzip file.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads the unpacked bytes of all members.
///
/// `MultiGzDecoder` does nearly the same, but it does not accept zero padding.
pub(super) struct Gunzip<R> {
    /// The current member; `None` after the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gunzip<R> {
    pub(super) fn new(source: R) -> Self {
        Self { member: Some(GzDecoder::new(source)) }
    }

    /// Begins the next member, if there is one.
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
            return Err(invalid("the data after a member is not gzip"));
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

/// Explains an error in the file. An error of the operating system is returned unchanged.
fn explain(error: io::Error) -> io::Error {
    match error.kind() {
        _ if error.raw_os_error().is_some() => error,
        ErrorKind::UnexpectedEof => invalid("it is truncated"),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => invalid("it is damaged"),
        _ => error,
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("can't unpack it: {what}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::GzEncoder;
    use flate2::{Compression, Crc};

    use super::*;

    /// Packs bytes as `gzip` does.
    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        // Input in small pieces, as from a slow disk.
        let source = io::BufReader::with_capacity(7, bytes);
        Gunzip::new(source).read_to_end(&mut out).map_err(|error| error.to_string())?;
        Ok(out)
    }

    fn text() -> Vec<u8> {
        (0..20_000_u32).flat_map(|n| (n * n % 977).to_string().into_bytes()).collect()
    }

    #[test]
    fn packed_bytes_are_unpacked() {
        for bytes in [&b""[..], b"x", &text()] {
            assert_eq!(unpacked(&packed(bytes)).unwrap(), bytes);
        }
        let two = [packed(b"one"), packed(b"two"), vec![0; 9]].concat();
        assert_eq!(unpacked(&two).unwrap(), b"onetwo");
    }

    #[test]
    fn every_field_of_a_header_is_skipped() {
        let mut bytes = packed(b"x");
        // A header checksum, extra fields, a name and a comment.
        bytes[3] = 2 | 4 | 8 | 16;
        let fields = [&[2, 0, 9, 9][..], b"name\0", b"comment\0"].concat();
        let mut sum = Crc::new();
        sum.update(&[&bytes[..10], &fields].concat());
        let sum = sum.sum().to_le_bytes();
        bytes.splice(10..10, [&fields, &sum[..2]].concat());
        assert_eq!(unpacked(&bytes).unwrap(), b"x");
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let whole = packed(&text()[..500]);
        for end in 1..whole.len() {
            let error = unpacked(&whole[..end]).unwrap_err();
            assert_eq!(error, "can't unpack it: it is truncated", "after {end} bytes");
        }
    }

    #[test]
    fn damage_is_detected() {
        let whole = packed(&text());
        for at in [12, whole.len() / 2, whole.len() - 6, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(unpacked(&bytes).unwrap_err().contains("damaged"), "at {at}");
        }
        let with_garbage = [&whole[..], b"more"].concat();
        let error = unpacked(&with_garbage).unwrap_err();
        assert_eq!(error, "can't unpack it: the data after a member is not gzip");
    }
}
