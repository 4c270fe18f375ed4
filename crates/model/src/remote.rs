//! A model that is asked over HTTP: what all providers have in common.

use jackline_http::{OverlongEvent, SseData, SseParser};
use serde_json::Value;
use ureq::Agent;

use crate::ask::{Delta, Hearer, Model, Reply, Request};
use crate::draft::Trouble;
use crate::error::{ErrorKind, ModelError};
use crate::http::{Exchange, Head, Post, agent, half};
use crate::refusal::{Complaint, looks_like_html, shortened, wait};
use crate::spec::{Key, ModelSpec};

/// How much of a refusal is read, and how much of an answer.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// How long one event of an answer may be.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// How long the message of an error may be, and what a server says in it.
const MESSAGE_CHARS_MAX: usize = 400;
const REASON_CHARS_MAX: usize = 240;

/// How one provider is spoken to.
pub(crate) trait Wire: Send {
    /// Where it is asked, behind the URL.
    fn path(&self, spec: &ModelSpec) -> String;

    /// What it wants to see besides, the key among it.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// What it is asked.
    fn body(&self, spec: &ModelSpec, request: &Request) -> Value;

    /// Somebody who understands the answer.
    fn listen(&self) -> Box<dyn Listen>;
}

/// Understands one answer of a provider.
pub(crate) trait Listen {
    /// An event of a stream.
    fn event(&mut self, data: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble>;

    /// The whole answer at once: not every server streams.
    fn whole(&mut self, answer: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble>;

    /// The words `[DONE]`, which end some streams.
    fn done(&mut self) {}

    /// Whether nothing more is to come.
    fn is_over(&self) -> bool;

    /// The answer, if it has come to its end.
    fn reply(self: Box<Self>) -> Option<Reply>;
}

/// A model that is asked over HTTP.
pub(crate) struct Remote<W> {
    spec: ModelSpec,
    wire: W,
    /// Goes with a request that fails, so that nothing of it is left.
    agent: Option<Agent>,
}

impl<W: Wire> Remote<W> {
    pub(crate) fn new(spec: &ModelSpec, wire: W) -> Self {
        Self { spec: spec.clone(), wire, agent: None }
    }

    fn converse(&mut self, request: &Request, hear: &mut Hearer<'_>) -> Result<Reply, ModelError> {
        let Self { spec, wire, agent: kept } = self;
        let key = spec.key.as_ref().map(Key::reveal).filter(|key| !key.is_empty());
        let mut headers = wire.headers(key);
        headers.push(("accept", "text/event-stream, application/json".to_owned()));
        let post = Post {
            url: format!("{}{}", spec.url(), wire.path(spec)),
            headers,
            body: wire.body(spec, request).to_string(),
        };
        let agent = kept.get_or_insert_with(|| agent(spec));
        let (exchange, head) = Exchange::start(agent, post, hear)?;
        if !(200..300).contains(&head.status) {
            return Err(self.refused(&exchange, &head, hear));
        }
        let mut answer = Answer { listen: self.wire.listen(), form: Form::of(&head), bytes: 0 };
        while let Some(bytes) = exchange.more(hear)? {
            answer.take(&bytes, hear)?;
            if answer.listen.is_over() {
                exchange.part();
                break;
            }
        }
        let mut reply = answer.end(hear)?;
        let named = ["request-id", "x-request-id"].iter().find_map(|name| head.get(name));
        reply.request = named.map(str::to_owned).or(reply.request);
        Ok(reply)
    }

    /// What an answer with another status means.
    fn refused(&self, exchange: &Exchange, head: &Head, hear: &mut Hearer<'_>) -> ModelError {
        let mut body = Vec::new();
        while body.len() < REFUSAL_BYTES_MAX {
            match exchange.more(hear) {
                Ok(Some(bytes)) => body.extend(bytes),
                Err(error) if error.kind == ErrorKind::Cancelled => return error,
                // What came of it has to do.
                Ok(None) | Err(_) => break,
            }
        }
        let complaint = Complaint::of_bytes(&body);
        let (status, provider) = (head.status, self.spec.provider);
        let kind = complaint.kind(Some(status));
        let mut message = format!("`{provider}` answered with status {status}");
        // It is shortened last: half a key is a part of one.
        let said = shortened(&self.conceal(&complaint.line()), REASON_CHARS_MAX);
        if !said.is_empty() {
            message = format!("{message}: {said}");
        }
        let next = match kind {
            ErrorKind::Auth => match provider.default_key_env() {
                Some(variable) => format!("; check {variable}"),
                None => "; check the key".to_owned(),
            },
            ErrorKind::UnknownModel => format!("; check the model's name, `{}`", self.spec.name),
            _ if (300..400).contains(&status) => {
                let to = head.get("location").and_then(|to| to.split(['?', '#']).next());
                format!("; it moved to `{}`, set the URL", to.unwrap_or("nowhere"))
            }
            _ if status == 404 => format!("; check the URL, `{}`", self.spec.url()),
            _ => String::new(),
        };
        let retry_after = wait(head, &complaint);
        ModelError { kind, message: format!("{message}{next}"), status: Some(status), retry_after }
    }

    fn conceal(&self, text: &str) -> String {
        self.spec.key.as_ref().map_or_else(|| text.to_owned(), |key| key.conceal(text))
    }
}

impl<W: Wire> Model for Remote<W> {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn ask(&mut self, request: &Request, hear: &mut Hearer<'_>) -> Result<Reply, ModelError> {
        self.converse(request, hear).map_err(|error| {
            if let Some(agent) = self.agent.take() {
                agent.shutdown();
            }
            let message = shortened(&self.conceal(&error.message), MESSAGE_CHARS_MAX);
            ModelError { message, ..error }
        })
    }
}

/// An answer under way.
struct Answer {
    listen: Box<dyn Listen>,
    form: Form,
    bytes: usize,
}

/// How an answer comes.
enum Form {
    /// Nobody knows before the first byte.
    Unknown,
    Events(SseParser),
    Whole(Vec<u8>),
}

impl Form {
    fn of(head: &Head) -> Self {
        let media = head.get("content-type").unwrap_or_default().to_ascii_lowercase();
        if media.starts_with("text/event-stream") {
            Self::events()
        } else if media.starts_with("application/json") || media.starts_with("text/html") {
            Self::Whole(Vec::new())
        } else {
            Self::Unknown
        }
    }

    fn events() -> Self {
        Self::Events(SseParser::new(EVENT_BYTES_MAX, OverlongEvent::Reject))
    }
}

impl Answer {
    fn take(&mut self, bytes: &[u8], hear: &mut Hearer<'_>) -> Result<(), ModelError> {
        self.bytes += bytes.len();
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(bad("the answer is longer than any can be"));
        }
        if let (Form::Unknown, Some(first)) = (&self.form, bytes.trim_ascii_start().first()) {
            self.form = match first {
                b'{' | b'[' | b'<' => Form::Whole(Vec::new()),
                _ => Form::events(),
            };
        }
        let mut told = false;
        match &mut self.form {
            Form::Unknown => {}
            Form::Whole(whole) => whole.extend_from_slice(bytes),
            Form::Events(parser) => {
                let mut events = Vec::new();
                let fed = parser.feed(bytes, &mut events);
                let hear: &mut Hearer<'_> = &mut |delta| {
                    told = true;
                    hear(delta)
                };
                // The names of events are not needed: every provider repeats them in the data.
                for event in events {
                    if let Some(SseData::Whole(data)) = event.data {
                        read_event(self.listen.as_mut(), &data, hear)?;
                    }
                }
                fed.map_err(|_| bad("an event of the answer is longer than any can be"))?;
            }
        }
        if !told && hear(Delta::Waiting).is_break() {
            return Err(ModelError::cancelled());
        }
        Ok(())
    }

    fn end(mut self, hear: &mut Hearer<'_>) -> Result<Reply, ModelError> {
        if let Form::Whole(whole) = &self.form {
            if looks_like_html(whole) {
                return Err(bad("the answer is a page of HTML; is the URL right?"));
            }
            if whole.trim_ascii().is_empty() {
                return Err(bad("the answer is empty"));
            }
            let answer: Value = serde_json::from_slice(whole).map_err(|error| {
                if error.is_eof() { half() } else { bad("the answer is no JSON") }
            })?;
            check(&answer)?;
            self.listen.whole(&answer, hear).map_err(failed)?;
        }
        if self.bytes == 0 {
            return Err(bad("the answer is empty"));
        }
        self.listen.reply().ok_or_else(half)
    }
}

/// Reads the data of one event.
fn read_event(
    listen: &mut dyn Listen,
    data: &[u8],
    hear: &mut Hearer<'_>,
) -> Result<(), ModelError> {
    match data.trim_ascii() {
        b"" => Ok(()),
        b"[DONE]" => {
            listen.done();
            Ok(())
        }
        json => {
            let data: Value = serde_json::from_slice(json)
                .map_err(|_| bad("an event of the answer is no JSON"))?;
            check(&data)?;
            listen.event(&data, hear).map_err(failed)
        }
    }
}

/// Whether a server says in its answer that it failed.
fn check(said: &Value) -> Result<(), ModelError> {
    let first = said.get(0).unwrap_or(said);
    let has_error = first.get("error").is_some_and(|error| !error.is_null());
    if has_error || first.get("type").and_then(Value::as_str) == Some("error") {
        return Err(failed(Trouble::Complaint(said.clone())));
    }
    Ok(())
}

fn failed(trouble: Trouble) -> ModelError {
    match trouble {
        Trouble::Cancelled => ModelError::cancelled(),
        Trouble::Bad(message) => ModelError::new(ErrorKind::BadAnswer, message),
        Trouble::Complaint(said) => {
            let complaint = Complaint::of(&said);
            let message = format!("the answer broke off with an error: {}", complaint.line());
            ModelError {
                retry_after: complaint.wait,
                ..ModelError::new(complaint.kind(None), message)
            }
        }
    }
}

fn bad(message: &str) -> ModelError {
    ModelError::new(ErrorKind::BadAnswer, message)
}
