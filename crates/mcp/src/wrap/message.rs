//! JSON-RPC as far as a proxy has to understand it: who is spoken to, about what.
//!
//! Values stay the bytes that were sent. A key that is there twice makes a message
//! unreadable, since two readers could take it for two different ones.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::params;

/// Requests that are answered when the client has heard enough.
pub(super) const LISTENS: [&str; 2] = ["subscriptions/listen", "messages/listen"];

/// What tells that a client speaks the protocol without a handshake, and in which version.
pub(super) const STATELESS: &str = "io.modelcontextprotocol/protocolVersion";

/// The parameters of a message that takes a request back.
#[derive(Deserialize)]
pub(super) struct Cancelled {
    #[serde(rename = "requestId")]
    pub(super) request: Value,
}

/// One message of a line.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The messages of one line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Each message with the text it was read from.
    pub(super) messages: Vec<(&'a RawValue, Message<'a>)>,
    /// Whether they came as an array, as older versions of the protocol allow.
    pub(super) batch: bool,
}

impl<'a> Line<'a> {
    /// Reads a line; none where it is no JSON-RPC at all.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let batch = text.trim_start().starts_with('[');
        let raw: Vec<&'a RawValue> = if batch {
            serde_json::from_str(text).ok()?
        } else {
            vec![serde_json::from_str(text).ok()?]
        };
        let message = |raw: &'a RawValue| Some((raw, Message::parse(raw.get())?));
        let messages = raw.into_iter().map(message).collect::<Option<_>>()?;
        Some(Self { messages, batch })
    }
}

impl<'a> Message<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let message: Self = serde_json::from_str(text).ok()?;
        let speaks = message.method.is_some() || message.id.is_some() || message.error.is_some();
        // An array would be read field by field.
        (speaks && text.starts_with('{')).then_some(message)
    }

    /// Whether somebody asks, and waits for an answer.
    pub(super) fn asks(&self) -> Option<Id> {
        self.method.as_ref().and_then(|_| Id::parse(self.id?))
    }

    /// What this answers.
    pub(super) fn answers(&self) -> Option<Id> {
        if self.method.is_some() { None } else { Id::parse(self.id?) }
    }

    /// The parameters as far as a proxy looks at them.
    pub(super) fn params<T: Deserialize<'a>>(&self) -> Option<T> {
        params::read(self.params?)
    }
}

/// The id of a request, however it was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(String);

impl Id {
    pub(super) fn parse(raw: &RawValue) -> Option<Self> {
        Self::of(&serde_json::from_str(raw.get()).ok()?)
    }

    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self(Value::from(text.as_str()).to_string())),
            Value::Number(number) => {
                let text = number.to_string();
                Some(Self(text.strip_suffix(".0").unwrap_or(&text).to_owned()))
            }
            _ => None,
        }
    }

    /// As JSON.
    pub(super) fn json(&self) -> &str {
        &self.0
    }
}

/// Where a value lies in the text it was read from.
pub(super) fn range_in(text: &str, raw: &RawValue) -> Range<usize> {
    // Borrowed from it, so both addresses are of the same text.
    let start = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + raw.get().len()
}

/// Puts something at the end of an array that lies in a text.
pub(super) fn push_to_array(text: &mut String, array: &Range<usize>, item: &str) {
    // Objects end in the same way.
    let end = array.end.saturating_sub(1);
    let inside = text.get(array.start + 1..end).unwrap_or_default();
    let comma = if inside.trim().is_empty() { "" } else { "," };
    if text.is_char_boundary(end) {
        text.insert_str(end, &format!("{comma}{item}"));
    }
}

/// Puts a field at the end of an object that lies in a text.
pub(super) fn push_to_object(text: &mut String, object: &Range<usize>, key: &str, value: &str) {
    push_to_array(text, object, &format!("{}:{value}", Value::from(key)));
}

/// An answer with a result.
pub(super) fn answer(id: &Id, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.json())
}

/// What tells a server that nobody waits for an answer any more.
pub(super) fn cancelled(id: &Id, reason: &str) -> String {
    let params = format!(r#"{{"requestId":{},"reason":{}}}"#, id.json(), Value::from(reason));
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_however_it_is_written() {
        let id = |text: &str| Id::parse(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(id(r#""\u0061""#), id(r#""a""#));
        assert_eq!(id("1.0"), id("1"));
        assert_ne!(id("1"), id(r#""1""#));
        assert_eq!(id("null"), None);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_no_message() {
        assert!(Line::parse(r#"{"method":"ping","method":"tools/call","id":1}"#).is_none());
        assert!(Line::parse(r#"{"id":1,"method":"ping","unknown":[1,1]}"#).is_some());
        for text in ["", "1", "\"x\"", "[1]", "{", "{}", "[[]]", "[\"1\",\"m\",null,null,null]"] {
            assert!(Line::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_item_is_put_behind_the_others() {
        for (text, then) in [("{\"a\":[ ]}", "{\"a\":[ 3]}"), ("{\"a\":[1]}", "{\"a\":[1,3]}")] {
            let mut text = text.to_owned();
            let array = 5..text.len() - 1;
            push_to_array(&mut text, &array, "3");
            assert_eq!(text, then);
        }
    }
}
