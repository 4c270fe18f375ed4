//! Errors of the proxy's own, in the protocol's words: a code, what happened, what next.

use jackline_engine::Status;
use serde_json::json;

use super::ledger::{Gone, Open};
use super::lines::LINE_BYTES_MAX;
use super::message::Id;

/// Something is wrong with the connection: what clients use for a server that is gone.
const CONNECTION: i64 = -32_000;
const INVALID_REQUEST: i64 = -32_600;
const INVALID_PARAMS: i64 = -32_602;
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
    /// Nobody could ask it.
    Unreached { address: String, why: String },
    /// It has refused the request as such.
    Http { address: String, status: u16, said: String },
    /// It is somewhere else.
    Moved { address: String, to: String },
    /// Something else answers there.
    NoMcp { address: String, media: String },
    /// Its answer has no end.
    Cut { address: String, why: String },
    /// Too much was asked of it at once.
    Busy,
    /// The client uses an id twice.
    Twice,
    /// The client uses an id that nobody can repeat.
    BadId,
    /// The client wants a call without an answer.
    Unanswerable,
    /// What the client has sent can't be read.
    NoMessage,
    /// The client has sent more than anybody can take.
    LineTooLong { bytes: usize },
    /// What a tool is called with can't be read.
    BadParams,
}

impl Failure {
    fn code(&self) -> i64 {
        match self {
            Self::Twice | Self::BadId | Self::Unanswerable | Self::LineTooLong { .. } => {
                INVALID_REQUEST
            }
            Self::BadParams => INVALID_PARAMS,
            Self::NoMessage => PARSE,
            _ => CONNECTION,
        }
    }

    /// A stable word for programs.
    fn kind(&self) -> &'static str {
        match self {
            Self::Gone(_) => "server_gone",
            Self::Late { .. } => "timeout",
            Self::TooLong { .. } => "result_too_long",
            Self::Unreadable => "result_unreadable",
            Self::Unreached { .. } => "server_unreachable",
            Self::Http { .. } => "http_error",
            Self::Moved { .. } => "server_moved",
            Self::NoMcp { .. } => "not_mcp",
            Self::Cut { .. } => "answer_cut",
            Self::Busy => "too_many_requests",
            Self::Twice => "id_in_use",
            Self::BadId => "invalid_id",
            Self::Unanswerable => "call_without_id",
            Self::NoMessage => "no_message",
            Self::LineTooLong { .. } => "message_too_long",
            Self::BadParams => "invalid_params",
        }
    }

    /// How a call ended that has no answer for this reason.
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Gone(_) => Status::Crashed,
            Self::Late { .. } => Status::Timeout,
            _ => Status::Error,
        }
    }

    /// What happened, and what to do about it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Gone(gone) => {
                let said = match gone.stderr.as_deref() {
                    None => String::new(),
                    Some("") => "; it said nothing on standard error".to_owned(),
                    Some(said) => format!("; the last it said: {said}"),
                };
                format!(
                    "the MCP server is gone: {}{said}; have the client start it again",
                    gone.how
                )
            }
            Self::Late { seconds } => format!(
                "the MCP server has not answered within {seconds} seconds, and may still be at \
                 work; look before this is done again, or raise `--timeout` of `jackline mcp wrap`"
            ),
            Self::TooLong { bytes } => format!(
                "the MCP server answered with a message of {bytes} bytes; at most \
                 {LINE_BYTES_MAX} are read; ask it for less"
            ),
            Self::Unreadable => "the MCP server answered with what is no result of this method; \
                                 the call may have run"
                .to_owned(),
            Self::Unreached { address, why } => format!(
                "the MCP server at {address} can't be reached: {why}; the request was not sent; \
                 check that it runs, and `--url` of `jackline mcp wrap`"
            ),
            Self::Http { address, status, said } => {
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                let next = after_status(*status);
                format!(
                    "the MCP server at {address} answered with HTTP status {status}{said}; {next}"
                )
            }
            Self::Moved { address, to } => format!(
                "the MCP server at {address} sends its clients to `{to}`, where nobody follows; \
                 the request was not answered; check that address, and give it as `--url`"
            ),
            Self::NoMcp { address, media } => format!(
                "{address} answered with `{media}`, and an MCP server answers with JSON or a \
                 stream of events; check `--url` of `jackline mcp wrap`"
            ),
            Self::Cut { address, why } => format!(
                "the connection to the MCP server at {address} was lost: {why}; the call may have \
                 run; look before this is done again"
            ),
            Self::Busy => "too many requests to the MCP server are under way; this one was not \
                           sent; wait for the answers to others"
                .to_owned(),
            Self::Twice => "another request that is still open has this id".to_owned(),
            Self::BadId => "the `id` of this request can't be repeated in an answer; the server was \
                            not given it; use a string or a whole number"
                .to_owned(),
            Self::Unanswerable => {
                "a tool is called by a request with an id, so that its answer finds its way"
                    .to_owned()
            }
            Self::NoMessage => "this line is no JSON-RPC message, or holds a key twice; the \
                                server was not given it"
                .to_owned(),
            Self::LineTooLong { bytes } => format!(
                "this message has {bytes} bytes; at most {LINE_BYTES_MAX} are read; the server was \
                 not given it; send less"
            ),
            Self::BadParams => "what the tool is called with can't be read: `params` is no object, \
                                holds a key twice, or its `name` is no text; the server was not \
                                given the call; send it again with `name` and `arguments`, once each"
                .to_owned(),
        }
    }

    /// The answer to a request.
    pub(super) fn answer(&self, id: Option<&Id>) -> String {
        let mut data = json!({ "by": "jackline", "kind": self.kind() });
        if let (Self::Gone(gone), Some(data)) = (self, data.as_object_mut()) {
            data.insert("how".to_owned(), json!(gone.how));
            if let Some(stderr) = &gone.stderr {
                data.insert("stderr".to_owned(), json!(stderr));
            }
        }
        if let (Self::Http { status, .. }, Some(data)) = (self, data.as_object_mut()) {
            data.insert("http_status".to_owned(), json!(status));
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

/// What to do about a status of HTTP.
fn after_status(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => {
            "it wants to know who asks: name a token with `--header-env Authorization=VARIABLE` of \
             `jackline mcp wrap`"
        }
        404 | 405 | 410 => "check the path in `--url` of `jackline mcp wrap`",
        429 => "it was asked too often; wait before this is done again",
        500.. => "the call may have run; look before this is done again",
        _ => "the request was not taken",
    }
}
