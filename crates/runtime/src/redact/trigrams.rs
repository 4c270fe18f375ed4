//! Finds the parts of a text that may contain a secret. Every kind of secret contains one of a few
//! rare sequences of three characters, and most texts contain none of them.

use std::ops::Range;

/// Three characters of each prefix or marker of a secret, case-sensitive.
const PREFIX_TRIGRAMS: [&[u8; 3]; 22] = [
    b"b_p", b"hp_", b"ho_", b"hu_", b"hs_", b"hr_", b"lpa", b"sk-", b"k_l", b"k_t", b"xox", b"KIA",
    b"SIA", b"Iza", b"pm_", b"ypi", b"hf_", b"SG.", b"eyJ", b"Bea", b"://", b"-BE",
];

/// Three characters of each secret name, in any case, with `-` equal to `_`.
const NAME_TRIGRAMS: [&[u8; 3]; 10] =
    [b"ssw", b"ssp", b"ecr", b"oke", b"i_k", b"pik", b"s_k", b"e_k", b"t_k", b"ede"];

/// The beginning of a private key. The lines of a key have no rare sequence.
const KEY_BEGINS: &str = "-----BEGIN ";

/// The next part of a text that may contain a secret, from a position on. The part is a line,
/// because a secret is not longer. After the beginning of a private key, it is the whole rest.
pub(super) fn next_suspicious_part(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(from..)?;
    let (before, behind) =
        rest.split_at_checked(rest.array_windows().position(|letters| is_trigram(*letters))?)?;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = behind.iter().position(|byte| *byte == b'\n').unwrap_or(behind.len());
    let (start, end) = (from + start, from + before.len() + end);
    let begins = text.get(start..end).is_some_and(|line| line.contains(KEY_BEGINS));
    Some(start..if begins { text.len() } else { end })
}

fn is_trigram([one, two, three]: [u8; 3]) -> bool {
    let [first, second, third] = &TRIGRAM_BITS;
    let of = |letters: &[u64; 256], byte: u8| letters.get(usize::from(byte)).copied().unwrap_or(0);
    of(first, one) & of(second, two) & of(third, three) != 0
}

/// For each byte, the set of sequences in which it is the first, second or third character, one bit
/// per sequence.
const TRIGRAM_BITS: [[u64; 256]; 3] = trigram_bits();

#[expect(
    clippy::indexing_slicing,
    reason = "runs at compile time, so an error would stop the build"
)]
const fn trigram_bits() -> [[u64; 256]; 3] {
    let mut letters = [[0; 256]; 3];
    let mut at = 0;
    while at < 3 {
        let mut mark = 0;
        while mark < PREFIX_TRIGRAMS.len() {
            letters[at][PREFIX_TRIGRAMS[mark][at] as usize] |= 1 << mark;
            mark += 1;
        }
        let mut name = 0;
        while name < NAME_TRIGRAMS.len() {
            let (letter, bit) = (NAME_TRIGRAMS[name][at], 1 << (PREFIX_TRIGRAMS.len() + name));
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
