//! One line of the client, posted, and what comes back.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::http::Response;
use ureq::http::header::{CONTENT_TYPE, LOCATION};
use ureq::{Agent, Body, SendBody};

use super::Remote;
use super::listener::listen;
use super::outgoing::{Kind, Outgoing};
use crate::wrap::errors::Failure;
use crate::wrap::lines::LINE_BYTES_MAX;
use crate::wrap::message::{Id, Line};
use crate::wrap::server::lock;
use crate::wrap::shared::{Job, Shared, shown};
use crate::wrap::to_client;

/// How long a line that takes no answer may be on its way.
const UNANSWERED: Duration = Duration::from_secs(10);

/// How much is read of an answer that only says what went wrong.
const COMPLAINT_BYTES_MAX: u64 = 64 << 10;

/// A request under way.
pub(super) struct Flight<'a> {
    pub(super) remote: &'a Arc<Remote>,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) number: u64,
}

impl Flight<'_> {
    /// Posts a line, and hears what comes back.
    pub(super) fn fly(&self, outgoing: &Outgoing) {
        let failure = self.post(outgoing).err();
        self.remote.land(self.shared, self.number, failure);
    }

    fn post(&self, outgoing: &Outgoing) -> Result<(), Failure> {
        let Some(agent) = self.agent() else { return Ok(()) };
        let session = self.session(outgoing);
        let request = agent.post(&self.remote.address.uri);
        let most = outgoing.asked.is_empty().then_some(UNANSWERED);
        let request = request.config().timeout_global(most).build();
        let version = self.version(outgoing);
        let mut request = self
            .remote
            .headed(request, session.as_deref(), version.as_deref())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("content-length", outgoing.body.len());
        for (name, value) in &outgoing.mirrored {
            request = request.header(name, value);
        }
        let mut body = Watched { rest: &outgoing.body, begun: false };
        let response = request.send(SendBody::from_reader(&mut body));
        let response = response.map_err(|error| self.remote.trouble(&error, body.begun))?;
        if outgoing.kind == Kind::Initialize && response.status().is_success() {
            self.begin_session(&response);
        }
        self.remote.lock().pass(self.number);
        if outgoing.asked.is_empty() {
            self.accepted(outgoing, session.as_deref(), response)
        } else {
            self.receive(outgoing, session.as_deref(), response)
        }
    }

    /// What a line was taken for that nobody waits for.
    fn accepted(
        &self,
        outgoing: &Outgoing,
        session: Option<&str>,
        response: Response<Body>,
    ) -> Result<(), Failure> {
        if !response.status().is_success() {
            return self.refused(session, response);
        }
        if outgoing.kind == Kind::Initialized && outgoing.stateless.is_none() {
            listen(self.remote, self.shared);
        }
        Ok(())
    }

    /// What a request was answered with.
    fn receive(
        &self,
        outgoing: &Outgoing,
        session: Option<&str>,
        response: Response<Body>,
    ) -> Result<(), Failure> {
        let status = response.status();
        if !status.is_success() {
            return self.refused(session, response);
        }
        match media(&response).as_str() {
            "text/event-stream" => {
                let resumes = outgoing.stateless.is_none();
                self.follow(response.into_body(), session, resumes)
            }
            "application/json" => self.whole(response.into_body()),
            // The answer comes by another stream, or is too late.
            "" if matches!(status.as_u16(), 202 | 204) => Ok(()),
            "" => {
                let (address, media) = (self.remote.address.to_string(), "nothing".to_owned());
                Err(Failure::NoMcp { address, media })
            }
            media => {
                let (address, media) = (self.remote.address.to_string(), shown(media.as_bytes()));
                Err(Failure::NoMcp { address, media })
            }
        }
    }

    /// The answer is one message.
    fn whole(&self, body: Body) -> Result<(), Failure> {
        let length = body.content_length();
        let most = LINE_BYTES_MAX as u64;
        let mut bytes = Vec::new();
        let read = body.into_reader().take(most + 1).read_to_end(&mut bytes);
        if bytes.len() > LINE_BYTES_MAX {
            let bytes = length.and_then(|length| length.try_into().ok()).unwrap_or(bytes.len());
            return Err(Failure::TooLong { bytes });
        }
        read.map_err(|error| self.remote.cut(&error.to_string()))?;
        if self.heard(bytes) { Ok(()) } else { Err(Failure::Unreadable) }
    }

    /// The server said something. Says whether it has answered what it was asked.
    pub(super) fn heard(&self, message: Vec<u8>) -> bool {
        let answered = to_client::line(self.shared, one_line(message));
        // The reader may sleep for long.
        self.shared.tidy();
        self.answered(&answered)
    }

    /// Somebody does not wait any more. Says whether nobody does.
    pub(super) fn answered(&self, ids: &[Id]) -> bool {
        let mut state = lock(&self.remote.state);
        state.flying.get_mut(&self.number).is_none_or(|flying| {
            flying.asked.retain(|id| !ids.contains(id));
            flying.asked.is_empty()
        })
    }

    /// The server wants nothing of it.
    fn refused(&self, session: Option<&str>, response: Response<Body>) -> Result<(), Failure> {
        let status = response.status().as_u16();
        if status == 404 && self.has_expired(session) {
            return Ok(());
        }
        let address = self.remote.address.to_string();
        if response.status().is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.map(|to| to.split(['?', '#']).next().unwrap_or_default());
            let to = self.remote.address.conceal(&shown(to.unwrap_or_default().as_bytes()));
            return Err(Failure::Moved { address, to });
        }
        let readable = matches!(media(&response).as_str(), "application/json" | "text/plain");
        let mut said = Vec::new();
        let body = response.into_body().into_reader();
        let read = body.take(COMPLAINT_BYTES_MAX).read_to_end(&mut said);
        if read.is_ok() && self.answers(&said) {
            self.heard(said);
            return Ok(());
        }
        let said =
            if readable { self.remote.address.conceal(&shown(&said)) } else { String::new() };
        Err(Failure::Http { address, status, said })
    }

    /// Whether this is the answer to what was asked.
    fn answers(&self, said: &[u8]) -> bool {
        let line = std::str::from_utf8(said).ok().and_then(Line::parse);
        let state = lock(&self.remote.state);
        let Some(flying) = state.flying.get(&self.number) else { return false };
        let answers = |id: Option<Id>| id.is_some_and(|id| flying.asked.contains(&id));
        line.is_some_and(|line| line.messages.iter().any(|(_, one)| answers(one.answers())))
    }

    /// The server does not know a session any more, and nobody can begin another one but
    /// the client. Says whether everybody is told.
    pub(super) fn has_expired(&self, session: Option<&str>) -> bool {
        let mut state = self.remote.lock();
        if session.is_none() || state.session.as_deref().is_some_and(|now| Some(now) != session) {
            return false;
        }
        if state.session.take().is_some() {
            drop(state);
            let how = "its session has expired (HTTP status 404)";
            self.shared.send(Job::Lost(how.to_owned()));
        }
        true
    }

    /// Whether somebody waits for an answer.
    pub(super) fn asks(&self) -> bool {
        !self.answered(&[])
    }

    /// Who has waited longest.
    pub(super) fn oldest(&self) -> Option<Id> {
        lock(&self.remote.state).flying.get(&self.number)?.asked.first().cloned()
    }

    /// Who asks; nobody where it was called back.
    pub(super) fn agent(&self) -> Option<Agent> {
        let state = lock(&self.remote.state);
        let flying = state.flying.get(&self.number)?;
        (!flying.called_back).then(|| flying.agent.clone())
    }

    /// The session that a line belongs to.
    fn session(&self, outgoing: &Outgoing) -> Option<String> {
        let none = outgoing.kind == Kind::Initialize || outgoing.stateless.is_some();
        if none { None } else { lock(&self.remote.state).session.clone() }
    }

    /// The version that a line is written in; none as long as it is being agreed on.
    fn version(&self, outgoing: &Outgoing) -> Option<String> {
        match outgoing.kind {
            Kind::Initialize => None,
            _ => outgoing.stateless.clone().or_else(|| lock(&self.shared.agreed).clone()),
        }
    }

    fn begin_session(&self, response: &Response<Body>) {
        let named = response.headers().get("mcp-session-id");
        let session = named.and_then(|value| value.to_str().ok()).map(str::to_owned);
        self.remote.lock().session = session;
    }
}

/// A body that knows whether anything of it was sent.
struct Watched<'a> {
    rest: &'a [u8],
    begun: bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.begun = true;
        self.rest.read(buffer)
    }
}

/// What kind of thing a response is.
pub(super) fn media(response: &Response<Body>) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = value.unwrap_or_default().split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}

/// A message without newlines. Where it is JSON, they are between its values, and a
/// space says as much.
fn one_line(mut message: Vec<u8>) -> Vec<u8> {
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
    fn a_message_of_many_lines_is_one_line_and_nothing_else_of_it_changes() {
        let line = |text: &str| String::from_utf8(one_line(text.as_bytes().to_vec())).unwrap();
        assert_eq!(line("{\r\n \"a\":1.0,\n\"b\":\"\\n\"}"), "{   \"a\":1.0, \"b\":\"\\n\"}");
        assert_eq!(line("{ }\r\n"), "{ }");
        assert_eq!(line("{\"a\":\"\n\"}"), "{\"a\":\"\n\"}", "this is no JSON");
    }
}
