//! The arguments of a call, each taken once; what is left over was a slip.

use jackline_engine::nearest;
use serde_json::{Map, Value};

use crate::error::{Code, ToolError};

/// The arguments of a call that are not taken yet.
pub(crate) struct Arguments<'v> {
    given: Option<&'v Map<String, Value>>,
    taken: Vec<&'static str>,
}

impl<'v> Arguments<'v> {
    pub(crate) fn new(args: &'v Value) -> Result<Arguments<'v>, ToolError> {
        let given = match args {
            Value::Null => None,
            Value::Object(map) => Some(map),
            _ => return Err(invalid("the arguments must be an object")),
        };
        Ok(Arguments { given, taken: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Option<&'v Value> {
        self.taken.push(name);
        self.given.and_then(|map| map.get(name)).filter(|value| !value.is_null())
    }

    /// A text that need not be there.
    pub(crate) fn text_if(&mut self, name: &'static str) -> Result<Option<&'v str>, ToolError> {
        let text = |value: &'v Value| value.as_str().ok_or_else(|| wrong(name, "a string", value));
        self.take(name).map(text).transpose()
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<&'v str, ToolError> {
        let text = self.text_if(name)?;
        text.ok_or_else(|| {
            let meant = self.given.into_iter().flat_map(Map::keys).map(String::as_str);
            let slip = nearest(name, meant);
            let slip = slip.map_or_else(String::new, |slip| format!("; is `{slip}` meant for it?"));
            invalid(format!("`{name}` is missing{slip}"))
        })
    }

    /// A whole number of at least `least`. Models like to write numbers as text.
    pub(crate) fn number_if(
        &mut self,
        name: &'static str,
        least: u64,
    ) -> Result<Option<u64>, ToolError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match whole(value) {
            Some(number) if number >= least => Ok(Some(number)),
            _ if is_huge(value) => {
                Err(invalid(format!("`{name}` must be at most {}, and is more", u64::MAX)))
            }
            _ => Err(wrong(name, &format!("a whole number of at least {least}"), value)),
        }
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self) -> Result<(), ToolError> {
        let known = &self.taken;
        let unknown =
            self.given.into_iter().flat_map(Map::keys).find(|key| !known.contains(&key.as_str()));
        let Some(key) = unknown else { return Ok(()) };
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let advice = match nearest(key, self.taken.iter().copied()) {
            Some(meant) => format!("Did you mean `{meant}`?"),
            None => format!("It takes {}.", known.join(", ")),
        };
        Err(invalid(format!("there is no argument `{key}`")).advice(advice))
    }
}

/// A whole number, however it is written: `2`, `2.0` and `"2"` are the same.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let text = number.to_string();
            text.strip_suffix(".0")?.parse().ok()
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Whether this is a number that is larger than any that is counted with.
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

fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(Code::InvalidArguments, message)
}

fn wrong(name: &str, expected: &str, got: &Value) -> ToolError {
    let got = match got {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "another number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    invalid(format!("`{name}` must be {expected}, not {got}"))
}
