//! The parameters of a request that calls a tool.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The parameters of a request, as far as they are looked at. Arguments stay as they were
/// written: what can't be read of them is the guards' to say.
#[derive(Default, Deserialize)]
pub(crate) struct Params<'a> {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(default, rename = "_meta")]
    pub(crate) meta: Option<Value>,
}

/// Reads parameters; none where they are no object, or hold twice what is looked at: two
/// readers could take them for two different requests.
pub(crate) fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    // An array would be read field by field.
    serde_json::from_str(raw.get()).ok().filter(|_| raw.get().starts_with('{'))
}
