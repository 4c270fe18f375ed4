//! Parses JSON-RPC messages of a client.

use jackline_engine::json::parse_strict;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::bounded_lines::find_id_in_ends;
use crate::call_params::{self, CallParams};

/// The error text for an invalid request id.
const INVALID_ID_TEXT: &str = "`id` must be a string or a whole number";

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(super) enum ClientMessage {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// A call whose arguments can't be parsed: their raw text and the error. `params` lacks the
    /// arguments.
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

/// The error of a request.
#[derive(Debug, PartialEq)]
pub(super) struct RpcError {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    fn not_json(why: impl std::fmt::Display) -> Self {
        Self { code: -32700, message: format!("the line is not valid JSON: {why}"), data: None }
    }

    pub(super) fn invalid_request(why: &str) -> Self {
        Self { code: -32600, message: why.to_owned(), data: None }
    }

    pub(super) fn no_method(method: &str) -> Self {
        let method: String = method.chars().take(200).collect();
        Self { code: -32601, message: format!("there is no method `{method}`"), data: None }
    }

    pub(super) fn invalid_params(why: &str, data: Value) -> Self {
        Self { code: -32602, message: why.to_owned(), data: Some(data) }
    }

    /// The protocol's own error for a version mismatch; the client finds the supported versions in
    /// it.
    pub(super) fn unsupported_version(requested: &Value, supported: &[&str]) -> Self {
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

/// Parses a line. An error comes with the id to answer, if the id could be read.
pub(super) fn parse_message(line: &[u8]) -> Result<ClientMessage, Box<(Value, RpcError)>> {
    let message = match parse_strict(line) {
        Ok(Value::Object(message)) => message,
        Err(error) => return handle_unparsable(line, error),
        Ok(Value::Array(_)) => {
            return Err(Box::new(invalid_without_id(
                "batches are not supported; send one message per line",
            )));
        }
        _ => return Err(Box::new(invalid_without_id("a message must be a JSON object"))),
    };
    let id = message.get("id");
    let method = message.get("method");
    if method.is_none() && (message.contains_key("result") || message.contains_key("error")) {
        return Ok(ClientMessage::Response);
    }
    let valid_id = id.filter(|id| is_id(id));
    let answer_to = valid_id.cloned().unwrap_or_default();
    let invalid = |why| Box::new((answer_to.clone(), RpcError::invalid_request(why)));
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`\"jsonrpc\": \"2.0\"` is missing"));
    }
    let Some(method) = method.and_then(Value::as_str) else {
        return Err(invalid("`method` is missing or not a string"));
    };
    let params = match message.get("params") {
        None => Value::Object(Map::new()),
        Some(params) if params.is_object() => params.clone(),
        Some(_) => {
            let data = json!({ "path": "/params", "expected": "an object" });
            let error = RpcError::invalid_params("`params` must be an object", data);
            return Err(Box::new((answer_to, error)));
        }
    };
    let method = method.to_owned();
    match (id, valid_id) {
        (None, _) => Ok(ClientMessage::Notification { method, params }),
        (Some(_), Some(id)) => Ok(ClientMessage::Request { id: id.clone(), method, params }),
        (Some(_), None) => Err(invalid(INVALID_ID_TEXT)),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The outer fields of a request whose parameters can't be parsed.
#[derive(Deserialize)]
struct RpcEnvelope<'a> {
    #[serde(default)]
    jsonrpc: Option<String>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl RpcEnvelope<'_> {
    /// Returns the call, if only its arguments can't be parsed.
    fn to_garbled_call(&self, id: &Value) -> Option<ClientMessage> {
        let is_call = self.method.as_deref() == Some("tools/call");
        let params: CallParams<'_> = call_params::parse_params(
            self.params.filter(|_| is_call && self.jsonrpc.as_deref() == Some("2.0"))?,
        )?;
        let arguments = params.arguments?.get();
        let why = parse_strict(arguments.as_bytes()).err()?.to_string();
        let mut rest = Map::new();
        rest.extend(params.name.map(|name| ("name".to_owned(), name.into())));
        rest.extend(params.meta.map(|meta| ("_meta".to_owned(), meta)));
        let (id, arguments) = (id.clone(), arguments.to_owned());
        Some(ClientMessage::Garbled { id, params: Value::Object(rest), arguments, why })
    }
}

/// Handles a line that strict parsing refused: returns a call whose arguments are garbled, or an
/// error with the id to answer.
fn handle_unparsable(
    line: &[u8],
    why: serde_json::Error,
) -> Result<ClientMessage, Box<(Value, RpcError)>> {
    let envelope = serde_json::from_slice::<RpcEnvelope<'_>>(line);
    // serde would read an array field by field.
    let Some(envelope) = envelope.ok().filter(|_| line.trim_ascii_start().starts_with(b"{")) else {
        return Err(Box::new((Value::Null, RpcError::not_json(why))));
    };
    let id = envelope.id.and_then(|raw| serde_json::from_str(raw.get()).ok()).filter(is_id);
    if let Some(call) = id.as_ref().and_then(|id| envelope.to_garbled_call(id)) {
        return Ok(call);
    }
    if envelope.id.is_some_and(|raw| parse_strict(raw.get().as_bytes()).is_err()) {
        return Err(Box::new(invalid_without_id(INVALID_ID_TEXT)));
    }
    let params = envelope.params.and_then(|raw| parse_strict(raw.get().as_bytes()).err());
    let error = match (&id, params) {
        (Some(_), Some(why)) => {
            let expected =
                "an object without duplicate keys, broken characters or too deep nesting";
            let data = json!({ "path": "/params", "expected": expected });
            RpcError::invalid_params(&format!("`params` can't be parsed: {why}"), data)
        }
        _ => RpcError::not_json(why),
    };
    Err(Box::new((id.unwrap_or_default(), error)))
}

/// The id of a line that is too long to be parsed.
pub(super) fn id_of_too_long(head: &[u8], tail: &[u8]) -> Value {
    find_id_in_ends(head, tail).filter(is_id).unwrap_or_default()
}

fn invalid_without_id(why: &str) -> (Value, RpcError) {
    (Value::Null, RpcError::invalid_request(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Value, i64) {
        let (id, error) = *parse_message(line.as_bytes()).unwrap_err();
        (id, error.code)
    }

    #[test]
    fn requests_notifications_and_responses_are_distinguished() {
        let request = parse_message(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        let expected =
            ClientMessage::Request { id: json!("a"), method: "ping".to_owned(), params: json!({}) };
        assert_eq!(request, expected);
        let notification =
            parse_message(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert_eq!(
            notification,
            ClientMessage::Notification { method: "x".to_owned(), params: json!({"a":1}) }
        );
        assert_eq!(
            parse_message(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap(),
            ClientMessage::Response
        );
    }

    #[test]
    fn an_invalid_message_gets_the_code_of_its_error() {
        for garbage in ["", "{", "nope", "{\"a\":1,\"a\":2}", "\u{0}", "{}x"] {
            assert_eq!(refused(garbage), (Value::Null, -32700), "{garbage}");
        }
        assert_eq!(parse_message(b"\xff\xfe").unwrap_err().1.code, -32700);
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
