//! The proxy's own errors as JSON-RPC errors: a code, what happened, and what to do.

use jackline_engine::CallStatus;
use serde_json::json;

use super::bounded_lines::LINE_BYTES_MAX;
use super::open_requests::{OpenRequest, ServerGone};
use super::rpc_message::RpcId;

/// The server gives no usable answer to a valid message. MCP clients use this code for a closed
/// connection.
const CONNECTION: i64 = -32_000;
const INVALID_REQUEST: i64 = -32_600;
const INVALID_PARAMS: i64 = -32_602;
const PARSE: i64 = -32_700;

/// Why a request gets no answer from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProxyFailure {
    /// The server is gone.
    ServerGone(ServerGone),
    /// The server has not answered in time.
    TimedOut { seconds: u64 },
    /// The answer of the server is too long.
    TooLong { bytes: usize },
    /// The answer of the server is invalid.
    Unreadable,
    /// The server could not be reached.
    Unreached { address: String, why: String },
    /// The server answered with an HTTP error.
    Http { address: String, status: u16, said: String },
    /// The server redirects to another address.
    Moved { address: String, to: String },
    /// The address does not answer as an MCP server.
    NotMcp { address: String, media: String },
    /// The answer ended too early.
    ConnectionLost { address: String, why: String },
    /// Too many requests are open.
    Busy,
    /// Another open request has the same id.
    DuplicateId,
    /// The id of the request can't be used in an answer.
    BadId,
    /// A tool call has no id.
    CallWithoutId,
    /// The message of the client is invalid.
    NotAMessage,
    /// The message of the client is too long.
    LineTooLong { bytes: usize },
    /// The parameters of a tool call are invalid.
    BadParams,
}

impl ProxyFailure {
    /// The JSON-RPC error code.
    ///
    /// A standard code means that the client must change its own message. Every other failure has
    /// the code `CONNECTION`: the message was valid, but the proxy has no result of the server for
    /// it. This includes `Busy`, where the message was not sent, and `NotMcp`, where the program at
    /// the address is not an MCP server.
    fn code(&self) -> i64 {
        match self {
            Self::DuplicateId | Self::BadId | Self::CallWithoutId | Self::LineTooLong { .. } => {
                INVALID_REQUEST
            }
            Self::BadParams => INVALID_PARAMS,
            Self::NotAMessage => PARSE,
            _ => CONNECTION,
        }
    }

    /// The JSON word for programs.
    fn json_word(&self) -> &'static str {
        match self {
            Self::ServerGone(_) => "server_gone",
            Self::TimedOut { .. } => "timeout",
            Self::TooLong { .. } => "result_too_long",
            Self::Unreadable => "result_unreadable",
            Self::Unreached { .. } => "server_unreachable",
            Self::Http { .. } => "http_error",
            Self::Moved { .. } => "server_moved",
            Self::NotMcp { .. } => "not_mcp",
            Self::ConnectionLost { .. } => "answer_cut",
            Self::Busy => "too_many_requests",
            Self::DuplicateId => "id_in_use",
            Self::BadId => "invalid_id",
            Self::CallWithoutId => "call_without_id",
            Self::NotAMessage => "no_message",
            Self::LineTooLong { .. } => "message_too_long",
            Self::BadParams => "invalid_params",
        }
    }

    /// The status of a call that failed for this reason.
    pub(super) fn status(&self) -> CallStatus {
        match self {
            Self::ServerGone(_) => CallStatus::Crashed,
            Self::TimedOut { .. } => CallStatus::Timeout,
            _ => CallStatus::Error,
        }
    }

    /// What happened, and what to do about it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::ServerGone(gone) => {
                // `None` means that the server is remote, so we can't read its standard error.
                let last_output = match gone.stderr.as_deref() {
                    None => String::new(),
                    Some("") => "; it wrote nothing to standard error".to_owned(),
                    Some(text) => format!("; its last output on standard error: {text}"),
                };
                format!(
                    "the MCP server is gone: {}{last_output}; restart it from the client",
                    gone.how
                )
            }
            Self::TimedOut { seconds } => format!(
                "the MCP server has not answered within {seconds} seconds and may still be \
                working; check what it did before you repeat this, or raise `--timeout` of \
                `jackline mcp wrap`"
            ),
            Self::TooLong { bytes } => format!(
                "the MCP server answered with a message of {bytes} bytes, but the limit is \
                 {LINE_BYTES_MAX}; request less data"
            ),
            Self::Unreadable => "the MCP server sent an invalid result for this method; \
                                 the call may have run, so check what it did before you \
                                 repeat it"
                .to_owned(),
            Self::Unreached { address, why } => format!(
                "the MCP server at {address} can't be reached: {why}; the request was not sent; \
                 check that the server is running, and check `--url` of `jackline mcp wrap`"
            ),
            Self::Http { address, status, said } => {
                let detail = if said.is_empty() { String::new() } else { format!(": {said}") };
                let next = advice_for_status(*status);
                format!(
                    "the MCP server at {address} answered with HTTP status {status}{detail}; {next}"
                )
            }
            Self::Moved { address, to } => format!(
                "the MCP server at {address} redirects to `{to}`, but redirects are not followed; \
                 the request was not answered; check that address and use it as `--url`"
            ),
            Self::NotMcp { address, media } => format!(
                "{address} answered with `{media}`, but an MCP server answers with JSON or an \
                 event stream; check `--url` of `jackline mcp wrap`"
            ),
            Self::ConnectionLost { address, why } => format!(
                "the connection to the MCP server at {address} was lost: {why}; the call may have \
                 run; check what it did before you repeat it"
            ),
            Self::Busy => "too many requests to the MCP server are open; this one was not \
                           sent; wait for other answers first"
                .to_owned(),
            Self::DuplicateId => "another open request already has this id".to_owned(),
            Self::BadId => "the `id` of this request can't be used in an answer; the request was \
                            not sent to the server; use a string or a whole number"
                .to_owned(),
            Self::CallWithoutId => {
                "a tool call must have an `id`, because it needs an answer".to_owned()
            }
            Self::NotAMessage => "this line is not a JSON-RPC message or contains a key twice; it \
                                was not sent to the server"
                .to_owned(),
            Self::LineTooLong { bytes } => format!(
                "this message has {bytes} bytes, but the limit is {LINE_BYTES_MAX}; it was not \
                 sent to the server; send a shorter message"
            ),
            Self::BadParams => "the tool call can't be parsed: `params` is not an object, \
                                contains a key twice, or its `name` is not a string; the call \
                                was not sent to the server; send it again with `name` and \
                                `arguments`, once each"
                .to_owned(),
        }
    }

    /// The error answer to the request with this id.
    ///
    /// Without an id, the answer has the id `null`, as JSON-RPC demands. This happens if the
    /// message has no id, or if its id can't be read or used. The client can't match such an
    /// answer with a request.
    pub(super) fn answer(&self, id: Option<&RpcId>) -> String {
        let mut data = json!({ "by": "jackline", "kind": self.json_word() });
        if let (Self::ServerGone(gone), Some(fields)) = (self, data.as_object_mut()) {
            fields.insert("how".to_owned(), json!(gone.how));
            // A remote server has no standard error, so the key is missing then.
            if let Some(stderr) = &gone.stderr {
                fields.insert("stderr".to_owned(), json!(stderr));
            }
        }
        if let (Self::Http { status, .. }, Some(fields)) = (self, data.as_object_mut()) {
            fields.insert("http_status".to_owned(), json!(status));
        }
        let error = json!({
            "code": self.code(),
            "message": format!("jackline: {}", self.text()),
            "data": data,
        });
        let id = id.map_or("null", RpcId::json);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
    }

    /// The error answer to this request of the client.
    pub(super) fn answer_to(&self, open: &OpenRequest) -> String {
        self.answer(Some(&open.id))
    }
}

/// Describes what to do about an HTTP status.
fn advice_for_status(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => {
            "the server requires authentication: send a token with \
             `--header-env Authorization=VARIABLE` of `jackline mcp wrap`"
        }
        404 | 405 | 410 => "check the path in `--url` of `jackline mcp wrap`",
        // The server refused the request because of its rate limit, so the call did not run.
        429 => "the server limits the request rate; wait before you try again",
        500.. => "the call may have run; check what it did before you repeat it",
        _ => "the request was not accepted",
    }
}
