//! One request over HTTP, asked by a thread, so that whoever waits can still break it off.

use std::io::Read as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use jackline_http::{AgentTimeouts, Channel, ServerUrl, ServerUrlError, build_agent};
use ureq::http::header::{HeaderMap, HeaderName};
use ureq::{Agent, Error, Timeout};

use crate::ask::{Delta, Hearer};
use crate::error::{ErrorKind, ModelError};
use crate::spec::ModelSpec;

/// How often whoever waits is asked whether it still does.
const TICK: Duration = Duration::from_millis(100);

/// How long is waited for the end of an answer of which everything is known.
const FAREWELL: Duration = Duration::from_millis(50);

/// How much is read at once, and how many of these may lie unread.
const CHUNK_BYTES: usize = 16 << 10;
const CHUNKS: usize = 16;

/// Why an address is none for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is no URL, or of another kind.
    #[error("is no address; write it as https://HOST/PATH")]
    NoUrl,
    /// It holds a password.
    #[error("must not hold a name or a password; name a variable with `key_env`")]
    Credentials,
    /// Everybody could listen.
    #[error("is neither encrypted nor on this machine; use https://")]
    Insecure,
}

/// Checks an address. What is said to it may be secret.
pub fn check_url(url: &str) -> Result<(), UrlError> {
    let checked = ServerUrl::parse(url).map_err(|error| match error {
        ServerUrlError::Invalid => UrlError::NoUrl,
        ServerUrlError::Credentials => UrlError::Credentials,
    })?;
    // A path is put behind it.
    if checked.uri.query().is_some() {
        return Err(UrlError::NoUrl);
    }
    match checked.channel {
        Channel::Encrypted | Channel::Loopback => Ok(()),
        Channel::Plain => Err(UrlError::Insecure),
    }
}

/// The agent that asks this model.
pub(crate) fn agent(spec: &ModelSpec) -> Agent {
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

/// What is posted.
pub(crate) struct Post {
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// What an answer begins with.
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: HeaderMap,
}

impl Head {
    /// What a header says.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        self.headers.get(name)?.to_str().ok()
    }
}

/// What comes of an answer.
enum Piece {
    Head(Head),
    Bytes(Vec<u8>),
    End,
}

/// A request under way.
pub(crate) struct Exchange {
    pieces: Receiver<Result<Piece, ModelError>>,
}

impl Exchange {
    /// Posts, and waits for what the answer begins with.
    pub(crate) fn start(
        agent: &Agent,
        post: Post,
        hear: &mut Hearer<'_>,
    ) -> Result<(Self, Head), ModelError> {
        let (sender, pieces) = sync_channel(CHUNKS);
        let agent = agent.clone();
        let thread = Builder::new().name("model".to_owned());
        let started = thread.spawn(move || {
            let ended = converse(&agent, &post, &sender);
            // Nobody listens any more where this can't be said.
            let _ = sender.send(ended.map(|()| Piece::End));
        });
        started.map_err(|error| {
            ModelError::new(ErrorKind::Network, format!("nobody can be asked: {error}"))
        })?;
        let exchange = Self { pieces };
        match exchange.next(hear)? {
            Piece::Head(head) => Ok((exchange, head)),
            Piece::Bytes(_) | Piece::End => Err(broken_off()),
        }
    }

    /// More of the answer; none at its end.
    pub(crate) fn more(&self, hear: &mut Hearer<'_>) -> Result<Option<Vec<u8>>, ModelError> {
        match self.next(hear)? {
            Piece::Bytes(bytes) => Ok(Some(bytes)),
            Piece::Head(_) | Piece::End => Ok(None),
        }
    }

    fn next(&self, hear: &mut Hearer<'_>) -> Result<Piece, ModelError> {
        loop {
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => return piece,
                Err(RecvTimeoutError::Timeout) => {
                    if hear(Delta::Waiting).is_break() {
                        return Err(ModelError::cancelled());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(broken_off()),
            }
        }
    }

    /// Lets an answer end that nothing more is wanted of, so that its connection can be
    /// used again. A server that keeps it open is not waited for.
    pub(crate) fn part(self) {
        while let Ok(Ok(Piece::Bytes(_))) = self.pieces.recv_timeout(FAREWELL) {}
    }
}

/// The thread did not get to its end.
fn broken_off() -> ModelError {
    ModelError::new(ErrorKind::Network, "the request was broken off on this side")
}

/// Asks, and says what comes. That nobody listens any more is no failure.
fn converse(
    agent: &Agent,
    post: &Post,
    sender: &SyncSender<Result<Piece, ModelError>>,
) -> Result<(), ModelError> {
    let mut request = agent.post(&post.url).header("content-type", "application/json");
    for (name, value) in &post.headers {
        request = request.header(*name, value);
    }
    let response = request.send(post.body.as_bytes()).map_err(|error| failure(&error))?;
    let (parts, body) = response.into_parts();
    let head = Head { status: parts.status.as_u16(), headers: parts.headers };
    if sender.send(Ok(Piece::Head(head))).is_err() {
        return Ok(());
    }
    let mut reader = body.into_reader();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = reader.read(&mut buffer).map_err(|error| match Error::from(error) {
            Error::Protocol(_) => half(),
            Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => half(),
            error => failure(&error),
        })?;
        let bytes = buffer.get(..read).unwrap_or_default().to_vec();
        if bytes.is_empty() || sender.send(Ok(Piece::Bytes(bytes))).is_err() {
            return Ok(());
        }
    }
}

/// An answer without its end.
pub(crate) fn half() -> ModelError {
    ModelError::new(ErrorKind::BadAnswer, "the connection was closed in the middle of the answer")
}

/// Why there is no answer, or no more of it.
fn failure(error: &Error) -> ModelError {
    let (kind, why) = match error {
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            (ErrorKind::Network, "there was no connection in time".to_owned())
        }
        Error::Timeout(Timeout::PerRead | Timeout::PerWrite) => {
            (ErrorKind::Timeout, "nothing came for too long".to_owned())
        }
        Error::Timeout(_) => (ErrorKind::Timeout, "the answer took too long".to_owned()),
        Error::HostNotFound => (ErrorKind::Network, "nobody knows the server's name".to_owned()),
        Error::BadUri(_) | Error::Http(_) => {
            (ErrorKind::BadRequest, "the request can't be sent".to_owned())
        }
        error => (ErrorKind::Network, format!("the server is out of reach: {error}")),
    };
    ModelError::new(kind, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_only_sent_where_nobody_listens() {
        for (url, found) in [
            ("https://models.example/v1", Ok(())),
            ("http://127.0.0.1:8080/v1", Ok(())),
            ("http://[::1]:8080", Ok(())),
            ("http://LocalHost", Ok(())),
            ("http://models.example/v1", Err(UrlError::Insecure)),
            ("http://127.0.0.1.models.example/v1", Err(UrlError::Insecure)),
            ("https://me:secret@models.example", Err(UrlError::Credentials)),
            ("https://models.example/v1?key=secret", Err(UrlError::NoUrl)),
            ("ftp://models.example", Err(UrlError::NoUrl)),
            ("models", Err(UrlError::NoUrl)),
        ] {
            assert_eq!(check_url(url), found, "{url}");
        }
    }
}
