//! A line of the client as it is posted: what it asks for, and what of it is repeated
//! in headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::mirror::Mirrors;
use crate::wrap::message::{Cancelled, Id, LISTENS, Line, Message, STATELESS};

/// How values begin and end that no header could hold as they are.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// A line that is to be posted.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) body: Vec<u8>,
    /// Who waits for an answer.
    pub(super) asked: Vec<Id>,
    pub(super) kind: Kind,
    /// The version of a client that speaks the protocol without a handshake.
    pub(super) stateless: Option<String>,
    /// What intermediaries want to know without reading the body.
    pub(super) mirrored: Vec<(String, String)>,
    /// The tool that a client without a handshake calls, and its arguments.
    call: Option<(String, Value)>,
}

/// What is done around a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A session begins with its answer.
    Initialize,
    /// From here on the server may speak by itself.
    Initialized,
    /// Nobody waits for this request any more.
    Cancelled(Id),
    /// It is answered when the client has heard enough.
    Listen,
    Other,
}

/// The parameters as far as headers repeat them.
#[derive(Default, Deserialize)]
struct Params {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default, rename = "_meta")]
    meta: Option<Value>,
}

impl Outgoing {
    /// Looks at a line that was found to be JSON-RPC.
    pub(super) fn new(body: Vec<u8>) -> Self {
        let mut outgoing = Self {
            body,
            asked: Vec::new(),
            kind: Kind::Other,
            stateless: None,
            mirrored: Vec::new(),
            call: None,
        };
        let body = std::mem::take(&mut outgoing.body);
        let line = std::str::from_utf8(&body).ok().and_then(Line::parse);
        if let Some(Line { messages, batch }) = line {
            outgoing.asked = messages.iter().filter_map(|(_, message)| message.asks()).collect();
            if let ([(_, message)], false) = (messages.as_slice(), batch) {
                outgoing.look_at(message);
            }
        }
        Self { body, ..outgoing }
    }

    fn look_at(&mut self, message: &Message<'_>) {
        let Some(method) = message.method.as_deref() else { return };
        self.kind = match method {
            "initialize" => Kind::Initialize,
            "notifications/initialized" => Kind::Initialized,
            "notifications/cancelled" => {
                let params: Option<Cancelled> = message.params();
                let id = params.and_then(|params| Id::of(&params.request));
                id.map_or(Kind::Other, Kind::Cancelled)
            }
            _ if LISTENS.contains(&method) => Kind::Listen,
            _ => Kind::Other,
        };
        let params: Params = message.params().unwrap_or_default();
        let version = params.meta.as_ref().and_then(|meta| meta.get(STATELESS)?.as_str());
        self.stateless = version.map(str::to_owned);
        if version.is_none() || self.asked.is_empty() {
            return;
        }
        if is_plain(method) {
            self.mirrored.push(("mcp-method".to_owned(), method.to_owned()));
        }
        let name = match method {
            "tools/call" | "prompts/get" => params.name,
            "resources/read" => params.uri,
            _ => None,
        };
        let mirror = |name: &String| ("mcp-name".to_owned(), encoded(name));
        self.mirrored.extend(name.as_ref().map(mirror));
        if method == "tools/call" {
            self.call = name.zip(params.arguments);
        }
    }

    /// Adds the parameters that the server wants to see in headers.
    pub(super) fn mirror(&mut self, mirrors: &Mirrors) {
        if let Some((tool, arguments)) = self.call.take() {
            let headers = mirrors.of(&tool, &arguments).into_iter();
            self.mirrored.extend(headers.map(|(name, value)| (name, encoded(&value))));
        }
    }

    /// Whether what comes behind has to wait until the server has this: who takes no
    /// answer can't know when it arrived.
    pub(super) fn is_ordered(&self) -> bool {
        self.asked.is_empty() || self.kind == Kind::Initialize
    }
}

/// A value as a header can hold it.
fn encoded(value: &str) -> String {
    let (start, end) = ENCODED;
    if is_plain(value) && !(value.starts_with(start) && value.ends_with(end)) {
        return value.to_owned();
    }
    format!("{start}{}{end}", STANDARD.encode(value))
}

fn is_plain(value: &str) -> bool {
    let visible = |byte: u8| matches!(byte, 0x20..=0x7e | b'\t');
    value.bytes().all(visible) && value.trim_matches([' ', '\t']) == value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_where_the_specification_says_so() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(value), header);
        }
    }

    #[test]
    fn headers_repeat_what_a_request_without_a_handshake_asks_for() {
        let line = |method: &str, rest: &str, meta: &str| {
            let meta = meta.replace("VERSION", r#""io.modelcontextprotocol/protocolVersion":"v""#);
            let params = format!(r#"{{{rest}"_meta":{{{meta}}}}}"#);
            let line = format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#);
            Outgoing::new(line.into_bytes())
        };
        let call = line("tools/call", r#""name":"ä","#, "VERSION");
        assert_eq!((call.stateless.as_deref(), call.asked.len()), (Some("v"), 1));
        let method = |value: &str| ("mcp-method".to_owned(), value.to_owned());
        let name = |value: &str| ("mcp-name".to_owned(), value.to_owned());
        assert_eq!(call.mirrored, [method("tools/call"), name(&encoded("ä"))]);
        let read = line("resources/read", r#""uri":"file:///a","name":"b","#, "VERSION");
        assert_eq!(read.mirrored, [method("resources/read"), name("file:///a")]);
        let list = line("tools/list", r#""name":"b","#, "VERSION");
        assert_eq!(list.mirrored, [method("tools/list")]);
        let old = line("tools/call", r#""name":"a","#, "");
        assert_eq!((old.stateless, old.mirrored), (None, Vec::new()));
    }
}
