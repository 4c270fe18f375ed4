//! Counts in the output of runners: `3 passed`, `failures=2`.

/// A count at the beginning of a text, and the text after it. Counts are limited to `u32`, so that
/// sums can't overflow.
pub(super) fn leading_count(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((u64::from(digits.parse::<u32>().ok()?), rest.trim_start()))
}

/// A number without any other text.
pub(super) fn whole_number(text: &str) -> Option<u64> {
    leading_count(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

/// A list such as `2 failed, 3 passed`; `None` if one of its parts is not a count.
pub(super) fn visit_counts(
    text: &str,
    between: &str,
    mut visit: impl FnMut(u64, &str),
) -> Option<()> {
    for part in text.split(between) {
        let (count, word) = leading_count(part.trim())?;
        visit(count, word);
    }
    Some(())
}

/// Whether a text is a duration such as `0.03s` or `12 ms`, with which runners end a line.
pub(super) fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ':'));
    unit.len() < text.len() && matches!(unit.trim_start(), "s" | "ms" | "m" | "us" | "µs" | "h")
}
