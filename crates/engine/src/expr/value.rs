//! Values of a condition. They borrow from the call where possible.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use core::ops::Deref;

/// A value. Maps are ordered by their keys.
#[derive(Debug, Clone)]
pub enum ExprValue<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number, in the form that JSON uses.
    Decimal(ExprText<'a>),
    /// A text.
    Text(ExprText<'a>),
    /// A list.
    List(Rc<[ExprValue<'a>]>),
    /// A borrowed list of texts.
    Texts(&'a [String]),
    /// A map, sorted by key, each key once.
    Map(Rc<[(ExprText<'a>, ExprValue<'a>)]>),
    /// A borrowed JSON value.
    Json(&'a serde_json::Value),
}

/// A text, borrowed or shared, so that copying a value never copies the text.
#[derive(Debug, Clone)]
pub enum ExprText<'a> {
    /// A borrowed text.
    Borrowed(&'a str),
    /// A computed text.
    Shared(Rc<str>),
}

impl Deref for ExprText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl From<String> for ExprText<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl<'a> ExprValue<'a> {
    /// A borrowed text.
    pub fn text(text: &'a str) -> Self {
        Self::Text(ExprText::Borrowed(text))
    }

    /// A list of borrowed texts.
    pub fn texts(texts: impl IntoIterator<Item = &'a str>) -> Self {
        texts.into_iter().map(Self::text).collect()
    }

    /// The same value, which is JSON only if it is a list or a map.
    pub(super) fn without_json_scalar(self) -> Self {
        let Self::Json(json) = self else { return self };
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(*truth),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Int(whole),
                None => Self::Decimal(ExprText::from(number.to_string())),
            },
            serde_json::Value::String(text) => Self::text(text),
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => self,
        }
    }

    /// The type of the value, for people.
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

    /// The items, if the value is a list.
    pub(super) fn items(&self) -> Option<ListItems<'_, 'a>> {
        match self {
            Self::List(values) => Some(ListItems::Values(values)),
            Self::Texts(texts) => Some(ListItems::Texts(texts)),
            Self::Json(serde_json::Value::Array(values)) => Some(ListItems::Json(values)),
            _ => None,
        }
    }

    /// The entries, if the value is a map.
    pub(super) fn entries(&self) -> Option<MapEntries<'_, 'a>> {
        match self {
            Self::Map(entries) => Some(MapEntries::Values(entries)),
            Self::Json(serde_json::Value::Object(map)) => Some(MapEntries::Json(map)),
            _ => None,
        }
    }
}

impl From<bool> for ExprValue<'_> {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for ExprValue<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl<'a> From<&'a str> for ExprValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ExprValue<'_> {
    fn from(text: String) -> Self {
        Self::Text(ExprText::from(text))
    }
}

impl<'a> From<&'a [String]> for ExprValue<'a> {
    fn from(texts: &'a [String]) -> Self {
        Self::Texts(texts)
    }
}

impl<'a> From<&'a serde_json::Value> for ExprValue<'a> {
    fn from(json: &'a serde_json::Value) -> Self {
        Self::Json(json)
    }
}

impl<'a> FromIterator<ExprValue<'a>> for ExprValue<'a> {
    fn from_iter<T: IntoIterator<Item = ExprValue<'a>>>(values: T) -> Self {
        Self::List(values.into_iter().collect())
    }
}

/// The items of a list, in any representation.
#[derive(Clone, Copy)]
pub(super) enum ListItems<'i, 'a> {
    Values(&'i [ExprValue<'a>]),
    Texts(&'a [String]),
    Json(&'a [serde_json::Value]),
}

impl<'i, 'a> ListItems<'i, 'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = ExprValue<'a>> + use<'i, 'a> {
        (0..self.len()).map_while(move |at| self.get(at))
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Texts(texts) => texts.len(),
            Self::Json(values) => values.len(),
        }
    }

    pub(super) fn get(self, at: usize) -> Option<ExprValue<'a>> {
        match self {
            Self::Values(values) => values.get(at).map(|value| value.clone().without_json_scalar()),
            Self::Texts(texts) => texts.get(at).map(|text| ExprValue::text(text)),
            Self::Json(values) => {
                values.get(at).map(|json| ExprValue::Json(json).without_json_scalar())
            }
        }
    }
}

/// The entries of a map, in any representation.
#[derive(Clone, Copy)]
pub(super) enum MapEntries<'i, 'a> {
    Values(&'i [(ExprText<'a>, ExprValue<'a>)]),
    Json(&'a serde_json::Map<String, serde_json::Value>),
}

impl<'i, 'a> MapEntries<'i, 'a> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Values(entries) => entries.len(),
            Self::Json(map) => map.len(),
        }
    }

    pub(super) fn get(self, key: &str) -> Option<ExprValue<'a>> {
        match self {
            Self::Values(entries) => {
                let at = entries.binary_search_by(|(existing, _)| (**existing).cmp(key)).ok()?;
                entries.get(at).map(|(_, value)| value.clone().without_json_scalar())
            }
            Self::Json(map) => map.get(key).map(|json| ExprValue::Json(json).without_json_scalar()),
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = (ExprText<'a>, ExprValue<'a>)> + use<'i, 'a> {
        let (values, json) = match self {
            Self::Values(entries) => (Some(entries), None),
            Self::Json(map) => (None, Some(map)),
        };
        let values = values.unwrap_or_default().iter();
        let json = json.into_iter().flatten();
        values.map(|(key, value)| (key.clone(), value.clone().without_json_scalar())).chain(
            json.map(|(key, value)| {
                (ExprText::Borrowed(key), ExprValue::from(value).without_json_scalar())
            }),
        )
    }
}
