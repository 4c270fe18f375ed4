//! A line of the client to be posted, with its requests and the headers that repeat parts of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::param_headers::ParamHeaders;
use crate::wrap::rpc_message::{
    CancelledParams, LISTENING_METHODS, RpcId, RpcLine, RpcMessage, STATELESS_VERSION_KEY,
};

/// The prefix and suffix of a value that is encoded because a header can't contain it directly.
const ENCODED_VALUE: (&str, &str) = ("=?base64?", "?=");

/// A line to be posted.
#[derive(Debug)]
pub(super) struct OutgoingLine {
    pub(super) body: Vec<u8>,
    /// The ids that wait for an answer.
    pub(super) waiting_ids: Vec<RpcId>,
    pub(super) kind: OutgoingKind,
    /// The protocol version of a client without a handshake.
    pub(super) stateless: Option<String>,
    /// The headers that repeat parts of the body for intermediaries.
    pub(super) repeated_headers: Vec<(String, String)>,
    /// The tool that a client without a handshake calls, with its arguments.
    call: Option<(String, Value)>,
}

/// The kind of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutgoingKind {
    /// Its answer starts a session.
    Initialize,
    /// After it, the server may send messages without a request.
    Initialized,
    /// It cancels this request.
    Cancelled(RpcId),
    /// It listens until the client cancels it.
    Listen,
    Other,
}

/// The parameters that headers repeat.
#[derive(Default, Deserialize)]
struct HeaderParams {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default, rename = "_meta")]
    meta: Option<Value>,
}

impl OutgoingLine {
    /// Reads a line that was already recognised as JSON-RPC.
    pub(super) fn new(body: Vec<u8>) -> Self {
        let mut outgoing = Self {
            body,
            waiting_ids: Vec::new(),
            kind: OutgoingKind::Other,
            stateless: None,
            repeated_headers: Vec::new(),
            call: None,
        };
        let body = std::mem::take(&mut outgoing.body);
        let line = std::str::from_utf8(&body).ok().and_then(RpcLine::parse);
        if let Some(RpcLine { messages, batch }) = line {
            outgoing.waiting_ids =
                messages.iter().filter_map(|(_, message)| message.request_id()).collect();
            if let ([(_, message)], false) = (messages.as_slice(), batch) {
                outgoing.read_message(message);
            }
        }
        Self { body, ..outgoing }
    }

    fn read_message(&mut self, message: &RpcMessage<'_>) {
        let Some(method) = message.method.as_deref() else { return };
        self.kind = match method {
            "initialize" => OutgoingKind::Initialize,
            "notifications/initialized" => OutgoingKind::Initialized,
            "notifications/cancelled" => {
                let params: Option<CancelledParams> = message.parse_params();
                let id = params.and_then(|params| RpcId::from_value(&params.request));
                id.map_or(OutgoingKind::Other, OutgoingKind::Cancelled)
            }
            _ if LISTENING_METHODS.contains(&method) => OutgoingKind::Listen,
            _ => OutgoingKind::Other,
        };
        let params: HeaderParams = message.parse_params().unwrap_or_default();
        let version =
            params.meta.as_ref().and_then(|meta| meta.get(STATELESS_VERSION_KEY)?.as_str());
        self.stateless = version.map(str::to_owned);
        if version.is_none() || self.waiting_ids.is_empty() {
            return;
        }
        if is_plain_header_value(method) {
            self.repeated_headers.push(("mcp-method".to_owned(), method.to_owned()));
        }
        let name = match method {
            "tools/call" | "prompts/get" => params.name,
            "resources/read" => params.uri,
            _ => None,
        };
        let mirror = |name: &String| ("mcp-name".to_owned(), encode_header_value(name));
        self.repeated_headers.extend(name.as_ref().map(mirror));
        if method == "tools/call" {
            self.call = name.zip(params.arguments);
        }
    }

    /// Adds the headers that the server requires for tool parameters.
    pub(super) fn add_param_headers(&mut self, mirrors: &ParamHeaders) {
        if let Some((tool, arguments)) = self.call.take() {
            let headers = mirrors.headers_of_call(&tool, &arguments).into_iter();
            self.repeated_headers
                .extend(headers.map(|(name, value)| (name, encode_header_value(&value))));
        }
    }

    /// Whether later lines must wait until the server has this one. Without an answer, the client
    /// can't know when it arrived.
    pub(super) fn is_ordered(&self) -> bool {
        self.waiting_ids.is_empty() || self.kind == OutgoingKind::Initialize
    }
}

/// Encodes a value for a header.
fn encode_header_value(value: &str) -> String {
    let (start, end) = ENCODED_VALUE;
    if is_plain_header_value(value) && !(value.starts_with(start) && value.ends_with(end)) {
        return value.to_owned();
    }
    format!("{start}{}{end}", STANDARD.encode(value))
}

fn is_plain_header_value(value: &str) -> bool {
    let visible = |byte: u8| matches!(byte, 0x20..=0x7e | b'\t');
    value.bytes().all(visible) && value.trim_matches([' ', '\t']) == value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_header_cannot_contain_are_encoded() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode_header_value(value), header);
        }
    }

    #[test]
    fn headers_repeat_the_method_and_name_of_a_stateless_request() {
        let line = |method: &str, rest: &str, meta: &str| {
            let meta = meta.replace("VERSION", r#""io.modelcontextprotocol/protocolVersion":"v""#);
            let params = format!(r#"{{{rest}"_meta":{{{meta}}}}}"#);
            let line = format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#);
            OutgoingLine::new(line.into_bytes())
        };
        let call = line("tools/call", r#""name":"ä","#, "VERSION");
        assert_eq!((call.stateless.as_deref(), call.waiting_ids.len()), (Some("v"), 1));
        let method = |value: &str| ("mcp-method".to_owned(), value.to_owned());
        let name = |value: &str| ("mcp-name".to_owned(), value.to_owned());
        assert_eq!(call.repeated_headers, [method("tools/call"), name(&encode_header_value("ä"))]);
        let read = line("resources/read", r#""uri":"file:///a","name":"b","#, "VERSION");
        assert_eq!(read.repeated_headers, [method("resources/read"), name("file:///a")]);
        let list = line("tools/list", r#""name":"b","#, "VERSION");
        assert_eq!(list.repeated_headers, [method("tools/list")]);
        let old = line("tools/call", r#""name":"a","#, "");
        assert_eq!((old.stateless, old.repeated_headers), (None, Vec::new()));
    }
}
