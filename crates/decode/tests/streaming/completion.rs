//! Continues a prefix until the document is complete.
//!
//! The streaming check limits the search, and full validation decides whether a document is
//! complete. So a completion proves that the check was right to let the prefix pass.

use jackline_decode::stream::StreamCheck;
use jsonschema::Validator;

/// The texts with which a prefix is continued; those that end a value come first. They
/// are texts and names of the random schemas, digits, an exponent that makes any number
/// zero, and enough nines to round up.
const STEPS: &[&str] = &[
    "}",
    "]",
    "\"a\"",
    "\"b\"",
    "\"ab\"",
    "\"ba\"",
    "\"é\"",
    "\"😀x\"",
    "\"\"",
    "\"abb\"",
    "\"\\\"\\\\\"",
    "\"😀\"",
    "\"",
    "null",
    "0",
    "true",
    "false",
    "5",
    "-3",
    "[]",
    "{}",
    ":",
    ",",
    "12",
    "2.5",
    "120",
    "7",
    "-0.5",
    "33",
    "400",
    "[",
    "{",
    "e-400",
    "a",
    "b",
    "é",
    "😀",
    "x",
    "\\\"",
    "\\\\",
    "\\",
    "u",
    "n",
    "rue",
    "ue",
    "e",
    "alse",
    "lse",
    "se",
    "ull",
    "ll",
    "l",
    "1",
    "2",
    "3",
    "9",
    ".",
    "e3",
    "e1",
    "e2",
    "e-1",
    "e-2",
    "e-3",
    "0061",
    "0062",
    "00e9",
    "d83d",
    "de00",
    "0078",
    "0022",
    "005c",
    "061",
    "062",
    "0e9",
    "83d",
    "e00",
    "078",
    "022",
    "05c",
    "61",
    "62",
    "e9",
    "3d",
    "00",
    "78",
    "22",
    "5c",
    "8",
    "c",
    "d",
    "25",
    "e4",
    "e-4",
    "99999999999999999999",
    "e-17",
    "e-18",
    "e-19",
    "e-20",
    "e-21",
    "e-22",
];

pub(crate) struct CompletionSearch<'v> {
    pub(crate) validator: &'v Validator,
    /// How many steps the search may still try.
    pub(crate) budget: usize,
}

impl CompletionSearch<'_> {
    /// Finds a completion. `longer` limits how many steps may extend a number at the end.
    pub(crate) fn find(
        &mut self,
        stream: &StreamCheck<'_>,
        prefix: &[u8],
        depth: usize,
        longer: usize,
    ) -> Option<Vec<u8>> {
        if stream.clone().finish().is_ok()
            && let Ok(value) = serde_json::from_slice(prefix)
            && self.validator.is_valid(&value)
        {
            return Some(prefix.to_vec());
        }
        let numeric = |byte: Option<&u8>| byte.is_some_and(|byte| b"0123456789.e-".contains(byte));
        // Only these bytes can complete a character of our texts.
        let tails: [&[u8]; 4] = [b"\xa9", b"\x9f\x98\x80", b"\x98\x80", b"\x80"];
        let close: &[&[u8]] = if is_in_string(prefix) { &[b"\""] } else { &[] };
        let steps = STEPS.iter().map(|step| step.as_bytes()).chain(tails);
        // Try the names of the schemas first: other steps lead to long searches.
        for step in escapes(prefix).chain(close.iter().copied()).chain(steps) {
            if depth == 0 || self.budget == 0 {
                return None;
            }
            let escape = prefix.iter().rev().take(5).any(|byte| *byte == b'\\');
            let lengthens = !escape && numeric(prefix.last()) && numeric(step.first());
            if lengthens && longer == 0 {
                continue;
            }
            self.budget -= 1;
            let mut next = stream.clone();
            if next.feed(step).is_ok() {
                let prefix = [prefix, step].concat();
                let longer = if lengthens { longer - 1 } else { 0 };
                if let Some(found) = self.find(&next, &prefix, depth - 1, longer) {
                    return Some(found);
                }
            }
        }
        None
    }
}

/// The ways to complete an escape at the end, for the characters of our names.
fn escapes(prefix: &[u8]) -> impl Iterator<Item = &'static [u8]> {
    let start = prefix.iter().rposition(|byte| *byte == b'\\').and_then(|at| prefix.get(at + 1..));
    let digits = start.and_then(|start| start.strip_prefix(b"u")).map(<[u8]>::to_ascii_lowercase);
    let codes: [&[u8]; 5] = [b"00e9", b"0061", b"0062", b"0078", b"d83d"];
    codes.into_iter().filter_map(move |code| {
        code.strip_prefix(digits.as_deref()?).filter(|rest| !rest.is_empty())
    })
}

fn is_in_string(prefix: &[u8]) -> bool {
    let (mut inside, mut escaped) = (false, false);
    for byte in prefix {
        inside ^= *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
    }
    inside
}
