//! One HTTP request, made by its own thread, so that the caller can cancel while it waits.

use std::io::Read as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use jackline_http::{
    AgentTimeouts, Channel, ServerUrl, ServerUrlError, build_agent, describe_tls_failure,
};
use ureq::http::header::{HeaderMap, HeaderName};
use ureq::{Agent, Error, Timeout};

use crate::conversation::{AnswerDelta, DeltaReceiver};
use crate::error::{ModelError, ModelErrorKind};
use crate::model_spec::RemoteModelSpec;

/// How often a waiting caller can cancel.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How long the end of a complete answer is waited for.
const CLOSE_WAIT: Duration = Duration::from_millis(50);

/// How many bytes are read at once, and how many such chunks may be buffered.
const CHUNK_BYTES: usize = 16 << 10;
const CHUNKS_BUFFERED_MAX: usize = 16;

/// Why an address can't be used for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModelUrlError {
    /// The text is not an http or https URL.
    #[error("is not a server address; write it as https://HOST/PATH")]
    InvalidUrl,
    /// It contains a user name or a password.
    #[error("must not contain a user name or password; use `key_env` for the key")]
    Credentials,
    /// Other machines could read the connection.
    #[error("is not encrypted and not on this machine; use https://")]
    Insecure,
}

/// Checks an address. The data sent there may be secret.
pub fn check_url(url: &str) -> Result<(), ModelUrlError> {
    let checked = ServerUrl::parse(url).map_err(|error| match error {
        ServerUrlError::Invalid => ModelUrlError::InvalidUrl,
        ServerUrlError::Credentials => ModelUrlError::Credentials,
    })?;
    // A path is appended to the URL.
    if checked.uri.query().is_some() {
        return Err(ModelUrlError::InvalidUrl);
    }
    match checked.channel {
        Channel::Encrypted | Channel::Loopback => Ok(()),
        Channel::Plain => Err(ModelUrlError::Insecure),
    }
}

/// The HTTP agent for this model.
pub(crate) fn agent(spec: &RemoteModelSpec) -> Agent {
    let some = |time: Duration| Some(time.max(Duration::from_millis(1)));
    let timeouts = AgentTimeouts {
        read: some(spec.silence_max),
        write: some(spec.silence_max),
        global: some(spec.timeout),
    };
    let server = ServerUrl::parse(spec.url()).ok();
    let host = server.as_ref().and_then(|server| server.uri.host());
    build_agent(host.unwrap_or_default(), timeouts)
}

/// A request to be posted.
pub(crate) struct HttpPost {
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// The status and the headers of a response.
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    headers: HeaderMap,
}

impl ResponseHead {
    /// The value of a header.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        self.headers.get(name)?.to_str().ok()
    }
}

/// A part of a response.
enum ResponsePiece {
    Head(ResponseHead),
    Bytes(Vec<u8>),
    End,
}

/// A running request.
pub(crate) struct HttpExchange {
    pieces: Receiver<Result<ResponsePiece, ModelError>>,
}

impl HttpExchange {
    /// Sends the request and waits for the head of the response.
    pub(crate) fn start(
        agent: &Agent,
        post: HttpPost,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(Self, ResponseHead), ModelError> {
        let (sender, pieces) = sync_channel(CHUNKS_BUFFERED_MAX);
        let agent = agent.clone();
        let thread = Builder::new().name("model".to_owned());
        let started = thread.spawn(move || {
            let ended = send_and_receive(&agent, &post, &sender);
            // This only fails if the caller no longer listens.
            let _ = sender.send(ended.map(|()| ResponsePiece::End));
        });
        started.map_err(|error| {
            ModelError::new(
                ModelErrorKind::Network,
                format!("can't start a thread for the request: {error}"),
            )
        })?;
        let exchange = Self { pieces };
        match exchange.next_piece(hear)? {
            ResponsePiece::Head(head) => Ok((exchange, head)),
            ResponsePiece::Bytes(_) | ResponsePiece::End => Err(thread_ended_error()),
        }
    }

    /// The next bytes of the answer; `None` at its end.
    pub(crate) fn next_bytes(
        &self,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<Option<Vec<u8>>, ModelError> {
        match self.next_piece(hear)? {
            ResponsePiece::Bytes(bytes) => Ok(Some(bytes)),
            ResponsePiece::Head(_) | ResponsePiece::End => Ok(None),
        }
    }

    fn next_piece(&self, hear: &mut DeltaReceiver<'_>) -> Result<ResponsePiece, ModelError> {
        loop {
            match self.pieces.recv_timeout(CANCEL_CHECK_INTERVAL) {
                Ok(piece) => return piece,
                Err(RecvTimeoutError::Timeout) => {
                    if hear(AnswerDelta::Waiting).is_break() {
                        return Err(ModelError::cancelled());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(thread_ended_error()),
            }
        }
    }

    /// Waits briefly for the end of a complete answer, so that its connection can be reused.
    pub(crate) fn drain(self) {
        while let Ok(Ok(ResponsePiece::Bytes(_))) = self.pieces.recv_timeout(CLOSE_WAIT) {}
    }
}

/// The error if the request thread ended unexpectedly.
fn thread_ended_error() -> ModelError {
    ModelError::new(ModelErrorKind::Network, "the request thread ended unexpectedly")
}

/// Sends the request and passes on the response. A caller that no longer listens is not an error.
fn send_and_receive(
    agent: &Agent,
    post: &HttpPost,
    sender: &SyncSender<Result<ResponsePiece, ModelError>>,
) -> Result<(), ModelError> {
    let mut request = agent.post(&post.url).header("content-type", "application/json");
    for (name, value) in &post.headers {
        request = request.header(*name, value);
    }
    let response =
        request.send(post.body.as_bytes()).map_err(|error| describe_failure(&error, &post.url))?;
    let (parts, body) = response.into_parts();
    let head = ResponseHead { status: parts.status.as_u16(), headers: parts.headers };
    if sender.send(Ok(ResponsePiece::Head(head))).is_err() {
        return Ok(());
    }
    let mut reader = body.into_reader();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = reader.read(&mut buffer).map_err(|error| match Error::from(error) {
            Error::Protocol(_) => incomplete_answer_error(),
            Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                incomplete_answer_error()
            }
            error => describe_failure(&error, &post.url),
        })?;
        let bytes = buffer.get(..read).unwrap_or_default().to_vec();
        if bytes.is_empty() || sender.send(Ok(ResponsePiece::Bytes(bytes))).is_err() {
            return Ok(());
        }
    }
}

/// The error of an incomplete answer.
pub(crate) fn incomplete_answer_error() -> ModelError {
    ModelError::new(
        ModelErrorKind::BadAnswer,
        "the connection was closed before the end of the answer",
    )
}

/// Describes a failed request.
fn describe_failure(error: &Error, url: &str) -> ModelError {
    let server = ServerUrl::parse(url).ok();
    let host = server.as_ref().and_then(|server| server.uri.host()).unwrap_or_default();
    if let Some(why) = describe_tls_failure(error, host) {
        return ModelError::new(ModelErrorKind::Network, why);
    }
    let (kind, why) = match error {
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            (ModelErrorKind::Network, "connecting timed out".to_owned())
        }
        Error::Timeout(Timeout::PerRead | Timeout::PerWrite) => {
            (ModelErrorKind::Timeout, "the server sent no data for too long".to_owned())
        }
        Error::Timeout(_) => (ModelErrorKind::Timeout, "the answer took too long".to_owned()),
        Error::HostNotFound => {
            (ModelErrorKind::Network, "the server name can't be resolved".to_owned())
        }
        Error::BadUri(_) | Error::Http(_) => {
            (ModelErrorKind::BadRequest, "the request can't be sent".to_owned())
        }
        error => (ModelErrorKind::Network, format!("the server can't be reached: {error}")),
    };
    ModelError::new(kind, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_only_over_a_safe_connection() {
        for (url, expected) in [
            ("https://models.example/v1", Ok(())),
            ("http://127.0.0.1:8080/v1", Ok(())),
            ("http://[::1]:8080", Ok(())),
            ("http://LocalHost", Ok(())),
            ("http://models.example/v1", Err(ModelUrlError::Insecure)),
            ("http://127.0.0.1.models.example/v1", Err(ModelUrlError::Insecure)),
            ("https://me:secret@models.example", Err(ModelUrlError::Credentials)),
            ("https://models.example/v1?key=secret", Err(ModelUrlError::InvalidUrl)),
            ("ftp://models.example", Err(ModelUrlError::InvalidUrl)),
            ("models", Err(ModelUrlError::InvalidUrl)),
        ] {
            assert_eq!(check_url(url), expected, "{url}");
        }
    }
}
