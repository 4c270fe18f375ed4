//! What operators and functions make of values, and what that costs.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::cmp::Ordering;

use super::value::Entries;
use super::{Comparison, Function, Operator, Trouble, Value, decimal};

/// How much text costs one step.
const BYTES_PER_STEP: usize = 16;

/// How much of a text from the call a message may quote.
const QUOTED_CHARS_MAX: usize = 60;

/// How deep two lists or maps may be nested and still be compared.
const EQUAL_DEPTH_MAX: u32 = 128;

/// The steps that are left.
pub(super) struct Budget {
    // INVARIANT: only goes down, and stays 0 once it was not enough.
    left: u32,
    limit: u32,
}

impl Budget {
    pub(super) fn new(limit: u32) -> Self {
        Self { left: limit, limit }
    }

    pub(super) fn left(&self) -> u32 {
        self.left
    }

    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Trouble> {
        match u32::try_from(steps).ok().and_then(|steps| self.left.checked_sub(steps)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.exhausted()),
        }
    }

    #[cold]
    fn exhausted(&mut self) -> Trouble {
        self.left = 0;
        Trouble::Broken(format!("it takes more than {} steps", self.limit))
    }

    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Trouble> {
        self.spend(bytes / BYTES_PER_STEP)
    }

    pub(super) fn compare(
        &mut self,
        how: Comparison,
        a: &Value<'_>,
        b: &Value<'_>,
    ) -> Result<bool, Trouble> {
        match how {
            Comparison::Equal => self.equal(a, b),
            Comparison::Unequal => self.equal(a, b).map(|equal| !equal),
            _ => self.order(a, b).map(|order| how.fits(order)),
        }
    }

    fn order(&mut self, a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, Trouble> {
        match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
            (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => {
                self.spend_bytes(a.len().min(b.len()))?;
                Ok((**a).cmp(b))
            }
            _ => match (digits(a), digits(b)) {
                (Some(a), Some(b)) => {
                    self.spend_bytes(a.len().saturating_add(b.len()))?;
                    decimal::compare(&a, &b).ok_or_else(not_a_number)
                }
                _ => broken(format!("{} can't be compared with {}", a.describe(), b.describe())),
            },
        }
    }

    /// Values of different kinds are not equal, but numbers of both kinds can be.
    pub(super) fn equal(&mut self, a: &Value<'_>, b: &Value<'_>) -> Result<bool, Trouble> {
        self.equal_at(a, b, EQUAL_DEPTH_MAX)
    }

    fn equal_at(&mut self, a: &Value<'_>, b: &Value<'_>, depth: u32) -> Result<bool, Trouble> {
        match (a, b) {
            (Value::Null, Value::Null) => return Ok(true),
            (Value::Bool(a), Value::Bool(b)) => return Ok(a == b),
            (Value::Int(a), Value::Int(b)) => return Ok(a == b),
            (Value::Text(a), Value::Text(b)) => {
                self.spend_bytes(a.len().min(b.len()))?;
                return Ok(**a == **b);
            }
            (Value::Int(_) | Value::Decimal(_), Value::Int(_) | Value::Decimal(_)) => {
                return self.order(a, b).map(Ordering::is_eq);
            }
            _ => {}
        }
        let Some(depth) = depth.checked_sub(1) else {
            return broken(format!("lists nested deeper than {EQUAL_DEPTH_MAX} are compared"));
        };
        if let (Some(a), Some(b)) = (a.items(), b.items()) {
            return if a.len() == b.len() {
                self.every(a.iter().zip(b.iter()).map(|(a, b)| (a, Some(b))), depth)
            } else {
                Ok(false)
            };
        }
        match (a.entries(), b.entries()) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                self.spend(a.len())?;
                self.every(a.iter().map(|(key, value)| (value, b.get(&key))), depth)
            }
            _ => Ok(false),
        }
    }

    fn every<'v>(
        &mut self,
        pairs: impl Iterator<Item = (Value<'v>, Option<Value<'v>>)>,
        depth: u32,
    ) -> Result<bool, Trouble> {
        for (a, b) in pairs {
            self.spend(1)?;
            match b {
                Some(b) if self.equal_at(&a, &b, depth)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    pub(super) fn is_in(&mut self, a: &Value<'_>, b: &Value<'_>) -> Result<bool, Trouble> {
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
            (Some(entries), Value::Text(key)) => {
                self.spend_bytes(key.len())?;
                Ok(entries.get(key).is_some())
            }
            (Some(_), Value::Bool(_) | Value::Int(_) | Value::Decimal(_)) => Ok(false),
            (Some(_), _) => broken(format!("{} can't be a key of a map", a.describe())),
            (None, _) => broken(format!("`in` looks into a list or a map, not {}", b.describe())),
        }
    }

    pub(super) fn arithmetic<'v>(
        &mut self,
        operator: Operator,
        a: &Value<'v>,
        b: &Value<'v>,
    ) -> Result<Value<'v>, Trouble> {
        if let (Value::Int(a), Value::Int(b)) = (a, b) {
            let made = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide | Operator::Remainder if *b == 0 => {
                    return broken(format!("{a} is divided by 0"));
                }
                Operator::Divide => a.checked_div(*b),
                Operator::Remainder => a.checked_rem(*b),
            };
            let sign = sign(operator);
            return made
                .map(Value::Int)
                .ok_or_else(|| Trouble::Broken(format!("`{a} {sign} {b}` is too large a number")));
        }
        if operator == Operator::Add {
            if let (Value::Text(a), Value::Text(b)) = (a, b) {
                self.spend_bytes(a.len().saturating_add(b.len()))?;
                let mut joined = String::with_capacity(a.len() + b.len());
                joined.push_str(a);
                joined.push_str(b);
                return Ok(Value::from(joined));
            }
            if let (Some(a), Some(b)) = (a.items(), b.items()) {
                self.spend(a.len().saturating_add(b.len()))?;
                return Ok(a.iter().chain(b.iter()).collect());
            }
        }
        let (sign, a, b) = (sign(operator), a.describe(), b.describe());
        broken(format!("`{sign}` can't be used on {a} and {b}"))
    }

    pub(super) fn index<'v>(
        &mut self,
        of: &Value<'v>,
        at: &Value<'v>,
    ) -> Result<Value<'v>, Trouble> {
        match (of.items(), of.entries(), at) {
            (Some(items), _, Value::Int(at)) => {
                let found = usize::try_from(*at).ok().and_then(|at| items.get(at));
                found.ok_or_else(|| {
                    Trouble::Broken(format!("there is no item {at} in a list of {}", items.len()))
                })
            }
            (_, Some(entries), Value::Text(key)) => {
                self.spend_bytes(key.len())?;
                entries.get(key).ok_or_else(|| no_key(key))
            }
            _ => broken(format!("{} can't be indexed by {}", of.describe(), at.describe())),
        }
    }

    pub(super) fn call<'v>(
        &mut self,
        function: Function,
        of: Value<'v>,
    ) -> Result<Value<'v>, Trouble> {
        match (function, of) {
            (Function::Size, of) => self.size(&of),
            (Function::Int, Value::Int(number)) => Ok(Value::Int(number)),
            (Function::Int, Value::Decimal(text)) => decimal::whole(&text)
                .map(Value::Int)
                .ok_or_else(|| Trouble::Broken(format!("{} is too large a number", quoted(&text)))),
            (Function::Int, Value::Text(text)) => text
                .parse()
                .map(Value::Int)
                .map_err(|_| Trouble::Broken(format!("`{}` is not a whole number", quoted(&text)))),
            (Function::String, Value::Int(number)) => Ok(Value::from(number.to_string())),
            (Function::String, Value::Bool(truth)) => {
                Ok(Value::text(if truth { "true" } else { "false" }))
            }
            (Function::String, Value::Text(text) | Value::Decimal(text)) => Ok(Value::Text(text)),
            (Function::LowerAscii, Value::Text(text)) => {
                self.spend_bytes(text.len())?;
                let is_lower = !text.bytes().any(|b| b.is_ascii_uppercase());
                Ok(if is_lower { Value::Text(text) } else { text.to_ascii_lowercase().into() })
            }
            (Function::Int, of) => broken(format!("{} is not a whole number", of.describe())),
            (Function::String, of) => broken(format!("{} has no form as text", of.describe())),
            (Function::LowerAscii, of) => broken(format!("{} is not a text", of.describe())),
        }
    }

    fn size<'v>(&mut self, of: &Value<'_>) -> Result<Value<'v>, Trouble> {
        let size = match (of, of.items(), of.entries()) {
            (Value::Text(text), ..) => {
                self.spend_bytes(text.len())?;
                text.chars().count()
            }
            (_, Some(items), _) => items.len(),
            (_, _, Some(entries)) => entries.len(),
            _ => return broken(format!("{} has no size", of.describe())),
        };
        Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
    }
}

pub(super) fn negate<'v>(value: &Value<'_>) -> Result<Value<'v>, Trouble> {
    match value {
        Value::Int(number) => number
            .checked_neg()
            .map(Value::Int)
            .ok_or_else(|| Trouble::Broken(format!("`-({number})` is too large a number"))),
        other => broken(format!("`-` can't be used on {}", other.describe())),
    }
}

/// The entries of a map that is asked for one.
pub(super) fn entries<'i, 'v>(of: &'i Value<'v>, key: &str) -> Result<Entries<'i, 'v>, Trouble> {
    of.entries()
        .ok_or_else(|| Trouble::Broken(format!("{} has no key `{}`", of.describe(), quoted(key))))
}

pub(super) fn no_key(key: &str) -> Trouble {
    Trouble::Broken(format!("there is no key `{}`", quoted(key)))
}

pub(super) fn broken<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Broken(why.into()))
}

/// A text as a message may show it.
pub(super) fn quoted(text: &str) -> String {
    text.chars()
        .take(QUOTED_CHARS_MAX)
        .map(|c| if c.is_control() || c == '`' { '\u{fffd}' } else { c })
        .collect()
}

fn not_a_number() -> Trouble {
    Trouble::Broken(String::from("a number can't be read"))
}

fn digits<'v>(value: &'v Value<'_>) -> Option<Cow<'v, str>> {
    match value {
        Value::Int(number) => Some(Cow::Owned(number.to_string())),
        Value::Decimal(text) => Some(Cow::Borrowed(text)),
        _ => None,
    }
}

fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Remainder => "%",
    }
}
