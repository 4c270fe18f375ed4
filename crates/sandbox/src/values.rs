//! Converts values of programs to JSON and back. Values that are not plain data are errors.

use jackline_sandbox_host::protocol::ProgramFailure;
use monty_types::MontyObject;
use serde_json::{Map, Number, Value};

/// How deep values may be nested.
const DEPTH_MAX: usize = 100;

/// A value that can't be converted to JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotData {
    /// The position inside the whole value, and the kind of the value.
    message: String,
}

impl NotData {
    pub(crate) const FAILURE: ProgramFailure = ProgramFailure::NonSerializableResult;

    pub(crate) fn describe(self, whole: &str) -> String {
        format!("{whole}{}", self.message)
    }

    fn new(what: impl Into<String>) -> Self {
        Self { message: what.into() }
    }

    fn within(self, step: &str) -> Self {
        Self { message: format!("{step}{}", self.message) }
    }
}

/// Converts JSON to a Python value.
pub(crate) fn to_python(value: Value) -> MontyObject {
    match value {
        Value::Null => MontyObject::None,
        Value::Bool(it) => MontyObject::Bool(it),
        Value::String(it) => MontyObject::String(it),
        Value::Array(items) => MontyObject::List(items.into_iter().map(to_python).collect()),
        Value::Object(fields) => to_python_dict(fields),
        Value::Number(number) => {
            if let Some(it) = number.as_i64() {
                MontyObject::Int(it)
            } else if let Some(it) = number.as_u64() {
                MontyObject::BigInt(it.into())
            } else {
                MontyObject::Float(number.as_f64().unwrap_or(f64::NAN))
            }
        }
    }
}

/// Converts a JSON object to a Python dictionary.
pub(crate) fn to_python_dict(fields: Map<String, Value>) -> MontyObject {
    let pair = |(key, value)| (MontyObject::String(key), to_python(value));
    MontyObject::dict(fields.into_iter().map(pair).collect::<Vec<_>>())
}

/// Converts a Python value to JSON.
pub(crate) fn to_json(value: MontyObject) -> Result<Value, NotData> {
    convert(value, 0)
}

/// Converts the keyword arguments of a call to JSON.
pub(crate) fn keyword_arguments(
    pairs: Vec<(MontyObject, MontyObject)>,
) -> Result<Map<String, Value>, NotData> {
    pairs.into_iter().map(|(key, value)| field(key, value, 0)).collect()
}

fn convert(value: MontyObject, depth: usize) -> Result<Value, NotData> {
    if depth > DEPTH_MAX {
        return Err(NotData::new(format!(" is nested more than {DEPTH_MAX} deep")));
    }
    Ok(match value {
        MontyObject::None => Value::Null,
        MontyObject::Bool(it) => Value::Bool(it),
        MontyObject::Int(it) => it.into(),
        MontyObject::String(it) => Value::String(it),
        MontyObject::Float(it) => match Number::from_f64(it) {
            Some(number) => Value::Number(number),
            None => return Err(NotData::new(" is a float that is not a finite number")),
        },
        MontyObject::BigInt(it) => {
            let short = it.bits() <= 64;
            match short.then(|| it.to_string().parse::<u64>()) {
                Some(Ok(it)) => it.into(),
                _ => return Err(NotData::new(" is an integer beyond 64 bits; use a string")),
            }
        }
        MontyObject::List(items)
        | MontyObject::Tuple(items)
        | MontyObject::NamedTuple { values: items, .. } => {
            let item = |(position, item)| {
                convert(item, depth + 1).map_err(|it| it.within(&format!("[{position}]")))
            };
            Value::Array(items.into_iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        MontyObject::Dict(pairs) => {
            let pairs = pairs.into_iter().map(|(key, value)| field(key, value, depth + 1));
            Value::Object(pairs.collect::<Result<_, _>>()?)
        }
        other => return Err(NotData::new(format!(" is {}", describe_kind(&other)))),
    })
}

fn field(key: MontyObject, value: MontyObject, depth: usize) -> Result<(String, Value), NotData> {
    let MontyObject::String(key) = key else {
        return Err(NotData::new(format!(
            " has a key that is {}, not a string",
            describe_kind(&key)
        )));
    };
    let value = convert(value, depth).map_err(|it| it.within(&format!("[{key:?}]")))?;
    Ok((key, value))
}

/// The kind of a value, with an alternative if there is one.
fn describe_kind(value: &MontyObject) -> &'static str {
    match value {
        MontyObject::Int(_) | MontyObject::BigInt(_) => "an integer",
        MontyObject::Bool(_) => "a boolean",
        MontyObject::Float(_) => "a float",
        MontyObject::None => "None",
        MontyObject::Set(_) | MontyObject::FrozenSet(_) => "a set; use a list",
        MontyObject::Bytes(_) => "bytes; use a string",
        MontyObject::Date(_)
        | MontyObject::DateTime(_)
        | MontyObject::Time(_)
        | MontyObject::TimeDelta(_)
        | MontyObject::TimeZone(_) => "a date or a time; use a string, such as from isoformat()",
        MontyObject::Function { .. } | MontyObject::BuiltinFunction(_) => {
            "a function; call it, and use what it returns"
        }
        MontyObject::Type(_) => "a class",
        MontyObject::Exception { .. } => "an exception; use str() of it",
        MontyObject::ClassInstance(_) => "an object; use a dictionary of its fields",
        MontyObject::Cycle(..) => "part of itself",
        MontyObject::Tuple(_) | MontyObject::List(_) => "a sequence",
        _ => "not plain data; use strings, numbers, lists and dictionaries",
    }
}
