//! JSON-RPC, as far as a server has to understand it.

use jackline_engine::json::parse_strict;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::lines::id_in_ends;
use crate::params::{self, Params};

/// Said of an id that no answer can repeat.
const BAD_ID: &str = "an `id` is a string or a whole number";

/// What a client says.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// A call whose arguments can't be read: as they are written, and why not. They are not
    /// among its parameters.
    Garbled {
        id: Value,
        params: Value,
        arguments: String,
        why: String,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response,
}

/// Why a request has no result.
#[derive(Debug, PartialEq)]
pub(super) struct RpcError {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    fn unreadable(why: impl std::fmt::Display) -> Self {
        Self { code: -32700, message: format!("the line is no JSON: {why}"), data: None }
    }

    pub(super) fn invalid(why: &str) -> Self {
        Self { code: -32600, message: why.to_owned(), data: None }
    }

    pub(super) fn no_method(method: &str) -> Self {
        let method: String = method.chars().take(200).collect();
        Self { code: -32601, message: format!("there is no method `{method}`"), data: None }
    }

    pub(super) fn params(why: &str, data: Value) -> Self {
        Self { code: -32602, message: why.to_owned(), data: Some(data) }
    }

    /// The protocol's own error, by which a client knows what to speak.
    pub(super) fn version(requested: &Value, supported: &[&str]) -> Self {
        let data = json!({ "supported": supported, "requested": requested });
        let message = "Unsupported protocol version".to_owned();
        Self { code: -32022, message, data: Some(data) }
    }

    pub(super) fn render(&self, id: &Value) -> String {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code.into());
        error.insert("message".to_owned(), self.message.as_str().into());
        error.extend(self.data.clone().map(|data| ("data".to_owned(), data)));
        json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
    }
}

/// Reads a line; an error comes with the id to answer it to, as far as there is one.
pub(super) fn parse(line: &[u8]) -> Result<Message, Box<(Value, RpcError)>> {
    let message = match parse_strict(line) {
        Ok(Value::Object(message)) => message,
        Err(error) => return unreadable(line, error),
        Ok(Value::Array(_)) => {
            return Err(Box::new(wrong("one message a line, please: there are no batches")));
        }
        _ => return Err(Box::new(wrong("a message is a JSON object"))),
    };
    let id = message.get("id");
    let method = message.get("method");
    if method.is_none() && (message.contains_key("result") || message.contains_key("error")) {
        return Ok(Message::Response);
    }
    let known = id.filter(|id| is_id(id));
    let answer_to = known.cloned().unwrap_or_default();
    let invalid = |why| Box::new((answer_to.clone(), RpcError::invalid(why)));
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("a message needs `\"jsonrpc\": \"2.0\"`"));
    }
    let Some(method) = method.and_then(Value::as_str) else {
        return Err(invalid("a message needs a `method`, which is a string"));
    };
    let params = match message.get("params") {
        None => Value::Object(Map::new()),
        Some(params) if params.is_object() => params.clone(),
        Some(_) => {
            let data = json!({ "path": "/params", "expected": "an object" });
            let error = RpcError::params("`params` must be an object", data);
            return Err(Box::new((answer_to, error)));
        }
    };
    let method = method.to_owned();
    match (id, known) {
        (None, _) => Ok(Message::Notification { method, params }),
        (Some(_), Some(id)) => Ok(Message::Request { id: id.clone(), method, params }),
        (Some(_), None) => Err(invalid(BAD_ID)),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// A request whose parameters can't be read, as far as that is no hindrance.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    jsonrpc: Option<String>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// The call that this is, where nothing but its arguments is in the way.
    fn garbled(&self, id: &Value) -> Option<Message> {
        let is_call = self.method.as_deref() == Some("tools/call");
        let params: Params<'_> = params::read(
            self.params.filter(|_| is_call && self.jsonrpc.as_deref() == Some("2.0"))?,
        )?;
        let arguments = params.arguments?.get();
        let why = parse_strict(arguments.as_bytes()).err()?.to_string();
        let mut rest = Map::new();
        rest.extend(params.name.map(|name| ("name".to_owned(), name.into())));
        rest.extend(params.meta.map(|meta| ("_meta".to_owned(), meta)));
        let (id, arguments) = (id.clone(), arguments.to_owned());
        Some(Message::Garbled { id, params: Value::Object(rest), arguments, why })
    }
}

/// What can be made of a line that can't be read; else what is wrong with it, for whoever
/// waits for an answer.
fn unreadable(line: &[u8], why: serde_json::Error) -> Result<Message, Box<(Value, RpcError)>> {
    let envelope = serde_json::from_slice::<Envelope<'_>>(line);
    // An array would be read field by field.
    let Some(envelope) = envelope.ok().filter(|_| line.trim_ascii_start().starts_with(b"{")) else {
        return Err(Box::new((Value::Null, RpcError::unreadable(why))));
    };
    let id = envelope.id.and_then(|raw| serde_json::from_str(raw.get()).ok()).filter(is_id);
    if let Some(call) = id.as_ref().and_then(|id| envelope.garbled(id)) {
        return Ok(call);
    }
    if envelope.id.is_some_and(|raw| parse_strict(raw.get().as_bytes()).is_err()) {
        return Err(Box::new(wrong(BAD_ID)));
    }
    let params = envelope.params.and_then(|raw| parse_strict(raw.get().as_bytes()).err());
    let error = match (&id, params) {
        (Some(_), Some(why)) => {
            let expected = "an object with every key once, whole characters and not too deep";
            let data = json!({ "path": "/params", "expected": expected });
            RpcError::params(&format!("`params` can't be read: {why}"), data)
        }
        _ => RpcError::unreadable(why),
    };
    Err(Box::new((id.unwrap_or_default(), error)))
}

/// The id that a line names which is too long to be read.
pub(super) fn id_of_long(head: &[u8], tail: &[u8]) -> Value {
    id_in_ends(head, tail).filter(is_id).unwrap_or_default()
}

fn wrong(why: &str) -> (Value, RpcError) {
    (Value::Null, RpcError::invalid(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Value, i64) {
        let (id, error) = *parse(line.as_bytes()).unwrap_err();
        (id, error.code)
    }

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        let request = parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        let expected =
            Message::Request { id: json!("a"), method: "ping".to_owned(), params: json!({}) };
        assert_eq!(request, expected);
        let told = parse(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert_eq!(told, Message::Notification { method: "x".to_owned(), params: json!({"a":1}) });
        assert_eq!(parse(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap(), Message::Response);
    }

    #[test]
    fn what_is_no_message_gets_the_code_of_its_mistake() {
        for garbage in ["", "{", "nope", "{\"a\":1,\"a\":2}", "\u{0}", "{}x"] {
            assert_eq!(refused(garbage), (Value::Null, -32700), "{garbage}");
        }
        assert_eq!(parse(b"\xff\xfe").unwrap_err().1.code, -32700);
        let deep = "[".repeat(100_000);
        assert_eq!(refused(&deep), (Value::Null, -32700));
        for invalid in ["1", "[]", "{}", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#] {
            assert_eq!(refused(invalid), (Value::Null, -32600), "{invalid}");
        }
        for id in ["1e400", r#""\ud83d""#, r#"{"a":1,"a":2}"#] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(refused(&line), (Value::Null, -32600), "{line}");
        }
        assert_eq!(refused(r#"{"id":7,"method":"ping"}"#), (json!(7), -32600));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":7,"method":1}"#), (json!(7), -32600));
        let params = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#;
        assert_eq!(refused(params), (json!(7), -32602));
    }
}
