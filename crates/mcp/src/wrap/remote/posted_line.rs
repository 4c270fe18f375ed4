//! Posts one line of the client and handles the response.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::http::Response;
use ureq::http::header::{CONTENT_TYPE, LOCATION};
use ureq::{Agent, Body, SendBody};

use super::RemoteServer;
use super::outgoing_line::{OutgoingKind, OutgoingLine};
use super::server_stream::start_listening;
use crate::wrap::bounded_lines::LINE_BYTES_MAX;
use crate::wrap::proxied_server::lock_ignoring_poison;
use crate::wrap::proxy_failure::ProxyFailure;
use crate::wrap::proxy_shared::{ProxyJob, ProxyShared, short_text};
use crate::wrap::rpc_message::{RpcId, RpcLine};
use crate::wrap::to_client;

/// The timeout of a line that gets no answer.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of an error response is read.
const ERROR_BODY_BYTES_MAX: u64 = 64 << 10;

/// An open request.
pub(super) struct PostedLine<'a> {
    pub(super) remote: &'a Arc<RemoteServer>,
    pub(super) shared: &'a Arc<ProxyShared>,
    pub(super) number: u64,
}

impl PostedLine<'_> {
    /// Posts a line and handles the response.
    pub(super) fn run(&self, outgoing: &OutgoingLine) {
        let failure = self.post(outgoing).err();
        self.remote.finish_post(self.shared, self.number, failure);
    }

    fn post(&self, outgoing: &OutgoingLine) -> Result<(), ProxyFailure> {
        let Some(agent) = self.agent() else { return Ok(()) };
        let session = self.session(outgoing);
        let request = agent.post(&self.remote.address.uri);
        let timeout = outgoing.waiting_ids.is_empty().then_some(NOTIFICATION_TIMEOUT);
        let request = request.config().timeout_global(timeout).build();
        let version = self.version(outgoing);
        let mut request = self
            .remote
            .with_headers(request, session.as_deref(), version.as_deref())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("content-length", outgoing.body.len());
        for (name, value) in &outgoing.repeated_headers {
            request = request.header(name, value);
        }
        let mut body = SentBody { rest: &outgoing.body, is_started: false };
        let response = request.send(SendBody::from_reader(&mut body));
        let response =
            response.map_err(|error| self.remote.connection_failure(&error, body.is_started))?;
        if outgoing.kind == OutgoingKind::Initialize && response.status().is_success() {
            self.begin_session(&response);
        }
        self.remote.lock().unblock_after(self.number);
        if outgoing.waiting_ids.is_empty() {
            self.handle_accepted(outgoing, session.as_deref(), response)
        } else {
            self.handle_response(outgoing, session.as_deref(), response)
        }
    }

    /// Handles the response to a line without a request.
    fn handle_accepted(
        &self,
        outgoing: &OutgoingLine,
        session: Option<&str>,
        response: Response<Body>,
    ) -> Result<(), ProxyFailure> {
        if !response.status().is_success() {
            return self.handle_error_response(session, response);
        }
        if outgoing.kind == OutgoingKind::Initialized && outgoing.stateless.is_none() {
            start_listening(self.remote, self.shared);
        }
        Ok(())
    }

    /// Handles the response to a request.
    fn handle_response(
        &self,
        outgoing: &OutgoingLine,
        session: Option<&str>,
        response: Response<Body>,
    ) -> Result<(), ProxyFailure> {
        let status = response.status();
        if !status.is_success() {
            return self.handle_error_response(session, response);
        }
        match media_type(&response).as_str() {
            "text/event-stream" => {
                let resumes = outgoing.stateless.is_none();
                self.follow_stream(response.into_body(), session, resumes)
            }
            "application/json" => self.handle_single_message(response.into_body()),
            // The answer comes on another stream, or is too late.
            "" if matches!(status.as_u16(), 202 | 204) => Ok(()),
            "" => {
                let (address, media) = (self.remote.address.to_string(), "nothing".to_owned());
                Err(ProxyFailure::NotMcp { address, media })
            }
            media => {
                let (address, media) =
                    (self.remote.address.to_string(), short_text(media.as_bytes()));
                Err(ProxyFailure::NotMcp { address, media })
            }
        }
    }

    /// Handles a response that is one message.
    fn handle_single_message(&self, body: Body) -> Result<(), ProxyFailure> {
        let length = body.content_length();
        let most = LINE_BYTES_MAX as u64;
        let mut bytes = Vec::new();
        let read = body.into_reader().take(most + 1).read_to_end(&mut bytes);
        if bytes.len() > LINE_BYTES_MAX {
            let bytes = length.and_then(|length| length.try_into().ok()).unwrap_or(bytes.len());
            return Err(ProxyFailure::TooLong { bytes });
        }
        read.map_err(|error| self.remote.connection_lost(&error.to_string()))?;
        if self.handle_message(bytes) { Ok(()) } else { Err(ProxyFailure::Unreadable) }
    }

    /// Handles a message of the server. Returns whether it answers the last open id.
    pub(super) fn handle_message(&self, message: Vec<u8>) -> bool {
        let answered = to_client::handle_line(self.shared, join_lines(message));
        // The reader may sleep for a long time.
        self.shared.run_deferred();
        self.remove_answered(&answered)
    }

    /// Removes answered ids. Returns whether no id is left.
    pub(super) fn remove_answered(&self, ids: &[RpcId]) -> bool {
        let mut state = lock_ignoring_poison(&self.remote.state);
        state.open_posts.get_mut(&self.number).is_none_or(|flying| {
            flying.waiting_ids.retain(|id| !ids.contains(id));
            flying.waiting_ids.is_empty()
        })
    }

    /// Handles an error response.
    fn handle_error_response(
        &self,
        session: Option<&str>,
        response: Response<Body>,
    ) -> Result<(), ProxyFailure> {
        let status = response.status().as_u16();
        if status == 404 && self.handle_expired_session(session) {
            return Ok(());
        }
        let address = self.remote.address.to_string();
        if response.status().is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.map(|to| to.split(['?', '#']).next().unwrap_or_default());
            let to = self.remote.address.conceal(&short_text(to.unwrap_or_default().as_bytes()));
            return Err(ProxyFailure::Moved { address, to });
        }
        let readable = matches!(media_type(&response).as_str(), "application/json" | "text/plain");
        let mut body_bytes = Vec::new();
        let response_body = response.into_body().into_reader();
        let read = response_body.take(ERROR_BODY_BYTES_MAX).read_to_end(&mut body_bytes);
        if read.is_ok() && self.is_answer(&body_bytes) {
            self.handle_message(body_bytes);
            return Ok(());
        }
        let text = if readable {
            self.remote.address.conceal(&short_text(&body_bytes))
        } else {
            String::new()
        };
        Err(ProxyFailure::Http { address, status, said: text })
    }

    /// Whether this message answers the request.
    fn is_answer(&self, bytes: &[u8]) -> bool {
        let line = std::str::from_utf8(bytes).ok().and_then(RpcLine::parse);
        let state = lock_ignoring_poison(&self.remote.state);
        let Some(flying) = state.open_posts.get(&self.number) else { return false };
        let answers = |id: Option<RpcId>| id.is_some_and(|id| flying.waiting_ids.contains(&id));
        line.is_some_and(|line| line.messages.iter().any(|(_, one)| answers(one.answered_id())))
    }

    /// Handles a session that the server no longer knows. Only the client can start a new one.
    /// Returns whether the client learns about it.
    pub(super) fn handle_expired_session(&self, session: Option<&str>) -> bool {
        let mut state = self.remote.lock();
        if session.is_none() || state.session.as_deref().is_some_and(|now| Some(now) != session) {
            return false;
        }
        if state.session.take().is_some() {
            drop(state);
            let how = "its session expired (HTTP status 404)";
            self.shared.send(ProxyJob::Lost(how.to_owned()));
        }
        true
    }

    /// Whether an id waits for an answer.
    pub(super) fn has_waiting_ids(&self) -> bool {
        !self.remove_answered(&[])
    }

    /// The id that has waited longest.
    pub(super) fn oldest_waiting_id(&self) -> Option<RpcId> {
        lock_ignoring_poison(&self.remote.state)
            .open_posts
            .get(&self.number)?
            .waiting_ids
            .first()
            .cloned()
    }

    /// The agent of the request; `None` if the request was cancelled.
    pub(super) fn agent(&self) -> Option<Agent> {
        let state = lock_ignoring_poison(&self.remote.state);
        let flying = state.open_posts.get(&self.number)?;
        (!flying.is_cancelled).then(|| flying.agent.clone())
    }

    /// The session id for a line.
    fn session(&self, outgoing: &OutgoingLine) -> Option<String> {
        let has_no_session =
            outgoing.kind == OutgoingKind::Initialize || outgoing.stateless.is_some();
        if has_no_session { None } else { lock_ignoring_poison(&self.remote.state).session.clone() }
    }

    /// The protocol version for a line; `None` while it is negotiated.
    fn version(&self, outgoing: &OutgoingLine) -> Option<String> {
        match outgoing.kind {
            OutgoingKind::Initialize => None,
            _ => outgoing
                .stateless
                .clone()
                .or_else(|| lock_ignoring_poison(&self.shared.protocol_version).clone()),
        }
    }

    fn begin_session(&self, response: &Response<Body>) {
        let named = response.headers().get("mcp-session-id");
        let session = named.and_then(|value| value.to_str().ok()).map(str::to_owned);
        self.remote.lock().session = session;
    }
}

/// A request body that records whether any of it was read for sending.
struct SentBody<'a> {
    rest: &'a [u8],
    is_started: bool,
}

impl Read for SentBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_started = true;
        self.rest.read(buffer)
    }
}

/// The media type of a response.
pub(super) fn media_type(response: &Response<Body>) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = value.unwrap_or_default().split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}

/// Removes the line breaks of a message. In JSON, they can only be between values, where a space is
/// equivalent.
fn join_lines(mut message: Vec<u8>) -> Vec<u8> {
    let breaks = |byte: &u8| matches!(byte, b'\n' | b'\r');
    message.truncate(message.iter().rposition(|byte| !breaks(byte)).map_or(0, |last| last + 1));
    if message.iter().any(breaks)
        && serde_json::from_slice::<serde::de::IgnoredAny>(&message).is_ok()
    {
        message.iter_mut().filter(|byte| breaks(byte)).for_each(|byte| *byte = b' ');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_message_is_put_on_one_line_and_not_changed_otherwise() {
        let line = |text: &str| String::from_utf8(join_lines(text.as_bytes().to_vec())).unwrap();
        assert_eq!(line("{\r\n \"a\":1.0,\n\"b\":\"\\n\"}"), "{   \"a\":1.0, \"b\":\"\\n\"}");
        assert_eq!(line("{ }\r\n"), "{ }");
        assert_eq!(line("{\"a\":\"\n\"}"), "{\"a\":\"\n\"}", "this is not JSON");
    }
}
