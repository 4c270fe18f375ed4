//! Numbers that are not whole, compared by their digits: no float takes part in
//! a decision.

use alloc::string::String;
use core::cmp::Ordering;

/// A number as `0.digits × 10^exponent`, without zeros at either end.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Reads the form JSON gives a number: `-12.5e-3`.
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

/// Compares two numbers, or says that one of the texts is none.
pub(super) fn compare(a: &str, b: &str) -> Option<Ordering> {
    Some(Decimal::parse(a)?.compare(&Decimal::parse(b)?))
}

/// The number without what is behind its point, where it is small enough.
pub(super) fn whole(text: &str) -> Option<i64> {
    let Decimal { negative, mut digits, exponent } = Decimal::parse(text)?;
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
                assert_eq!(compare(a, b), Some(i.cmp(&j)), "{a} {b}");
            }
        }
        for (a, b) in [("1.0", "1"), ("-0.0", "0"), ("1e2", "100"), ("0.5e1", "5.000"), ("00", "0")]
        {
            assert_eq!(compare(a, b), Some(Ordering::Equal), "{a} {b}");
        }
        // A float has neither: these two would be the same.
        assert_eq!(compare("9007199254740993", "9007199254740992.0"), Some(Ordering::Greater));
        for none in ["", "-", ".5", "1e", "1e99999999999", "0x1", "NaN"] {
            assert_eq!(compare(none, "1"), None, "{none}");
        }
    }

    #[test]
    fn a_whole_number_is_cut_from_a_decimal_not_rounded() {
        assert_eq!(whole("1.99"), Some(1));
        assert_eq!(whole("-1.99"), Some(-1));
        assert_eq!(whole("1.5e3"), Some(1500));
        assert_eq!(whole("0.004"), Some(0));
        assert_eq!(whole("-9223372036854775808.5"), Some(i64::MIN));
        assert_eq!(whole("9223372036854775808"), None);
        assert_eq!(whole("1e300"), None);
    }
}
