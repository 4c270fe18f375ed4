//! Parses JSON-RPC messages as far as the proxy needs it.
//!
//! Values stay the bytes that were sent. A message with a duplicate key is invalid, because two
//! parsers could read it differently.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call_params;

/// Methods that stay open to listen until the client cancels them.
pub(super) const LISTENING_METHODS: [&str; 2] = ["subscriptions/listen", "messages/listen"];

/// The metadata key with which a client sends its protocol version, if it uses no handshake.
pub(super) const STATELESS_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The parameters of a message that cancels a request.
#[derive(Deserialize)]
pub(super) struct CancelledParams {
    #[serde(rename = "requestId")]
    pub(super) request: Value,
}

/// A JSON-RPC message of a line.
#[derive(Debug, Deserialize)]
pub(super) struct RpcMessage<'a> {
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
pub(super) struct RpcLine<'a> {
    /// Each message with the text it was parsed from.
    pub(super) messages: Vec<(&'a RawValue, RpcMessage<'a>)>,
    /// Whether the messages came as an array, as older protocol versions allow.
    pub(super) batch: bool,
}

impl<'a> RpcLine<'a> {
    /// Parses a line. Returns `None` if it is not JSON-RPC.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let batch = text.trim_start().starts_with('[');
        let raw: Vec<&'a RawValue> = if batch {
            serde_json::from_str(text).ok()?
        } else {
            vec![serde_json::from_str(text).ok()?]
        };
        let message = |raw: &'a RawValue| Some((raw, RpcMessage::parse(raw.get())?));
        let messages = raw.into_iter().map(message).collect::<Option<_>>()?;
        Some(Self { messages, batch })
    }
}

impl<'a> RpcMessage<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let message: Self = serde_json::from_str(text).ok()?;
        let has_content =
            message.method.is_some() || message.id.is_some() || message.error.is_some();
        // serde would read an array field by field.
        (has_content && text.starts_with('{')).then_some(message)
    }

    /// The id, if the message is a request.
    pub(super) fn request_id(&self) -> Option<RpcId> {
        self.method.as_ref().and_then(|_| RpcId::parse(self.id?))
    }

    /// The id of the request that this message answers.
    pub(super) fn answered_id(&self) -> Option<RpcId> {
        if self.method.is_some() { None } else { RpcId::parse(self.id?) }
    }

    /// Parses the parameters.
    pub(super) fn parse_params<T: Deserialize<'a>>(&self) -> Option<T> {
        call_params::parse_params(self.params?)
    }
}

/// The id of a request, in a normalised form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RpcId(String);

impl RpcId {
    pub(super) fn parse(raw: &RawValue) -> Option<Self> {
        Self::from_value(&serde_json::from_str(raw.get()).ok()?)
    }

    pub(super) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self(Value::from(text.as_str()).to_string())),
            Value::Number(number) => {
                let text = number.to_string();
                Some(Self(text.strip_suffix(".0").unwrap_or(&text).to_owned()))
            }
            _ => None,
        }
    }

    /// The id as JSON.
    pub(super) fn json(&self) -> &str {
        &self.0
    }
}

/// The position of a raw value in the text that it was parsed from.
pub(super) fn range_of(text: &str, raw: &RawValue) -> Range<usize> {
    // The value borrows from the text, so both addresses are in the same text.
    let start = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + raw.get().len()
}

/// Appends an item to an array within a text.
pub(super) fn push_to_array(text: &mut String, array: &Range<usize>, item: &str) {
    // An object ends in the same way.
    let end = array.end.saturating_sub(1);
    let inside = text.get(array.start + 1..end).unwrap_or_default();
    let comma = if inside.trim().is_empty() { "" } else { "," };
    if text.is_char_boundary(end) {
        text.insert_str(end, &format!("{comma}{item}"));
    }
}

/// Appends a field to an object within a text.
pub(super) fn push_to_object(text: &mut String, object: &Range<usize>, key: &str, value: &str) {
    push_to_array(text, object, &format!("{}:{value}", Value::from(key)));
}

/// A JSON-RPC answer with a result.
pub(super) fn render_answer(id: &RpcId, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.json())
}

/// The notification that cancels a request at the server.
pub(super) fn render_cancelled(id: &RpcId, reason: &str) -> String {
    let params = format!(r#"{{"requestId":{},"reason":{}}}"#, id.json(), Value::from(reason));
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_by_value() {
        let id = |text: &str| RpcId::parse(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(id(r#""\u0061""#), id(r#""a""#));
        assert_eq!(id("1.0"), id("1"));
        assert_ne!(id("1"), id(r#""1""#));
        assert_eq!(id("null"), None);
    }

    #[test]
    fn an_ambiguous_message_is_invalid() {
        assert!(RpcLine::parse(r#"{"method":"ping","method":"tools/call","id":1}"#).is_none());
        assert!(RpcLine::parse(r#"{"id":1,"method":"ping","unknown":[1,1]}"#).is_some());
        for text in ["", "1", "\"x\"", "[1]", "{", "{}", "[[]]", "[\"1\",\"m\",null,null,null]"] {
            assert!(RpcLine::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_item_is_appended_to_an_array() {
        for (text, then) in [("{\"a\":[ ]}", "{\"a\":[ 3]}"), ("{\"a\":[1]}", "{\"a\":[1,3]}")] {
            let mut text = text.to_owned();
            let array = 5..text.len() - 1;
            push_to_array(&mut text, &array, "3");
            assert_eq!(text, then);
        }
    }
}
