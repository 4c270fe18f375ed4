//! Values of a condition, borrowed from the call wherever they can be.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use core::ops::Deref;

/// A value. Maps are ordered by their keys.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number, in the form JSON gives it.
    Decimal(Text<'a>),
    /// A text.
    Text(Text<'a>),
    /// A list.
    List(Rc<[Value<'a>]>),
    /// A list of texts that lie elsewhere.
    Texts(&'a [String]),
    /// A map, sorted by key, each key once.
    Map(Rc<[(Text<'a>, Value<'a>)]>),
    /// A value of JSON that lies elsewhere.
    Json(&'a serde_json::Value),
}

/// A text, borrowed or shared, so that no copy of a value copies it.
#[derive(Debug, Clone)]
pub enum Text<'a> {
    /// A text that lies elsewhere.
    Borrowed(&'a str),
    /// A text that was made.
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl<'a> Value<'a> {
    /// A text that lies elsewhere.
    pub fn text(text: &'a str) -> Self {
        Self::Text(Text::Borrowed(text))
    }

    /// A list of texts that lie elsewhere.
    pub fn texts(texts: impl IntoIterator<Item = &'a str>) -> Self {
        texts.into_iter().map(Self::text).collect()
    }

    /// The same value, as JSON only where that is a list or a map.
    pub(super) fn plain(self) -> Self {
        let Self::Json(json) = self else { return self };
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Int(whole),
                None => Self::Decimal(Text::from(number.to_string())),
            },
            serde_json::Value::String(text) => Self::text(text),
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => self,
        }
    }

    /// What it is, in words.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a number",
            Self::Decimal(_) => "a decimal number",
            Self::Text(_) => "a text",
            Self::List(_) | Self::Texts(_) | Self::Json(serde_json::Value::Array(_)) => "a list",
            Self::Map(_) | Self::Json(_) => "a map",
        }
    }

    /// The items, where it is a list.
    pub(super) fn items(&self) -> Option<Items<'_, 'a>> {
        match self {
            Self::List(values) => Some(Items::Values(values)),
            Self::Texts(texts) => Some(Items::Texts(texts)),
            Self::Json(serde_json::Value::Array(values)) => Some(Items::Json(values)),
            _ => None,
        }
    }

    /// The entries, where it is a map.
    pub(super) fn entries(&self) -> Option<Entries<'_, 'a>> {
        match self {
            Self::Map(entries) => Some(Entries::Values(entries)),
            Self::Json(serde_json::Value::Object(map)) => Some(Entries::Json(map)),
            _ => None,
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Text::from(text))
    }
}

impl<'a> From<&'a [String]> for Value<'a> {
    fn from(texts: &'a [String]) -> Self {
        Self::Texts(texts)
    }
}

impl<'a> From<&'a serde_json::Value> for Value<'a> {
    fn from(json: &'a serde_json::Value) -> Self {
        Self::Json(json)
    }
}

impl<'a> FromIterator<Value<'a>> for Value<'a> {
    fn from_iter<T: IntoIterator<Item = Value<'a>>>(values: T) -> Self {
        Self::List(values.into_iter().collect())
    }
}

/// The items of a list, wherever they lie.
#[derive(Clone, Copy)]
pub(super) enum Items<'i, 'a> {
    Values(&'i [Value<'a>]),
    Texts(&'a [String]),
    Json(&'a [serde_json::Value]),
}

impl<'i, 'a> Items<'i, 'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = Value<'a>> + use<'i, 'a> {
        (0..self.len()).map_while(move |at| self.get(at))
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Texts(texts) => texts.len(),
            Self::Json(values) => values.len(),
        }
    }

    pub(super) fn get(self, at: usize) -> Option<Value<'a>> {
        match self {
            Self::Values(values) => values.get(at).map(|value| value.clone().plain()),
            Self::Texts(texts) => texts.get(at).map(|text| Value::text(text)),
            Self::Json(values) => values.get(at).map(|json| Value::Json(json).plain()),
        }
    }
}

/// The entries of a map, wherever they lie.
#[derive(Clone, Copy)]
pub(super) enum Entries<'i, 'a> {
    Values(&'i [(Text<'a>, Value<'a>)]),
    Json(&'a serde_json::Map<String, serde_json::Value>),
}

impl<'i, 'a> Entries<'i, 'a> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Values(entries) => entries.len(),
            Self::Json(map) => map.len(),
        }
    }

    pub(super) fn get(self, key: &str) -> Option<Value<'a>> {
        match self {
            Self::Values(entries) => {
                let at = entries.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
                entries.get(at).map(|(_, value)| value.clone().plain())
            }
            Self::Json(map) => map.get(key).map(|json| Value::Json(json).plain()),
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = (Text<'a>, Value<'a>)> + use<'i, 'a> {
        let (values, json) = match self {
            Self::Values(entries) => (Some(entries), None),
            Self::Json(map) => (None, Some(map)),
        };
        let values = values.unwrap_or_default().iter();
        let json = json.into_iter().flatten();
        values
            .map(|(key, value)| (key.clone(), value.clone().plain()))
            .chain(json.map(|(key, value)| (Text::Borrowed(key), Value::from(value).plain())))
    }
}
