//! The results of operators and functions, and the steps they cost.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::cmp::Ordering;

use super::value::MapEntries;
use super::{ArithmeticOperator, Comparison, EvaluationError, ExprFunction, ExprValue, decimal};

/// How many bytes of text cost one step.
const BYTES_PER_STEP: usize = 16;

/// How many characters of a text from the call a message may quote.
const QUOTED_CHARS_MAX: usize = 60;

/// The deepest nesting of lists or maps that can be compared.
const EQUAL_DEPTH_MAX: u32 = 128;

/// The remaining steps.
pub(super) struct StepBudget {
    // INVARIANT: `left` never increases, and is 0 after a spend that it could not cover.
    left: u32,
    limit: u32,
}

impl StepBudget {
    pub(super) fn new(limit: u32) -> Self {
        Self { left: limit, limit }
    }

    pub(super) fn left(&self) -> u32 {
        self.left
    }

    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), EvaluationError> {
        match u32::try_from(steps).ok().and_then(|steps| self.left.checked_sub(steps)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.exhausted()),
        }
    }

    #[cold]
    fn exhausted(&mut self) -> EvaluationError {
        self.left = 0;
        EvaluationError::Failed(format!("it takes more than {} steps", self.limit))
    }

    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.spend(bytes / BYTES_PER_STEP)
    }

    pub(super) fn compare(
        &mut self,
        how: Comparison,
        a: &ExprValue<'_>,
        b: &ExprValue<'_>,
    ) -> Result<bool, EvaluationError> {
        match how {
            Comparison::Equal => self.equal(a, b),
            Comparison::Unequal => self.equal(a, b).map(|equal| !equal),
            _ => self.order(a, b).map(|order| how.matches_ordering(order)),
        }
    }

    fn order(&mut self, a: &ExprValue<'_>, b: &ExprValue<'_>) -> Result<Ordering, EvaluationError> {
        match (a, b) {
            (ExprValue::Bool(a), ExprValue::Bool(b)) => Ok(a.cmp(b)),
            (ExprValue::Int(a), ExprValue::Int(b)) => Ok(a.cmp(b)),
            (ExprValue::Text(a), ExprValue::Text(b)) => {
                self.spend_bytes(a.len().min(b.len()))?;
                Ok((**a).cmp(b))
            }
            _ => match (number_text(a), number_text(b)) {
                (Some(a), Some(b)) => {
                    self.spend_bytes(a.len().saturating_add(b.len()))?;
                    decimal::compare_decimals(&a, &b).ok_or_else(not_a_number)
                }
                _ => fail(format!("{} can't be compared with {}", a.describe(), b.describe())),
            },
        }
    }

    /// Values of different types are not equal, except that a whole number can equal a decimal.
    pub(super) fn equal(
        &mut self,
        a: &ExprValue<'_>,
        b: &ExprValue<'_>,
    ) -> Result<bool, EvaluationError> {
        self.equal_at(a, b, EQUAL_DEPTH_MAX)
    }

    fn equal_at(
        &mut self,
        a: &ExprValue<'_>,
        b: &ExprValue<'_>,
        depth: u32,
    ) -> Result<bool, EvaluationError> {
        match (a, b) {
            (ExprValue::Null, ExprValue::Null) => return Ok(true),
            (ExprValue::Bool(a), ExprValue::Bool(b)) => return Ok(a == b),
            (ExprValue::Int(a), ExprValue::Int(b)) => return Ok(a == b),
            (ExprValue::Text(a), ExprValue::Text(b)) => {
                self.spend_bytes(a.len().min(b.len()))?;
                return Ok(**a == **b);
            }
            (
                ExprValue::Int(_) | ExprValue::Decimal(_),
                ExprValue::Int(_) | ExprValue::Decimal(_),
            ) => {
                return self.order(a, b).map(Ordering::is_eq);
            }
            _ => {}
        }
        let Some(depth) = depth.checked_sub(1) else {
            return fail(format!("lists nested deeper than {EQUAL_DEPTH_MAX} can't be compared"));
        };
        if let (Some(a), Some(b)) = (a.items(), b.items()) {
            return if a.len() == b.len() {
                self.all_equal(a.iter().zip(b.iter()).map(|(a, b)| (a, Some(b))), depth)
            } else {
                Ok(false)
            };
        }
        match (a.entries(), b.entries()) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                self.spend(a.len())?;
                self.all_equal(a.iter().map(|(key, value)| (value, b.get(&key))), depth)
            }
            _ => Ok(false),
        }
    }

    fn all_equal<'v>(
        &mut self,
        pairs: impl Iterator<Item = (ExprValue<'v>, Option<ExprValue<'v>>)>,
        depth: u32,
    ) -> Result<bool, EvaluationError> {
        for (a, b) in pairs {
            self.spend(1)?;
            match b {
                Some(b) if self.equal_at(&a, &b, depth)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    pub(super) fn is_in(
        &mut self,
        a: &ExprValue<'_>,
        b: &ExprValue<'_>,
    ) -> Result<bool, EvaluationError> {
        if let Some(items) = b.items() {
            for item in items.iter() {
                self.spend(1)?;
                if self.equal(a, &item)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        match (b.entries(), a) {
            (Some(entries), ExprValue::Text(key)) => {
                self.spend_bytes(key.len())?;
                Ok(entries.get(key).is_some())
            }
            (Some(_), ExprValue::Bool(_) | ExprValue::Int(_) | ExprValue::Decimal(_)) => Ok(false),
            (Some(_), _) => fail(format!("{} can't be a key of a map", a.describe())),
            (None, _) => fail(format!("`in` looks into a list or a map, not {}", b.describe())),
        }
    }

    pub(super) fn arithmetic<'v>(
        &mut self,
        operator: ArithmeticOperator,
        a: &ExprValue<'v>,
        b: &ExprValue<'v>,
    ) -> Result<ExprValue<'v>, EvaluationError> {
        if let (ExprValue::Int(a), ExprValue::Int(b)) = (a, b) {
            let result = match operator {
                ArithmeticOperator::Add => a.checked_add(*b),
                ArithmeticOperator::Subtract => a.checked_sub(*b),
                ArithmeticOperator::Multiply => a.checked_mul(*b),
                ArithmeticOperator::Divide | ArithmeticOperator::Remainder if *b == 0 => {
                    return fail(format!("{a} is divided by 0"));
                }
                ArithmeticOperator::Divide => a.checked_div(*b),
                ArithmeticOperator::Remainder => a.checked_rem(*b),
            };
            let sign = operator_sign(operator);
            return result.map(ExprValue::Int).ok_or_else(|| {
                EvaluationError::Failed(format!("`{a} {sign} {b}` is too large a number"))
            });
        }
        if operator == ArithmeticOperator::Add {
            if let (ExprValue::Text(a), ExprValue::Text(b)) = (a, b) {
                self.spend_bytes(a.len().saturating_add(b.len()))?;
                let mut joined = String::with_capacity(a.len() + b.len());
                joined.push_str(a);
                joined.push_str(b);
                return Ok(ExprValue::from(joined));
            }
            if let (Some(a), Some(b)) = (a.items(), b.items()) {
                self.spend(a.len().saturating_add(b.len()))?;
                return Ok(a.iter().chain(b.iter()).collect());
            }
        }
        let (sign, a, b) = (operator_sign(operator), a.describe(), b.describe());
        fail(format!("`{sign}` can't be used on {a} and {b}"))
    }

    pub(super) fn index<'v>(
        &mut self,
        of: &ExprValue<'v>,
        at: &ExprValue<'v>,
    ) -> Result<ExprValue<'v>, EvaluationError> {
        match (of.items(), of.entries(), at) {
            (Some(items), _, ExprValue::Int(at)) => {
                let found = usize::try_from(*at).ok().and_then(|at| items.get(at));
                found.ok_or_else(|| {
                    EvaluationError::Failed(format!(
                        "there is no item {at} in a list of {}",
                        items.len()
                    ))
                })
            }
            (_, Some(entries), ExprValue::Text(key)) => {
                self.spend_bytes(key.len())?;
                entries.get(key).ok_or_else(|| missing_key(key))
            }
            _ => fail(format!("{} can't be indexed by {}", of.describe(), at.describe())),
        }
    }

    pub(super) fn call_function<'v>(
        &mut self,
        function: ExprFunction,
        of: ExprValue<'v>,
    ) -> Result<ExprValue<'v>, EvaluationError> {
        match (function, of) {
            (ExprFunction::Size, of) => self.size(&of),
            (ExprFunction::Int, ExprValue::Int(number)) => Ok(ExprValue::Int(number)),
            (ExprFunction::Int, ExprValue::Decimal(text)) => {
                decimal::truncate_decimal(&text).map(ExprValue::Int).ok_or_else(|| {
                    EvaluationError::Failed(format!("{} is too large a number", quote_text(&text)))
                })
            }
            (ExprFunction::Int, ExprValue::Text(text)) => {
                text.parse().map(ExprValue::Int).map_err(|_| {
                    EvaluationError::Failed(format!(
                        "`{}` is not a whole number",
                        quote_text(&text)
                    ))
                })
            }
            (ExprFunction::String, ExprValue::Int(number)) => {
                Ok(ExprValue::from(number.to_string()))
            }
            (ExprFunction::String, ExprValue::Bool(truth)) => {
                Ok(ExprValue::text(if truth { "true" } else { "false" }))
            }
            (ExprFunction::String, ExprValue::Text(text) | ExprValue::Decimal(text)) => {
                Ok(ExprValue::Text(text))
            }
            (ExprFunction::LowerAscii, ExprValue::Text(text)) => {
                self.spend_bytes(text.len())?;
                let is_lower = !text.bytes().any(|b| b.is_ascii_uppercase());
                Ok(if is_lower { ExprValue::Text(text) } else { text.to_ascii_lowercase().into() })
            }
            (ExprFunction::Int, of) => fail(format!("{} is not a whole number", of.describe())),
            (ExprFunction::String, of) => {
                fail(format!("{} can't be converted to text", of.describe()))
            }
            (ExprFunction::LowerAscii, of) => fail(format!("{} is not a text", of.describe())),
        }
    }

    fn size<'v>(&mut self, of: &ExprValue<'_>) -> Result<ExprValue<'v>, EvaluationError> {
        let size = match (of, of.items(), of.entries()) {
            (ExprValue::Text(text), ..) => {
                self.spend_bytes(text.len())?;
                text.chars().count()
            }
            (_, Some(items), _) => items.len(),
            (_, _, Some(entries)) => entries.len(),
            _ => return fail(format!("{} has no size", of.describe())),
        };
        Ok(ExprValue::Int(i64::try_from(size).unwrap_or(i64::MAX)))
    }
}

pub(super) fn negate<'v>(value: &ExprValue<'_>) -> Result<ExprValue<'v>, EvaluationError> {
    match value {
        ExprValue::Int(number) => number
            .checked_neg()
            .map(ExprValue::Int)
            .ok_or_else(|| EvaluationError::Failed(format!("`-({number})` is too large a number"))),
        other => fail(format!("`-` can't be used on {}", other.describe())),
    }
}

/// The entries of a map. If the value is not a map, the error names the key that was wanted.
pub(super) fn require_entries<'i, 'v>(
    of: &'i ExprValue<'v>,
    key: &str,
) -> Result<MapEntries<'i, 'v>, EvaluationError> {
    of.entries().ok_or_else(|| {
        EvaluationError::Failed(format!("{} has no key `{}`", of.describe(), quote_text(key)))
    })
}

pub(super) fn missing_key(key: &str) -> EvaluationError {
    EvaluationError::Failed(format!("there is no key `{}`", quote_text(key)))
}

pub(super) fn fail<T>(why: impl Into<String>) -> Result<T, EvaluationError> {
    Err(EvaluationError::Failed(why.into()))
}

/// A text as a message may quote it: short and without control characters.
pub(super) fn quote_text(text: &str) -> String {
    text.chars()
        .take(QUOTED_CHARS_MAX)
        .map(|c| if c.is_control() || c == '`' { '\u{fffd}' } else { c })
        .collect()
}

fn not_a_number() -> EvaluationError {
    EvaluationError::Failed(String::from("a number can't be read"))
}

fn number_text<'v>(value: &'v ExprValue<'_>) -> Option<Cow<'v, str>> {
    match value {
        ExprValue::Int(number) => Some(Cow::Owned(number.to_string())),
        ExprValue::Decimal(text) => Some(Cow::Borrowed(text)),
        _ => None,
    }
}

fn operator_sign(operator: ArithmeticOperator) -> &'static str {
    match operator {
        ArithmeticOperator::Add => "+",
        ArithmeticOperator::Subtract => "-",
        ArithmeticOperator::Multiply => "*",
        ArithmeticOperator::Divide => "/",
        ArithmeticOperator::Remainder => "%",
    }
}
