//! Which numbers can still become one of a list.
//!
//! `1`, `1.0`, `10e-1` and `0.1e1` are the same number, so digits decide and
//! the point does not. Numbers are doubles where they are no plain integers:
//! what differs only behind the fifteenth digit may be rounded to the same.

use serde_json::Number;

/// How many leading digits are compared.
pub(super) const DIGITS: u32 = 15;

/// A number by its sign and its leading digits.
#[derive(Debug)]
pub(super) struct Decimal {
    pub(super) shown: String,
    negative: bool,
    /// `DIGITS` digits that begin with no zero, and their neighbours, which
    /// rounding may make the same. None for zero.
    leading: Option<[u64; 3]>,
}

impl Decimal {
    pub(super) fn of(number: &Number) -> Self {
        let shown = number.to_string();
        let digits = shown
            .bytes()
            .take_while(|byte| !matches!(byte, b'e' | b'E'))
            .filter(u8::is_ascii_digit)
            .skip_while(|digit| *digit == b'0');
        let mut prefix = Digits::default();
        digits.for_each(|digit| prefix.push(digit));
        let leading = (prefix.count > 0).then(|| {
            let floor = 10_u64.pow(DIGITS - 1);
            let exact = prefix.value.saturating_mul(10_u64.pow(DIGITS - prefix.count));
            let below = if exact == floor { floor * 10 - 1 } else { exact - 1 };
            let above = if exact + 1 == floor * 10 { floor } else { exact + 1 };
            [below, exact, above]
        });
        Self { negative: shown.starts_with('-'), shown, leading }
    }

    /// Whether a number with this sign that begins with these digits can be this one.
    ///
    /// Any number can still be zero: an exponent makes it as small as that.
    pub(super) fn may_follow(&self, negative: bool, digits: &Digits) -> bool {
        let Some(leading) = &self.leading else { return true };
        let scale = 10_u64.pow(DIGITS - digits.count);
        self.negative == negative
            && (digits.count == 0 || leading.iter().any(|own| own / scale == digits.value))
    }
}

/// The leading digits of a number as far as it was read.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Digits {
    value: u64,
    // INVARIANT: count <= DIGITS.
    count: u32,
}

impl Digits {
    /// Takes one more; zeros in front and what is too far behind count for nothing.
    pub(super) fn push(&mut self, digit: u8) {
        if self.count < DIGITS && (self.count > 0 || digit != b'0') {
            self.value = self.value * 10 + u64::from(digit - b'0');
            self.count += 1;
        }
    }
}
