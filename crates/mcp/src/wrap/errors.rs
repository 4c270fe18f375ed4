//! Errors of the proxy's own, in the protocol's words: a code, what happened, what next.

use serde_json::json;

use super::ledger::{Gone, Open};
use super::lines::LINE_BYTES_MAX;
use super::message::Id;

/// Something is wrong with the connection: what clients use for a server that is gone.
const CONNECTION: i64 = -32_000;
const INVALID_REQUEST: i64 = -32_600;
const PARSE: i64 = -32_700;

/// Why a request gets no answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no server.
    Gone(Gone),
    /// It has not answered in time.
    Late { seconds: u64 },
    /// It has answered with more than anybody can take.
    TooLong { bytes: usize },
    /// What it has answered can't be read.
    Unreadable,
    /// The client uses an id twice.
    Twice,
    /// The client wants a call without an answer.
    Unanswerable,
    /// What the client has sent can't be read.
    NoMessage,
}

impl Failure {
    fn code(&self) -> i64 {
        match self {
            Self::Gone(_) | Self::Late { .. } | Self::TooLong { .. } | Self::Unreadable => {
                CONNECTION
            }
            Self::Twice | Self::Unanswerable => INVALID_REQUEST,
            Self::NoMessage => PARSE,
        }
    }

    /// A stable word for programs.
    fn kind(&self) -> &'static str {
        match self {
            Self::Gone(_) => "server_gone",
            Self::Late { .. } => "timeout",
            Self::TooLong { .. } => "result_too_long",
            Self::Unreadable => "result_unreadable",
            Self::Twice => "id_in_use",
            Self::Unanswerable => "call_without_id",
            Self::NoMessage => "no_message",
        }
    }

    /// What happened, and what to do about it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Gone(gone) => {
                let said = if gone.stderr.is_empty() {
                    "it said nothing on standard error".to_owned()
                } else {
                    format!("the last it said: {}", gone.stderr)
                };
                format!(
                    "the MCP server is gone: {}; {said}; have the client start it again",
                    gone.how
                )
            }
            Self::Late { seconds } => format!(
                "the MCP server has not answered within {seconds} seconds, and may still be at \
                 work; look before this is done again, or raise `--timeout` of `jackline mcp wrap`"
            ),
            Self::TooLong { bytes } => format!(
                "the MCP server answered with a line of {bytes} bytes; at most {LINE_BYTES_MAX} \
                 are read; ask it for less"
            ),
            Self::Unreadable => "the MCP server answered with what is no result of this method; \
                                 the call may have run"
                .to_owned(),
            Self::Twice => "another request that is still open has this id".to_owned(),
            Self::Unanswerable => {
                "a tool is called by a request with an id, so that its answer finds its way"
                    .to_owned()
            }
            Self::NoMessage => "this line is no JSON-RPC message, or holds a key twice; the \
                                server was not given it"
                .to_owned(),
        }
    }

    /// The answer to a request.
    pub(super) fn answer(&self, id: Option<&Id>) -> String {
        let mut data = json!({ "by": "jackline", "kind": self.kind() });
        if let (Self::Gone(gone), Some(data)) = (self, data.as_object_mut()) {
            data.insert("how".to_owned(), json!(gone.how));
            data.insert("stderr".to_owned(), json!(gone.stderr));
        }
        let error = json!({
            "code": self.code(),
            "message": format!("jackline: {}", self.text()),
            "data": data,
        });
        let id = id.map_or("null", Id::json);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
    }

    /// The answer to a request that was open.
    pub(super) fn answer_to(&self, open: &Open) -> String {
        self.answer(Some(&open.id))
    }
}
