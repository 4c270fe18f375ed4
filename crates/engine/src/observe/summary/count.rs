//! Counts in the words of runners: `3 passed`, `failures=2`.

/// A count at the beginning, and what follows it after a blank. No runner counts
/// to four billion, and sums of what is less can't overflow.
pub(super) fn count(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((u64::from(digits.parse::<u32>().ok()?), rest.trim_start()))
}

/// A number and nothing else.
pub(super) fn number(text: &str) -> Option<u64> {
    count(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

/// A list such as `2 failed, 3 passed`; `None` if one of its parts is not a count.
pub(super) fn each(text: &str, between: &str, mut tell: impl FnMut(u64, &str)) -> Option<()> {
    for part in text.split(between) {
        let (count, word) = count(part.trim())?;
        tell(count, word);
    }
    Some(())
}

/// Whether a text is a time such as `0.03s` or `12 ms`, as runners close a line with.
pub(super) fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ':'));
    unit.len() < text.len() && matches!(unit.trim_start(), "s" | "ms" | "m" | "us" | "µs" | "h")
}
