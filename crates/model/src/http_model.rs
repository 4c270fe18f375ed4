//! A model that is reached over HTTP: the code that all providers share.

use jackline_http::{OverlongEvent, SseData, SseParser};
use serde_json::Value;
use ureq::Agent;

use crate::answer_draft::AnswerError;
use crate::conversation::{AnswerDelta, DeltaReceiver, Model, ModelReply, ModelRequest};
use crate::error::{ModelError, ModelErrorKind};
use crate::http_exchange::{HttpExchange, HttpPost, ResponseHead, agent, incomplete_answer_error};
use crate::model_spec::{ApiKey, RemoteModelSpec};
use crate::provider_error::{ProviderErrorBody, looks_like_html, retry_delay, shorten};

/// The maximum size of an error response, and of an answer.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The maximum size of one event of a stream.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// The maximum length of an error message, and of the server's text in it.
const MESSAGE_CHARS_MAX: usize = 400;
const SERVER_TEXT_CHARS_MAX: usize = 240;

/// The API of one provider.
pub(crate) trait ProviderApi: Send {
    /// The path of the API, which is appended to the URL.
    fn path(&self, spec: &RemoteModelSpec) -> String;

    /// Additional headers, including the key.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// The body of a request.
    fn body(&self, spec: &RemoteModelSpec, request: &ModelRequest) -> Value;

    /// Creates the reader of an answer.
    fn answer_reader(&self) -> Box<dyn AnswerReader>;
}

/// Reads one answer of a provider.
pub(crate) trait AnswerReader {
    /// Handles an event of a stream.
    fn event(&mut self, data: &Value, hear: &mut DeltaReceiver<'_>) -> Result<(), AnswerError>;

    /// Handles a complete answer, because not every server streams.
    fn complete_answer(
        &mut self,
        answer: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError>;

    /// Handles the text `[DONE]`, which ends some streams.
    fn done(&mut self) {}

    /// Whether the answer is complete.
    fn is_complete(&self) -> bool;

    /// The answer, if it is complete.
    fn into_reply(self: Box<Self>) -> Option<ModelReply>;
}

/// A model that is reached over HTTP.
pub(crate) struct HttpModel<W> {
    spec: RemoteModelSpec,
    wire: W,
    /// The agent with its connections. It is dropped after a failure, to close them.
    agent: Option<Agent>,
}

impl<W: ProviderApi> HttpModel<W> {
    pub(crate) fn new(spec: &RemoteModelSpec, wire: W) -> Self {
        Self { spec: spec.clone(), wire, agent: None }
    }

    fn send_request(
        &mut self,
        request: &ModelRequest,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<ModelReply, ModelError> {
        let Self { spec, wire, agent: stored_agent } = self;
        let key = spec.key.as_ref().map(ApiKey::reveal).filter(|key| !key.is_empty());
        let mut headers = wire.headers(key);
        headers.push(("accept", "text/event-stream, application/json".to_owned()));
        let post = HttpPost {
            url: format!("{}{}", spec.url(), wire.path(spec)),
            headers,
            body: wire.body(spec, request).to_string(),
        };
        let agent = stored_agent.get_or_insert_with(|| agent(spec));
        let (exchange, head) = HttpExchange::start(agent, post, hear)?;
        if !(200..300).contains(&head.status) {
            return Err(self.error_from_response(&exchange, &head, hear));
        }
        let mut answer = ArrivingAnswer {
            reader: self.wire.answer_reader(),
            format: AnswerFormat::of(&head),
            bytes: 0,
        };
        while let Some(bytes) = exchange.next_bytes(hear)? {
            answer.feed(&bytes, hear)?;
            if answer.reader.is_complete() {
                exchange.drain();
                break;
            }
        }
        let mut reply = answer.finish(hear)?;
        let request_id = ["request-id", "x-request-id"].iter().find_map(|name| head.get(name));
        reply.request = request_id.map(str::to_owned).or(reply.request);
        Ok(reply)
    }

    /// The error for a response with an error status.
    fn error_from_response(
        &self,
        exchange: &HttpExchange,
        head: &ResponseHead,
        hear: &mut DeltaReceiver<'_>,
    ) -> ModelError {
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_BYTES_MAX {
            match exchange.next_bytes(hear) {
                Ok(Some(bytes)) => body.extend(bytes),
                Err(error) if error.kind == ModelErrorKind::Cancelled => return error,
                // The part that was read is sufficient.
                Ok(None) | Err(_) => break,
            }
        }
        let complaint = ProviderErrorBody::from_bytes(&body);
        let (status, provider) = (head.status, self.spec.provider);
        let kind = complaint.kind(Some(status));
        let mut message = format!("`{provider}` answered with HTTP status {status}");
        // Conceal the key before shortening: a part of a key is secret too.
        let detail = shorten(&self.conceal(&complaint.one_line_message()), SERVER_TEXT_CHARS_MAX);
        if !detail.is_empty() {
            message = format!("{message}: {detail}");
        }
        let next = match kind {
            ModelErrorKind::Auth => match provider.default_key_env() {
                Some(variable) => format!("; check {variable}"),
                None => "; check the key".to_owned(),
            },
            ModelErrorKind::UnknownModel => {
                format!("; check the model's name, `{}`", self.spec.name)
            }
            _ if (300..400).contains(&status) => {
                let to = head.get("location").and_then(|to| to.split(['?', '#']).next());
                format!(
                    "; the API has moved to `{}`, change the URL",
                    to.unwrap_or("an unknown address")
                )
            }
            _ if status == 404 => format!("; check the URL, `{}`", self.spec.url()),
            _ => String::new(),
        };
        let retry_after = retry_delay(head, &complaint);
        ModelError { kind, message: format!("{message}{next}"), status: Some(status), retry_after }
    }

    fn conceal(&self, text: &str) -> String {
        self.spec.key.as_ref().map_or_else(|| text.to_owned(), |key| key.remove_from(text))
    }
}

impl<W: ProviderApi> Model for HttpModel<W> {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn ask(
        &mut self,
        request: &ModelRequest,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.send_request(request, hear).map_err(|error| {
            if let Some(agent) = self.agent.take() {
                agent.shutdown();
            }
            let message = shorten(&self.conceal(&error.message), MESSAGE_CHARS_MAX);
            ModelError { message, ..error }
        })
    }
}

/// An answer while it arrives.
struct ArrivingAnswer {
    reader: Box<dyn AnswerReader>,
    format: AnswerFormat,
    bytes: usize,
}

/// The format of an answer.
enum AnswerFormat {
    /// The format is not known before the first byte.
    Unknown,
    Events(SseParser),
    Complete(Vec<u8>),
}

impl AnswerFormat {
    fn of(head: &ResponseHead) -> Self {
        let media = head.get("content-type").unwrap_or_default().to_ascii_lowercase();
        if media.starts_with("text/event-stream") {
            Self::events()
        } else if media.starts_with("application/json") || media.starts_with("text/html") {
            Self::Complete(Vec::new())
        } else {
            Self::Unknown
        }
    }

    fn events() -> Self {
        Self::Events(SseParser::new(EVENT_BYTES_MAX, OverlongEvent::Reject))
    }
}

impl ArrivingAnswer {
    fn feed(&mut self, bytes: &[u8], hear: &mut DeltaReceiver<'_>) -> Result<(), ModelError> {
        self.bytes += bytes.len();
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(bad_answer("the answer is longer than the limit of 64 MiB"));
        }
        if let (AnswerFormat::Unknown, Some(first)) =
            (&self.format, bytes.trim_ascii_start().first())
        {
            self.format = match first {
                b'{' | b'[' | b'<' => AnswerFormat::Complete(Vec::new()),
                _ => AnswerFormat::events(),
            };
        }
        let mut is_reported = false;
        match &mut self.format {
            AnswerFormat::Unknown => {}
            AnswerFormat::Complete(whole) => whole.extend_from_slice(bytes),
            AnswerFormat::Events(parser) => {
                let mut events = Vec::new();
                let fed = parser.feed(bytes, &mut events);
                let hear: &mut DeltaReceiver<'_> = &mut |delta| {
                    is_reported = true;
                    hear(delta)
                };
                // Event names are not needed, because every provider repeats them in the data.
                for event in events {
                    if let Some(SseData::Whole(data)) = event.data {
                        read_event(self.reader.as_mut(), &data, hear)?;
                    }
                }
                fed.map_err(|_| {
                    bad_answer("an event of the answer is longer than the limit of 8 MiB")
                })?;
            }
        }
        if !is_reported && hear(AnswerDelta::Waiting).is_break() {
            return Err(ModelError::cancelled());
        }
        Ok(())
    }

    fn finish(mut self, hear: &mut DeltaReceiver<'_>) -> Result<ModelReply, ModelError> {
        if let AnswerFormat::Complete(whole) = &self.format {
            if looks_like_html(whole) {
                return Err(bad_answer("the answer is an HTML page; check the URL"));
            }
            if whole.trim_ascii().is_empty() {
                return Err(bad_answer("the answer is empty"));
            }
            let answer: Value = serde_json::from_slice(whole).map_err(|error| {
                if error.is_eof() {
                    incomplete_answer_error()
                } else {
                    bad_answer("the answer is not JSON")
                }
            })?;
            fail_on_error(&answer)?;
            self.reader.complete_answer(&answer, hear).map_err(model_error)?;
        }
        if self.bytes == 0 {
            return Err(bad_answer("the answer is empty"));
        }
        self.reader.into_reply().ok_or_else(incomplete_answer_error)
    }
}

/// Reads the data of one event.
fn read_event(
    listen: &mut dyn AnswerReader,
    data: &[u8],
    hear: &mut DeltaReceiver<'_>,
) -> Result<(), ModelError> {
    match data.trim_ascii() {
        b"" => Ok(()),
        b"[DONE]" => {
            listen.done();
            Ok(())
        }
        json => {
            let data: Value = serde_json::from_slice(json)
                .map_err(|_| bad_answer("an event of the answer is not JSON"))?;
            fail_on_error(&data)?;
            listen.event(&data, hear).map_err(model_error)
        }
    }
}

/// Fails if the answer contains an error.
fn fail_on_error(answer: &Value) -> Result<(), ModelError> {
    let first = answer.get(0).unwrap_or(answer);
    let has_error = first.get("error").is_some_and(|error| !error.is_null());
    if has_error || first.get("type").and_then(Value::as_str) == Some("error") {
        return Err(model_error(AnswerError::Reported(answer.clone())));
    }
    Ok(())
}

fn model_error(trouble: AnswerError) -> ModelError {
    match trouble {
        AnswerError::Cancelled => ModelError::cancelled(),
        AnswerError::Invalid(message) => ModelError::new(ModelErrorKind::BadAnswer, message),
        AnswerError::Reported(body) => {
            let complaint = ProviderErrorBody::from_json(&body);
            let message =
                format!("the answer ended with an error: {}", complaint.one_line_message());
            ModelError {
                retry_after: complaint.retry_after,
                ..ModelError::new(complaint.kind(None), message)
            }
        }
    }
}

fn bad_answer(message: &str) -> ModelError {
    ModelError::new(ModelErrorKind::BadAnswer, message)
}
