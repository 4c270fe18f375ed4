//! Decimal numbers, compared by their digits. Floats must not take part in a decision.

use alloc::string::String;
use core::cmp::Ordering;

/// A number as `0.digits × 10^exponent`. The digits have no zeros at either end.
#[derive(Debug, PartialEq, Eq)]
struct ExprDecimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl ExprDecimal {
    /// Parses a number in the form that JSON uses: `-12.5e-3`.
    fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let mut digits = String::with_capacity(whole.len() + fraction.len());
        digits.push_str(whole);
        digits.push_str(fraction);
        let significant = digits.trim_start_matches('0');
        let leading = i64::try_from(digits.len() - significant.len()).ok()?;
        let significant = String::from(significant.trim_end_matches('0'));
        if significant.is_empty() {
            return Some(Self { negative: false, digits: significant, exponent: 0 });
        }
        let exponent = i64::try_from(whole.len()).ok()? - leading + i64::from(exponent);
        Some(Self { negative, digits: significant, exponent })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let sign = |of: &Self| match (of.digits.is_empty(), of.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = |a: &Self, b: &Self| (a.exponent, &a.digits).cmp(&(b.exponent, &b.digits));
        sign(self)
            .cmp(&sign(other))
            .then_with(|| if self.negative { size(other, self) } else { size(self, other) })
    }
}

/// Compares two numbers. The result is `None` if one of the texts is not a number.
pub(super) fn compare_decimals(a: &str, b: &str) -> Option<Ordering> {
    Some(ExprDecimal::parse(a)?.compare(&ExprDecimal::parse(b)?))
}

/// The part of a number before the decimal point, if it fits into an `i64`.
pub(super) fn truncate_decimal(text: &str) -> Option<i64> {
    let ExprDecimal { negative, mut digits, exponent } = ExprDecimal::parse(text)?;
    if exponent <= 0 {
        return Some(0);
    }
    let places = usize::try_from(exponent).ok().filter(|places| *places <= 19)?;
    digits.truncate(places);
    digits.extend(core::iter::repeat_n('0', places - digits.len()));
    if negative {
        digits.insert(0, '-');
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_their_digits() {
        let ascending = ["-1e3", "-999.5", "-0.001", "0", "1e-9", "0.1", "0.10000001", "1.5", "15"];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare_decimals(a, b), Some(i.cmp(&j)), "{a} {b}");
            }
        }
        for (a, b) in [("1.0", "1"), ("-0.0", "0"), ("1e2", "100"), ("0.5e1", "5.000"), ("00", "0")]
        {
            assert_eq!(compare_decimals(a, b), Some(Ordering::Equal), "{a} {b}");
        }
        // Floats could not tell these two numbers apart.
        assert_eq!(
            compare_decimals("9007199254740993", "9007199254740992.0"),
            Some(Ordering::Greater)
        );
        for invalid in ["", "-", ".5", "1e", "1e99999999999", "0x1", "NaN"] {
            assert_eq!(compare_decimals(invalid, "1"), None, "{invalid}");
        }
    }

    #[test]
    fn a_decimal_is_truncated_to_a_whole_number_not_rounded() {
        assert_eq!(truncate_decimal("1.99"), Some(1));
        assert_eq!(truncate_decimal("-1.99"), Some(-1));
        assert_eq!(truncate_decimal("1.5e3"), Some(1500));
        assert_eq!(truncate_decimal("0.004"), Some(0));
        assert_eq!(truncate_decimal("-9223372036854775808.5"), Some(i64::MIN));
        assert_eq!(truncate_decimal("9223372036854775808"), None);
        assert_eq!(truncate_decimal("1e300"), None);
    }
}
