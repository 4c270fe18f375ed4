//! Reads numbers and the literals `true`, `false` and `null`.

use serde_json::{Number, Value};

use super::{JsonReadFailure, JsonReader};
use crate::outcome::{InvalidReason, TextRepair};

impl JsonReader<'_> {
    pub(super) fn read_number(&mut self) -> Result<Value, JsonReadFailure> {
        let length = self
            .rest()
            .find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '.' | '+' | '-' | '_')))
            .unwrap_or(self.rest().len());
        let token = self.rest().get(..length).unwrap_or_default();
        let (token, repaired) = match is_number(token) {
            true => (token.to_owned(), false),
            false if self.is_lenient() => (repair_number(token), true),
            false => return Err(self.failure(InvalidReason::Broken, "a valid JSON number")),
        };
        if !is_number(&token) {
            return Err(self.failure(InvalidReason::Broken, "a valid JSON number"));
        }
        let Some(number) = parse_number(&token) else {
            return Err(self
                .failure(InvalidReason::NumberOutOfRange, "a number that can be stored exactly"));
        };
        if repaired {
            self.record_repair(TextRepair::Number);
        }
        self.at += length;
        Ok(Value::Number(number))
    }

    pub(super) fn read_literal(&mut self) -> Result<Value, JsonReadFailure> {
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
            _ => {
                return Err(
                    self.failure(InvalidReason::Broken, "a value; text belongs in double quotes")
                );
            }
        };
        if odd && !self.is_lenient() {
            return Err(self.failure(InvalidReason::Broken, "`true`, `false` or `null`"));
        }
        if odd {
            self.record_repair(TextRepair::Literal);
        }
        self.at += length;
        Ok(value)
    }
}

/// Rewrites `+1`, `.5`, `5.`, `1_000` and `0x1F` as JSON numbers.
fn repair_number(token: &str) -> String {
    let (sign, digits) = match token.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", token.strip_prefix('+').unwrap_or(token)),
    };
    let hex =
        digits.strip_prefix("0x").filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if let Some(Ok(number)) = hex.map(|hex| u64::from_str_radix(hex, 16)) {
        return format!("{sign}{number}");
    }
    // Between groups of three digits an underscore can only be a separator.
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

/// Whether the token is a valid JSON number.
fn is_number(token: &str) -> bool {
    let token = token.strip_prefix('-').unwrap_or(token);
    let whole = digit_count(token);
    if whole == 0 || (whole > 1 && token.starts_with('0')) {
        return false;
    }
    let mut rest = token.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digit_count(fraction);
        if length == 0 {
            return false;
        }
        rest = fraction.get(length..).unwrap_or_default();
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let length = digit_count(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

fn digit_count(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The number. `None` if it is out of range, or an integer that cannot be stored exactly.
fn parse_number(token: &str) -> Option<Number> {
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
