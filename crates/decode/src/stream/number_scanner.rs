//! Checks numbers: the syntax byte by byte, the value at the end.

use serde_json::{Number as Parsed, Value};

use super::decimal_literal::LeadingDigits;
use super::refusal_reason::RefusalReason;
use super::schema_alternatives::{RuleOutCause, SchemaAlternatives};
use super::schema_node::NumberSign;

/// How many bytes a number may have.
pub const NUMBER_BYTES_MAX: usize = 1_024;

/// A longer number without an exponent may be too large for a double.
const PLAIN_NUMBER_BYTES_MAX: usize = 300;

/// The state of a number that is being read.
#[derive(Debug, Default, Clone)]
pub(super) struct NumberScanner {
    part: NumberPart,
    digits: LeadingDigits,
    negative: bool,
    bytes: Vec<u8>,
    /// Whether each digit must be compared with listed numbers.
    compares_literals: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum NumberPart {
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

impl NumberScanner {
    pub(super) fn begin_number(&mut self, alternatives: &SchemaAlternatives<'_>) {
        self.part = NumberPart::Start;
        self.digits = LeadingDigits::default();
        self.negative = false;
        self.bytes.clear();
        self.compares_literals = false;
        alternatives.visit_schemas(|node| self.compares_literals |= node.number.literals.is_some());
    }

    /// Reads a byte, or reports that it no longer belongs to the number.
    pub(super) fn read_byte(
        &mut self,
        byte: u8,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<ByteInNumber, RefusalReason> {
        let Some(next) = self.next_part(byte)? else { return Ok(ByteInNumber::No) };
        if self.bytes.len() >= NUMBER_BYTES_MAX {
            return Err(RefusalReason::NumberLength);
        }
        self.bytes.push(byte);
        if self.part == NumberPart::Start {
            self.negative = next == NumberPart::Minus;
            let other = if self.negative { NumberSign::Positive } else { NumberSign::Negative };
            alternatives.rule_out_schemas(|node, _, _| {
                (node.number.sign == other).then_some(RuleOutCause::Sign)
            })?;
        }
        self.part = next;
        let digit = byte.is_ascii_digit() && next != NumberPart::ExponentDigits;
        if digit {
            self.digits.push(byte);
        }
        if self.compares_literals && (digit || next == NumberPart::Minus) {
            let (negative, digits) = (self.negative, self.digits);
            alternatives.rule_out_schemas(|node, _, _| {
                let literals = node.number.literals.as_ref()?;
                let possible = literals.iter().any(|own| own.can_start_with(negative, &digits));
                (!possible).then_some(RuleOutCause::Literal)
            })?;
        }
        Ok(ByteInNumber::Yes)
    }

    fn next_part(&self, byte: u8) -> Result<Option<NumberPart>, RefusalReason> {
        let next = match (self.part, byte) {
            (NumberPart::Start, b'-') => NumberPart::Minus,
            (NumberPart::Start | NumberPart::Minus, b'0') => NumberPart::Zero,
            (NumberPart::Start | NumberPart::Minus, b'1'..=b'9')
            | (NumberPart::Integer, b'0'..=b'9') => NumberPart::Integer,
            (NumberPart::Zero | NumberPart::Integer, b'.') => NumberPart::Point,
            (NumberPart::Point | NumberPart::Fraction, b'0'..=b'9') => NumberPart::Fraction,
            (NumberPart::Zero | NumberPart::Integer | NumberPart::Fraction, b'e' | b'E') => {
                NumberPart::Exponent
            }
            (NumberPart::Exponent, b'+' | b'-') => NumberPart::ExponentSign,
            (
                NumberPart::Exponent | NumberPart::ExponentSign | NumberPart::ExponentDigits,
                b'0'..=b'9',
            ) => NumberPart::ExponentDigits,
            _ if self.can_end() => return Ok(None),
            _ => return Err(RefusalReason::Syntax("a digit")),
        };
        Ok(Some(next))
    }

    pub(super) fn can_end(&self) -> bool {
        matches!(
            self.part,
            NumberPart::Zero
                | NumberPart::Integer
                | NumberPart::Fraction
                | NumberPart::ExponentDigits
        )
    }

    /// Checks the complete number.
    pub(super) fn check_number(
        &self,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<(), RefusalReason> {
        let plain = matches!(self.part, NumberPart::Zero | NumberPart::Integer);
        let mut wanted = !(plain || self.part == NumberPart::Fraction)
            || self.bytes.len() > PLAIN_NUMBER_BYTES_MAX;
        alternatives.visit_schemas(|node| {
            let check = node.number.check.as_ref();
            wanted |= check.is_some_and(|check| !(plain && check.plain_integers_pass));
        });
        if !wanted {
            return Ok(());
        }
        let value: Parsed =
            serde_json::from_slice(&self.bytes).map_err(|_| RefusalReason::NumberRange)?;
        let value = Value::Number(value);
        alternatives.rule_out_schemas(|node, _, _| {
            let check = node.number.check.as_ref()?;
            (!check.validator.is_valid(&value)).then_some(RuleOutCause::Number)
        })?;
        Ok(())
    }
}

/// Whether a byte was a part of the number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ByteInNumber {
    Yes,
    No,
}
