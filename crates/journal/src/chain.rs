//! The hash chain. Each line contains the hash of the previous line and, as its last field, the
//! hash of its own exact bytes.

use jackline_engine::Digest;

const PREV: &[u8] = br#","prev":""#;
const HASH: &[u8] = br#"","hash":""#;
const END: &[u8] = br#""}"#;
const HEX_CHARS: usize = 64;

/// The length of the fields after the body of a record, with the newline.
const SEAL_BYTES: usize = PREV.len() + HEX_CHARS + HASH.len() + HEX_CHARS + END.len() + 1;

/// Seals a record: adds the hash of the previous record, its own hash and a newline.
pub fn seal(body: &[u8], prev: &Digest) -> (Vec<u8>, Digest) {
    let mut line = Vec::with_capacity(body.len() + SEAL_BYTES);
    line.extend_from_slice(body);
    line.extend_from_slice(PREV);
    line.extend_from_slice(prev.to_string().as_bytes());
    // The hash covers all bytes before its own field, with the closing quote of `prev`.
    line.push(b'"');
    let hash = Digest::of(&line);
    line.pop();
    line.extend_from_slice(HASH);
    line.extend_from_slice(hash.to_string().as_bytes());
    line.extend_from_slice(END);
    line.push(b'\n');
    (line, hash)
}

/// The hashes of a line whose own hash matches its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineHashes {
    /// The hash of the previous record.
    pub prev: Digest,
    /// The hash of this record.
    pub hash: Digest,
}

/// Why a line is not a sealed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// It does not end with a hash.
    #[error("it does not end with a hash")]
    NoHash,
    /// Its bytes do not match its hash.
    #[error("its bytes do not match its hash")]
    Mismatch,
}

/// Checks a line without its newline against its own hash.
pub fn check_line(line: &[u8]) -> Result<LineHashes, LineFault> {
    let rest = line.strip_suffix(END).ok_or(LineFault::NoHash)?;
    let (rest, hash) = split_hex(rest).ok_or(LineFault::NoHash)?;
    let rest = rest.strip_suffix(HASH).ok_or(LineFault::NoHash)?;
    let (before, prev) = split_hex(rest).ok_or(LineFault::NoHash)?;
    before.strip_suffix(PREV).ok_or(LineFault::NoHash)?;
    let hashed = line.get(..=rest.len()).ok_or(LineFault::NoHash)?;
    if Digest::of(hashed) == hash {
        Ok(LineHashes { prev, hash })
    } else {
        Err(LineFault::Mismatch)
    }
}

/// The sequence number inside a line, even if the line is damaged.
pub(crate) fn parse_seq(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(br#"{"v":1,"seq":"#)?;
    let digits: Vec<u8> = rest.iter().copied().take_while(u8::is_ascii_digit).take(20).collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

fn split_hex(bytes: &[u8]) -> Option<(&[u8], Digest)> {
    let (rest, hex) = bytes.split_at_checked(bytes.len().checked_sub(HEX_CHARS)?)?;
    Some((rest, Digest::parse(std::str::from_utf8(hex).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_line_is_json_and_any_flipped_bit_is_detected() {
        let prev = Digest::of(b"before");
        let (line, hash) = seal(br#"{"v":1,"seq":7,"x":"y""#, &prev);
        let line = line.strip_suffix(b"\n").unwrap();
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        assert_eq!(value["hash"], hash.to_string());
        assert_eq!(check_line(line), Ok(LineHashes { prev, hash }));
        assert_eq!(parse_seq(line), Some(7));
        for bit in 0..line.len() * 8 {
            let mut flipped = line.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check_line(&flipped).is_err(), "bit {bit}");
        }
    }
}
