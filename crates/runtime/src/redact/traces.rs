//! Where a secret may be: every kind of them has three letters in it that are rare
//! elsewhere, and most texts have none of these.

use std::ops::Range;

/// What prefixes and other marks of secrets have in them, written like this.
const OF_MARKS: [&[u8; 3]; 22] = [
    b"b_p", b"hp_", b"ho_", b"hu_", b"hs_", b"hr_", b"lpa", b"sk-", b"k_l", b"k_t", b"xox", b"KIA",
    b"SIA", b"Iza", b"pm_", b"ypi", b"hf_", b"SG.", b"eyJ", b"Bea", b"://", b"-BE",
];

/// What names of secrets have in them, in any case and with `-` for `_`.
const OF_NAMES: [&[u8; 3]; 10] =
    [b"ssw", b"ssp", b"ecr", b"oke", b"i_k", b"pik", b"s_k", b"e_k", b"t_k", b"ede"];

/// How a private key begins. The lines of one have no trace of their own.
const KEY_BEGINS: &str = "-----BEGIN ";

/// The next part of a text that may hold a secret, from somewhere on: a line, as no
/// secret is longer, or all the rest once a private key has begun.
pub(super) fn next_part(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(from..)?;
    let (before, behind) =
        rest.split_at_checked(rest.array_windows().position(|letters| is_trace(*letters))?)?;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = behind.iter().position(|byte| *byte == b'\n').unwrap_or(behind.len());
    let (start, end) = (from + start, from + before.len() + end);
    let begins = text.get(start..end).is_some_and(|line| line.contains(KEY_BEGINS));
    Some(start..if begins { text.len() } else { end })
}

fn is_trace([one, two, three]: [u8; 3]) -> bool {
    let [first, second, third] = &LETTERS;
    let of = |letters: &[u64; 256], byte: u8| letters.get(usize::from(byte)).copied().unwrap_or(0);
    of(first, one) & of(second, two) & of(third, three) != 0
}

/// Which traces have a byte as their first, second and third letter, a bit each.
const LETTERS: [[u64; 256]; 3] = letters();

#[expect(clippy::indexing_slicing, reason = "runs when it is compiled, and would fail there")]
const fn letters() -> [[u64; 256]; 3] {
    let mut letters = [[0; 256]; 3];
    let mut at = 0;
    while at < 3 {
        let mut mark = 0;
        while mark < OF_MARKS.len() {
            letters[at][OF_MARKS[mark][at] as usize] |= 1 << mark;
            mark += 1;
        }
        let mut name = 0;
        while name < OF_NAMES.len() {
            let (letter, bit) = (OF_NAMES[name][at], 1 << (OF_MARKS.len() + name));
            letters[at][letter as usize] |= bit;
            letters[at][letter.to_ascii_uppercase() as usize] |= bit;
            if letter == b'_' {
                letters[at][b'-' as usize] |= bit;
            }
            name += 1;
        }
        at += 1;
    }
    letters
}
