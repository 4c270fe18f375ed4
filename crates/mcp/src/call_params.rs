//! The parameters of a tool call request.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The parts of the parameters that Jackline reads. Arguments stay raw text; if they can't be
/// parsed, the guards decide about them.
#[derive(Default, Deserialize)]
pub(crate) struct CallParams<'a> {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(default, rename = "_meta")]
    pub(crate) meta: Option<Value>,
}

/// Parses parameters. Returns `None` if they are not an object or contain a field twice. Two
/// parsers could read such a request differently.
pub(crate) fn parse_params<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    // serde would read an array field by field.
    serde_json::from_str(raw.get()).ok().filter(|_| raw.get().starts_with('{'))
}
