//! Decides whether a partial number can still become one of a list.
//!
//! `1`, `1.0`, `10e-1` and `0.1e1` are the same number, so only the digits count, not
//! the point. Numbers other than plain integers are doubles: two numbers that differ
//! only after the fifteenth digit may be rounded to the same double.

use serde_json::Number;

/// How many leading digits are compared.
pub(super) const COMPARED_DIGITS: u32 = 15;

/// A listed number: its sign and its leading digits.
#[derive(Debug)]
pub(super) struct DecimalLiteral {
    pub(super) text: String,
    negative: bool,
    /// The first `DIGITS` significant digits, and the numbers just below and above, to
    /// which rounding may lead. `None` for zero.
    leading: Option<[u64; 3]>,
}

impl DecimalLiteral {
    pub(super) fn from_number(number: &Number) -> Self {
        let shown = number.to_string();
        let digits = shown
            .bytes()
            .take_while(|byte| !matches!(byte, b'e' | b'E'))
            .filter(u8::is_ascii_digit)
            .skip_while(|digit| *digit == b'0');
        let mut prefix = LeadingDigits::default();
        digits.for_each(|digit| prefix.push(digit));
        let leading = (prefix.count > 0).then(|| {
            let floor = 10_u64.pow(COMPARED_DIGITS - 1);
            let exact = prefix.value.saturating_mul(10_u64.pow(COMPARED_DIGITS - prefix.count));
            let below = if exact == floor { floor * 10 - 1 } else { exact - 1 };
            let above = if exact + 1 == floor * 10 { floor } else { exact + 1 };
            [below, exact, above]
        });
        Self { negative: shown.starts_with('-'), text: shown, leading }
    }

    /// Whether a number with this sign and these leading digits can become this number.
    ///
    /// Any number can still become zero through a large negative exponent.
    pub(super) fn can_start_with(&self, negative: bool, digits: &LeadingDigits) -> bool {
        let Some(leading) = &self.leading else { return true };
        let scale = 10_u64.pow(COMPARED_DIGITS - digits.count);
        self.negative == negative
            && (digits.count == 0 || leading.iter().any(|value| value / scale == digits.value))
    }
}

/// The leading digits of a number, as far as it has been read.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LeadingDigits {
    value: u64,
    // INVARIANT: count <= DIGITS.
    count: u32,
}

impl LeadingDigits {
    /// Adds a digit. Leading zeros and digits after the first `DIGITS` are ignored.
    pub(super) fn push(&mut self, digit: u8) {
        if self.count < COMPARED_DIGITS && (self.count > 0 || digit != b'0') {
            self.value = self.value * 10 + u64::from(digit - b'0');
            self.count += 1;
        }
    }
}
