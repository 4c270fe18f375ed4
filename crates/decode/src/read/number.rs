//! Numbers, and the words that are values.

use serde_json::{Number, Value};

use super::{Reader, Stop};
use crate::decoded::{Reason, Repair};

impl Reader<'_> {
    pub(super) fn number(&mut self) -> Result<Value, Stop> {
        let length = self
            .rest()
            .find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '.' | '+' | '-' | '_')))
            .unwrap_or(self.rest().len());
        let token = self.rest().get(..length).unwrap_or_default();
        let (token, mended) = match is_number(token) {
            true => (token.to_owned(), false),
            false if self.lenient() => (mend(token), true),
            false => return Err(self.stop(Reason::Broken, "a number as JSON writes it")),
        };
        if !is_number(&token) {
            return Err(self.stop(Reason::Broken, "a number as JSON writes it"));
        }
        let Some(number) = to_number(&token) else {
            return Err(self.stop(Reason::NumberOutOfRange, "a number that can be kept exactly"));
        };
        if mended {
            self.note(Repair::Number);
        }
        self.at += length;
        Ok(Value::Number(number))
    }

    pub(super) fn word(&mut self) -> Result<Value, Stop> {
        let rest = self.rest();
        let length = rest
            .find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | '$')))
            .unwrap_or(rest.len());
        let (value, odd) = match rest.get(..length).unwrap_or_default() {
            "true" => (Value::Bool(true), false),
            "false" => (Value::Bool(false), false),
            "null" => (Value::Null, false),
            "True" | "TRUE" => (Value::Bool(true), true),
            "False" | "FALSE" => (Value::Bool(false), true),
            "None" | "NULL" | "Null" => (Value::Null, true),
            _ => return Err(self.stop(Reason::Broken, "a value; text belongs in double quotes")),
        };
        if odd && !self.lenient() {
            return Err(self.stop(Reason::Broken, "`true`, `false` or `null`"));
        }
        if odd {
            self.note(Repair::Literal);
        }
        self.at += length;
        Ok(value)
    }
}

/// `+1`, `.5`, `5.`, `1_000` and `0x1F`, as JSON writes them.
fn mend(token: &str) -> String {
    let (sign, digits) = match token.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", token.strip_prefix('+').unwrap_or(token)),
    };
    let hex =
        digits.strip_prefix("0x").filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if let Some(Ok(number)) = hex.map(|hex| u64::from_str_radix(hex, 16)) {
        return format!("{sign}{number}");
    }
    // Between groups of three the underscore can't be anything else.
    let mut groups = digits.split('_');
    let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()));
    if digits.contains('_') && first && groups.all(|group| group.len() == 3) {
        return format!("{sign}{}", digits.replace('_', ""));
    }
    let zero = if digits.starts_with('.') && digits.len() > 1 { "0" } else { "" };
    let digits = match digits.strip_suffix('.') {
        Some(whole) if whole.bytes().all(|byte| byte.is_ascii_digit()) => whole,
        _ => digits,
    };
    format!("{sign}{zero}{digits}")
}

/// Whether JSON writes a number like this.
fn is_number(token: &str) -> bool {
    let token = token.strip_prefix('-').unwrap_or(token);
    let whole = digits(token);
    if whole == 0 || (whole > 1 && token.starts_with('0')) {
        return false;
    }
    let mut rest = token.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = fraction.get(length..).unwrap_or_default();
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The number, unless it is too large to keep, or whole and not kept exactly.
fn to_number(token: &str) -> Option<Number> {
    let whole = !token.contains(['.', 'e', 'E']);
    if whole && token != "-0" {
        if let Ok(number) = token.parse::<u64>() {
            return Some(Number::from(number));
        }
        if let Ok(number) = token.parse::<i64>() {
            return Some(Number::from(number));
        }
    }
    let number = token.parse::<f64>().ok().filter(|number| number.is_finite())?;
    if whole && token != "-0" && format!("{number:.0}") != token {
        return None;
    }
    Number::from_f64(number)
}
