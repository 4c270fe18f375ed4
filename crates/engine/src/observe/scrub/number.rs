//! Numbers that change by themselves: clocks, durations, rates, process
//! numbers, addresses in memory.

use super::words;

/// A word that holds a digit.
pub(super) struct Token {
    pub(super) start: usize,
    /// Behind its last letter or digit.
    pub(super) end: usize,
}

/// The word around the first digit in it.
pub(super) fn token(text: &[u8], digit: usize) -> Token {
    let before = text.get(..digit).unwrap_or_default().iter().rev();
    let start = digit - before.take(WORD_BYTES_MAX).take_while(|byte| in_word(**byte)).count();
    Token { start, end: digit + length(text, digit, in_word) }
}

/// How far back the start of a word is looked for.
const WORD_BYTES_MAX: usize = 64;

const fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How many bytes from here on are such.
fn length(text: &[u8], at: usize, such: impl Fn(u8) -> bool) -> usize {
    text.get(at..).unwrap_or_default().iter().take_while(|byte| such(**byte)).count()
}

fn digits(text: &[u8], at: usize) -> usize {
    length(text, at, |byte| byte.is_ascii_digit())
}

/// Where a word that changes by itself ends, with what belongs to it.
pub(super) fn volatile(text: &[u8], token: &Token) -> Option<usize> {
    let &Token { start, end } = token;
    if !text.get(start).is_some_and(u8::is_ascii_digit) {
        return words::names_volatile(text, start).then_some(end);
    }
    date_and_clock(text, start)
        .or_else(|| clock(text, start))
        .or_else(|| address(text, token))
        .or_else(|| duration(text, start))
        .or_else(|| {
            let process = words::names_volatile(text, start)
                || words::is_local_port(text, start)
                || words::is_process(text, start, end);
            process.then(|| end + fraction(text, end))
        })
}

/// `2026-11-15T18:38:22.123Z`. Without seconds it is an appointment, and stays.
fn date_and_clock(text: &[u8], at: usize) -> Option<usize> {
    let separator = *text.get(at + 4).filter(|byte| matches!(byte, b'-' | b'/'))?;
    let is_date = digits(text, at) == 4
        && digits(text, at + 5) == 2
        && text.get(at + 7) == Some(&separator)
        && text.get(at + 8..at + 10)?.iter().all(u8::is_ascii_digit)
        && matches!(text.get(at + 10), Some(b'T' | b't' | b' ' | b'_'));
    if is_date { clock(text, at + 11) } else { None }
}

/// `18:38:22`, with a fraction and a zone.
fn clock(text: &[u8], at: usize) -> Option<usize> {
    let hours = digits(text, at);
    let minutes = at + hours + 1;
    let seconds = minutes + 3;
    let is_clock = matches!(hours, 1 | 2)
        && text.get(minutes - 1) == Some(&b':')
        && digits(text, minutes) == 2
        && text.get(seconds - 1) == Some(&b':')
        && digits(text, seconds) == 2;
    if !is_clock {
        return None;
    }
    let end = seconds + 2;
    let end = end + fraction(text, end);
    Some(end + zone(text, end))
}

/// How long `.123` or `,123` is.
fn fraction(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'.' | b',') => match digits(text, at + 1) {
            0 => 0,
            digits => digits + 1,
        },
        _ => 0,
    }
}

/// How long `Z`, `+01:00` or `-0500` is.
fn zone(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'Z' | b'z') => 1,
        Some(b'+' | b'-') => match (digits(text, at + 1), text.get(at + 3)) {
            (4, _) => 5,
            (2, Some(b':')) if digits(text, at + 4) == 2 => 6,
            _ => 0,
        },
        _ => 0,
    }
}

/// An address in memory. Shorter ones are constants that somebody wrote.
fn address(text: &[u8], token: &Token) -> Option<usize> {
    let digits = text.get(token.start..token.end)?.strip_prefix(b"0x")?;
    (digits.len() >= ADDRESS_DIGITS_MIN && digits.iter().all(u8::is_ascii_hexdigit))
        .then_some(token.end)
}

const ADDRESS_DIGITS_MIN: usize = 7;

/// Units that a number alone makes a duration or a rate with, by how they begin.
fn units(first: u8) -> &'static [&'static [u8]] {
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

/// Units that count if it is said that this was some time ago.
const AGO_UNITS: [&[u8]; 6] = [b"second", b"minute", b"hour", b"day", b"week", b"month"];

/// `1.23s`, `0m1.234s`, `15 ms`, `2h3m`, `12.5 MB/s`, `3 minutes ago`.
fn duration(text: &[u8], at: usize) -> Option<usize> {
    let mut end = number(text, at)?;
    let mut parts = 0;
    // A duration has few parts; more are something else.
    for _ in 0..4 {
        let Some((hours, next)) = hours_and_more(text, end) else { break };
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
    let small = units(first).iter().filter(|unit| rest.starts_with(unit));
    let mut ends = small.map(|unit| end + gap + unit.len());
    ends.find(|end| is_over(text, *end)).or_else(|| Some(end + gap + some_time_ago(rest)?))
}

/// Where `h`, `m` or `d` ends, which alone are something else, and the number
/// behind it. `ms` is not `m`.
fn hours_and_more(text: &[u8], at: usize) -> Option<(usize, Option<usize>)> {
    text.get(at).filter(|byte| matches!(byte, b'h' | b'm' | b'd'))?;
    let end = at + 1;
    match number(text, end) {
        Some(next) => Some((end, Some(next))),
        None => is_over(text, end).then_some((end, None)),
    }
}

/// How long `minutes ago` is.
fn some_time_ago(rest: &[u8]) -> Option<usize> {
    let unit = AGO_UNITS.iter().find(|unit| rest.starts_with(unit))?.len();
    let plural = usize::from(rest.get(unit) == Some(&b's'));
    let ago = b" ago";
    rest.get(unit + plural..)?.starts_with(ago).then_some(unit + plural + ago.len())
}

/// Where a number ends, with its fraction.
fn number(text: &[u8], at: usize) -> Option<usize> {
    let whole = digits(text, at);
    let point = text.get(at + whole) == Some(&b'.');
    (whole > 0).then(|| at + whole + if point { fraction(text, at + whole) } else { 0 })
}

/// Whether a word ends here.
fn is_over(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| !in_word(*byte))
}
