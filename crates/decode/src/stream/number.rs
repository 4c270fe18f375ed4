//! Numbers: their syntax byte by byte, their value at the end.

use serde_json::{Number as Parsed, Value};

use super::alternatives::{Alternatives, Cause};
use super::decimal::Digits;
use super::node::Sign;
use super::why::Why;

/// How long a number may be.
pub const NUMBER_BYTES_MAX: usize = 1_024;

/// From here on a plain number may be larger than a double.
const PLAIN_MAX: usize = 300;

/// How far a number is read.
#[derive(Debug, Default, Clone)]
pub(super) struct Number {
    part: Part,
    digits: Digits,
    negative: bool,
    written: Vec<u8>,
    /// Whether each digit has to be compared with literals.
    watched: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Start,
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Number {
    pub(super) fn begin(&mut self, alternatives: &Alternatives<'_>) {
        self.part = Part::Start;
        self.digits = Digits::default();
        self.negative = false;
        self.written.clear();
        self.watched = false;
        alternatives.survey(|node| self.watched |= node.number.literals.is_some());
    }

    /// Takes a byte, or says that it belongs to the number no more.
    pub(super) fn step(
        &mut self,
        byte: u8,
        alternatives: &mut Alternatives<'_>,
    ) -> Result<Taken, Why> {
        let Some(next) = self.next(byte)? else { return Ok(Taken::No) };
        if self.written.len() >= NUMBER_BYTES_MAX {
            return Err(Why::NumberLength);
        }
        self.written.push(byte);
        if self.part == Part::Start {
            self.negative = next == Part::Minus;
            let other = if self.negative { Sign::Positive } else { Sign::Negative };
            alternatives.sift(|node, _, _| (node.number.sign == other).then_some(Cause::Sign))?;
        }
        self.part = next;
        let digit = byte.is_ascii_digit() && next != Part::ExponentDigits;
        if digit {
            self.digits.push(byte);
        }
        if self.watched && (digit || next == Part::Minus) {
            let (negative, digits) = (self.negative, self.digits);
            alternatives.sift(|node, _, _| {
                let literals = node.number.literals.as_ref()?;
                let possible = literals.iter().any(|own| own.may_follow(negative, &digits));
                (!possible).then_some(Cause::Literal)
            })?;
        }
        Ok(Taken::Yes)
    }

    fn next(&self, byte: u8) -> Result<Option<Part>, Why> {
        let next = match (self.part, byte) {
            (Part::Start, b'-') => Part::Minus,
            (Part::Start | Part::Minus, b'0') => Part::Zero,
            (Part::Start | Part::Minus, b'1'..=b'9') | (Part::Integer, b'0'..=b'9') => {
                Part::Integer
            }
            (Part::Zero | Part::Integer, b'.') => Part::Point,
            (Part::Point | Part::Fraction, b'0'..=b'9') => Part::Fraction,
            (Part::Zero | Part::Integer | Part::Fraction, b'e' | b'E') => Part::Exponent,
            (Part::Exponent, b'+' | b'-') => Part::ExponentSign,
            (Part::Exponent | Part::ExponentSign | Part::ExponentDigits, b'0'..=b'9') => {
                Part::ExponentDigits
            }
            _ if self.may_end() => return Ok(None),
            _ => return Err(Why::Syntax("a digit")),
        };
        Ok(Some(next))
    }

    pub(super) fn may_end(&self) -> bool {
        matches!(self.part, Part::Zero | Part::Integer | Part::Fraction | Part::ExponentDigits)
    }

    /// The number is complete.
    pub(super) fn end(&self, alternatives: &mut Alternatives<'_>) -> Result<(), Why> {
        let plain = matches!(self.part, Part::Zero | Part::Integer);
        let mut wanted = !(plain || self.part == Part::Fraction) || self.written.len() > PLAIN_MAX;
        alternatives.survey(|node| {
            let check = node.number.check.as_ref();
            wanted |= check.is_some_and(|check| !(plain && check.plain_passes));
        });
        if !wanted {
            return Ok(());
        }
        let value: Parsed = serde_json::from_slice(&self.written).map_err(|_| Why::NumberRange)?;
        let value = Value::Number(value);
        alternatives.sift(|node, _, _| {
            let check = node.number.check.as_ref()?;
            (!check.validator.is_valid(&value)).then_some(Cause::Number)
        })?;
        Ok(())
    }
}

/// Whether a byte was a part of the number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
}
