//! Reads the dictionaries of the fuzzer: one quoted word per line, and comments after `#`.

use std::fs;
use std::path::Path;

/// The words of a dictionary, or nothing if the target has no dictionary.
pub(crate) fn read(path: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(word).collect()
}

fn word(line: &str) -> Vec<u8> {
    let inner = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut bytes = inner.unwrap_or_else(|| panic!("not a word: {line}")).bytes();
    let mut word = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        word.push(match bytes.next() {
            Some(b'x') => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap();
                u8::from_str_radix(digits, 16).unwrap()
            }
            Some(escaped @ (b'\\' | b'"')) => escaped,
            other => panic!("invalid escape {other:?} in {line}"),
        });
    }
    word
}
