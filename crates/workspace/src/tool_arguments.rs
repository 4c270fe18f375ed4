//! Reads the arguments of a tool call. Arguments that no reader took are reported as errors.

use jackline_engine::nearest_name;
use serde_json::{Map, Value};

use crate::error::{ToolError, ToolErrorCode};

/// The arguments of one call, with the names that were already read.
pub(crate) struct ToolArguments<'v> {
    given: Option<&'v Map<String, Value>>,
    names_read: Vec<&'static str>,
}

impl<'v> ToolArguments<'v> {
    pub(crate) fn new(args: &'v Value) -> Result<ToolArguments<'v>, ToolError> {
        let given = match args {
            Value::Null => None,
            Value::Object(map) => Some(map),
            _ => return Err(invalid_arguments("the arguments must be an object")),
        };
        Ok(ToolArguments { given, names_read: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Option<&'v Value> {
        self.names_read.push(name);
        self.given.and_then(|map| map.get(name)).filter(|value| !value.is_null())
    }

    /// An optional string argument.
    pub(crate) fn optional_text(
        &mut self,
        name: &'static str,
    ) -> Result<Option<&'v str>, ToolError> {
        let text =
            |value: &'v Value| value.as_str().ok_or_else(|| wrong_type(name, "a string", value));
        self.take(name).map(text).transpose()
    }

    /// A required string argument.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<&'v str, ToolError> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| {
            let meant = self.given.into_iter().flat_map(Map::keys).map(String::as_str);
            let candidate = nearest_name(name, meant);
            let suggestion = candidate.map_or_else(String::new, |candidate| {
                format!("; did you write `{candidate}` instead?")
            });
            invalid_arguments(format!("`{name}` is missing{suggestion}"))
        })
    }

    /// A whole number of at least `least`, if the argument is present. Models often write numbers
    /// as text, which is accepted.
    pub(crate) fn optional_number(
        &mut self,
        name: &'static str,
        least: u64,
    ) -> Result<Option<u64>, ToolError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match parse_whole_number(value) {
            Some(number) if number >= least => Ok(Some(number)),
            _ if is_huge(value) => {
                Err(invalid_arguments(format!("`{name}` must be at most {}", u64::MAX)))
            }
            _ => Err(wrong_type(name, &format!("a whole number of at least {least}"), value)),
        }
    }

    /// Refuses arguments that the tool does not have.
    pub(crate) fn reject_unknown(self) -> Result<(), ToolError> {
        let allowed = &self.names_read;
        let unknown =
            self.given.into_iter().flat_map(Map::keys).find(|key| !allowed.contains(&key.as_str()));
        let Some(key) = unknown else { return Ok(()) };
        let allowed: Vec<String> = allowed.iter().map(|name| format!("`{name}`")).collect();
        let advice = match nearest_name(key, self.names_read.iter().copied()) {
            Some(meant) => format!("Did you mean `{meant}`?"),
            None => format!("It takes {}.", allowed.join(", ")),
        };
        Err(invalid_arguments(format!("there is no argument `{key}`")).with_advice(advice))
    }
}

/// Parses a whole number in any notation: `2`, `2.0` and `"2"` are the same.
fn parse_whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let text = number.to_string();
            text.strip_suffix(".0")?.parse().ok()
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Whether the value is a whole number beyond the range of `u64`.
fn is_huge(value: &Value) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match value {
        Value::Number(number) => {
            number.as_f64().is_some_and(|number| number >= 1.844_674_407_370_955_2e19)
        }
        Value::String(text) => digits(text) && text.parse::<u64>().is_err(),
        _ => false,
    }
}

fn invalid_arguments(message: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorCode::InvalidArguments, message)
}

fn wrong_type(name: &str, expected: &str, got: &Value) -> ToolError {
    let got = match got {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) if expected.contains("number") => "another number",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    invalid_arguments(format!("`{name}` must be {expected}, not {got}"))
}
