//! Decodes `$'…'`, the one kind of shell quotes with its own escape sequences.

use alloc::string::String;
use alloc::vec::Vec;

/// Decodes the text behind `$'`. Returns the decoded text and the number of bytes
/// read, including the closing quote.
pub(crate) fn decode_ansi_quotes(source: &str) -> (String, usize) {
    let bytes = source.as_bytes();
    let mut out: Vec<u8> = Vec::with_capacity(source.len());
    let mut at = 0;
    // In bash a NUL ends the text, but the quoted part still ends at the closing quote.
    let mut ended = false;
    while let Some(byte) = bytes.get(at).copied() {
        at += 1;
        match byte {
            b'\'' => break,
            b'\\' => {
                let before = out.len();
                at = decode_escape(bytes, at, &mut out);
                ended |= out.get(before..).is_some_and(|new| new == [0]);
                if ended {
                    out.truncate(before);
                }
            }
            _ if ended => {}
            _ => out.push(byte),
        }
    }
    (String::from_utf8_lossy(&out).into_owned(), at)
}

/// Decodes one escape sequence; the caller has already read the backslash.
fn decode_escape(bytes: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let Some(byte) = bytes.get(at).copied() else {
        out.push(b'\\');
        return at;
    };
    let simple = match byte {
        b'a' => 7,
        b'b' => 8,
        b'e' | b'E' => 27,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\\' | b'\'' | b'"' | b'?' => byte,
        b'x' => return decode_number(bytes, at + 1, 16, 2, out, b"\\x"),
        b'0'..=b'7' => return decode_number(bytes, at, 8, 3, out, b"\\"),
        b'u' => return decode_number(bytes, at + 1, 16, 4, out, b"\\u"),
        b'U' => return decode_number(bytes, at + 1, 16, 8, out, b"\\U"),
        b'c' => {
            out.push(bytes.get(at + 1).copied().unwrap_or(b'@') & 0x1f);
            return (at + 2).min(bytes.len());
        }
        _ => {
            out.extend([b'\\', byte]);
            return at + 1;
        }
    };
    out.push(simple);
    at + 1
}

/// Reads up to `most` digits of a base and writes a byte or, for `\u`, a character.
fn decode_number(
    bytes: &[u8],
    at: usize,
    base: u32,
    most: usize,
    out: &mut Vec<u8>,
    raw: &[u8],
) -> usize {
    let mut value = 0_u32;
    let mut used = 0;
    while used < most
        && let Some(digit) = bytes.get(at + used).and_then(|byte| char::from(*byte).to_digit(base))
    {
        value = value.wrapping_mul(base).wrapping_add(digit);
        used += 1;
    }
    if used == 0 {
        out.extend_from_slice(raw);
    } else if most == 4 || most == 8 {
        let mut buffer = [0; 4];
        let char = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes());
    } else {
        out.push(value.to_le_bytes().first().copied().unwrap_or(0));
    }
    at + used
}

#[cfg(test)]
mod tests {
    use super::decode_ansi_quotes;

    #[test]
    fn every_escape_is_decoded() {
        assert_eq!(decode_ansi_quotes(r"\x72\x6d'"), ("rm".into(), 9));
        assert_eq!(decode_ansi_quotes(r"\162\155' x").0, "rm");
        assert_eq!(decode_ansi_quotes(r"\u0072\U0000006d'").0, "rm");
        assert_eq!(decode_ansi_quotes(r"a\tb\'c\\'").0, "a\tb'c\\");
        assert_eq!(decode_ansi_quotes(r"\q\x'").0, "\\q\\x");
    }

    #[test]
    fn a_nul_ends_the_text_but_not_the_quotes() {
        assert_eq!(decode_ansi_quotes(r"rm\0zzz' x"), ("rm".into(), 8));
    }
}
