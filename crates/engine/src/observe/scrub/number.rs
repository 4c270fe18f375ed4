//! Numbers that differ on every run: clock times, durations, rates, process numbers, memory
//! addresses.

use super::volatile_names;

/// A word that contains a digit.
pub(super) struct DigitWord {
    pub(super) start: usize,
    /// The position after its last letter or digit.
    pub(super) end: usize,
}

/// The word around a digit, which must be the first digit of the word.
pub(super) fn word_around(text: &[u8], digit: usize) -> DigitWord {
    let before = text.get(..digit).unwrap_or_default().iter().rev();
    let start = digit - before.take(WORD_BYTES_MAX).take_while(|byte| is_word_byte(**byte)).count();
    DigitWord { start, end: digit + matching_len(text, digit, is_word_byte) }
}

/// How many bytes before the digit are searched for the start of the word.
const WORD_BYTES_MAX: usize = 64;

const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The number of consecutive bytes from this position that match.
fn matching_len(text: &[u8], at: usize, is_match: impl Fn(u8) -> bool) -> usize {
    text.get(at..).unwrap_or_default().iter().take_while(|byte| is_match(**byte)).count()
}

fn digits_len(text: &[u8], at: usize) -> usize {
    matching_len(text, at, |byte| byte.is_ascii_digit())
}

/// The end of a volatile word and everything that belongs to it; `None` if the word is not
/// volatile.
pub(super) fn volatile_end(text: &[u8], token: &DigitWord) -> Option<usize> {
    let &DigitWord { start, end } = token;
    if !text.get(start).is_some_and(u8::is_ascii_digit) {
        return volatile_names::is_named_volatile(text, start).then_some(end);
    }
    date_and_clock_end(text, start)
        .or_else(|| clock_end(text, start))
        .or_else(|| address_end(text, token))
        .or_else(|| duration_end(text, start))
        .or_else(|| {
            let process = volatile_names::is_named_volatile(text, start)
                || volatile_names::is_local_port(text, start)
                || volatile_names::is_process(text, start, end);
            process.then(|| end + fraction_len(text, end))
        })
}

/// `2026-11-15T18:38:22.123Z`. A time without seconds is an appointment, and stays.
fn date_and_clock_end(text: &[u8], at: usize) -> Option<usize> {
    let separator = *text.get(at + 4).filter(|byte| matches!(byte, b'-' | b'/'))?;
    let is_date = digits_len(text, at) == 4
        && digits_len(text, at + 5) == 2
        && text.get(at + 7) == Some(&separator)
        && text.get(at + 8..at + 10)?.iter().all(u8::is_ascii_digit)
        && matches!(text.get(at + 10), Some(b'T' | b't' | b' ' | b'_'));
    if is_date { clock_end(text, at + 11) } else { None }
}

/// `18:38:22`, with an optional fraction and time zone.
fn clock_end(text: &[u8], at: usize) -> Option<usize> {
    let hours = digits_len(text, at);
    let minutes = at + hours + 1;
    let seconds = minutes + 3;
    let is_clock = matches!(hours, 1 | 2)
        && text.get(minutes - 1) == Some(&b':')
        && digits_len(text, minutes) == 2
        && text.get(seconds - 1) == Some(&b':')
        && digits_len(text, seconds) == 2;
    if !is_clock {
        return None;
    }
    let end = seconds + 2;
    let end = end + fraction_len(text, end);
    Some(end + zone_len(text, end))
}

/// The length of `.123` or `,123`.
fn fraction_len(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'.' | b',') => match digits_len(text, at + 1) {
            0 => 0,
            digits => digits + 1,
        },
        _ => 0,
    }
}

/// The length of `Z`, `+01:00` or `-0500`.
fn zone_len(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'Z' | b'z') => 1,
        Some(b'+' | b'-') => match (digits_len(text, at + 1), text.get(at + 3)) {
            (4, _) => 5,
            (2, Some(b':')) if digits_len(text, at + 4) == 2 => 6,
            _ => 0,
        },
        _ => 0,
    }
}

/// A memory address. A shorter number is a constant in the source code.
fn address_end(text: &[u8], token: &DigitWord) -> Option<usize> {
    let digits = text.get(token.start..token.end)?.strip_prefix(b"0x")?;
    (digits.len() >= ADDRESS_DIGITS_MIN && digits.iter().all(u8::is_ascii_hexdigit))
        .then_some(token.end)
}

const ADDRESS_DIGITS_MIN: usize = 7;

/// Units that make a number a duration or a rate, by their first byte.
fn duration_units(first: u8) -> &'static [&'static [u8]] {
    match first {
        b's' => &[b"s", b"sec", b"secs", b"second", b"seconds"],
        b'm' => &[b"ms"],
        b'u' => &[b"us"],
        b'n' => &[b"ns"],
        0xc2 => &[b"\xc2\xb5s"],
        0xce => &[b"\xce\xbcs"],
        b'B' => &[b"B/s"],
        b'k' => &[b"kB/s"],
        b'K' => &[b"KB/s", b"KiB/s"],
        b'M' => &[b"MB/s", b"MiB/s"],
        b'G' => &[b"GB/s", b"GiB/s"],
        b'i' => &[b"it/s"],
        _ => &[],
    }
}

/// Units that make a number a duration only in front of `ago`.
const AGO_UNITS: [&[u8]; 6] = [b"second", b"minute", b"hour", b"day", b"week", b"month"];

/// `1.23s`, `0m1.234s`, `15 ms`, `2h3m`, `12.5 MB/s`, `3 minutes ago`.
fn duration_end(text: &[u8], at: usize) -> Option<usize> {
    let mut end = number_end(text, at)?;
    let mut parts = 0;
    // A duration has few parts; a text with more parts is something else.
    for _ in 0..4 {
        let Some((hours, next)) = long_unit_end(text, end) else { break };
        end = hours;
        parts += 1;
        match next {
            Some(next) => end = next,
            None => return (parts > 1).then_some(end),
        }
    }
    let rest = text.get(end..)?;
    let gap = usize::from(rest.first() == Some(&b' '));
    let rest = rest.get(gap..)?;
    let first = *rest.first()?;
    let small = duration_units(first).iter().filter(|unit| rest.starts_with(unit));
    let mut ends = small.map(|unit| end + gap + unit.len());
    ends.find(|end| is_word_end(text, *end)).or_else(|| Some(end + gap + ago_len(rest)?))
}

/// The end of `h`, `m` or `d`, which mean something else on their own, and the end of the number
/// after it. `ms` is not `m`.
fn long_unit_end(text: &[u8], at: usize) -> Option<(usize, Option<usize>)> {
    text.get(at).filter(|byte| matches!(byte, b'h' | b'm' | b'd'))?;
    let end = at + 1;
    match number_end(text, end) {
        Some(next) => Some((end, Some(next))),
        None => is_word_end(text, end).then_some((end, None)),
    }
}

/// The length of `minutes ago`.
fn ago_len(rest: &[u8]) -> Option<usize> {
    let unit = AGO_UNITS.iter().find(|unit| rest.starts_with(unit))?.len();
    let plural = usize::from(rest.get(unit) == Some(&b's'));
    let ago = b" ago";
    rest.get(unit + plural..)?.starts_with(ago).then_some(unit + plural + ago.len())
}

/// The end of a number with its fraction.
fn number_end(text: &[u8], at: usize) -> Option<usize> {
    let whole = digits_len(text, at);
    let point = text.get(at + whole) == Some(&b'.');
    (whole > 0).then(|| at + whole + if point { fraction_len(text, at + whole) } else { 0 })
}

/// Whether a word ends here.
fn is_word_end(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| !is_word_byte(*byte))
}
