//! Renders a step in the format of each provider, as a complete answer or as a stream.

mod chat;
mod contents;
mod messages;
mod responses;

use serde_json::{Value, json};

use super::script::{AnswerDefect, ScriptStep, for_each_text};

/// The HTML page that is sent instead of an answer.
const HTML_PAGE: &str = "<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>";

/// How many bytes of the arguments of a call one piece has.
const PIECE_BYTES: usize = 64;

/// Splits a text into the pieces of a stream. An empty text is one empty piece.
fn split_in_pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    loop {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        pieces.push(piece);
        if after.is_empty() {
            return pieces;
        }
        rest = after;
    }
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptedApi {
    Messages,
    Responses,
    Chat,
    Contents,
}

/// A response that is ready to be sent.
pub(super) enum WireResponse {
    Complete {
        status: u16,
        content_type: &'static str,
        body: Vec<u8>,
    },
    /// An incomplete response, after which the connection closes.
    Incomplete {
        content_type: &'static str,
        body: Vec<u8>,
    },
    /// No response.
    Silence,
}

impl WireResponse {
    pub(super) fn json(status: u16, value: &Value) -> Self {
        let body = value.to_string().into_bytes();
        Self::Complete { status, content_type: "application/json", body }
    }
}

impl ScriptedApi {
    /// The API at a path without its query.
    pub(super) fn at_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Messages),
            "/v1/responses" => Some(Self::Responses),
            "/v1/chat/completions" => Some(Self::Chat),
            _ => {
                let call = path.strip_prefix("/v1beta/models/")?.split_once(':')?.1;
                matches!(call, "generateContent" | "streamGenerateContent")
                    .then_some(Self::Contents)
            }
        }
    }

    /// The start of a conversation: its system prompt and its first message.
    pub(super) fn opening(self, body: &Value) -> String {
        let places: &[&str] = match self {
            Self::Messages => &["/system", "/messages/0/content"],
            Self::Responses => &["/instructions", "/input/0/content"],
            Self::Chat => &["/messages/0/content", "/messages/1/content"],
            Self::Contents => &["/systemInstruction/parts", "/contents/0/parts"],
        };
        let mut text = String::new();
        for value in places.iter().filter_map(|place| body.pointer(place)) {
            for_each_text(value, &mut |part| {
                text.push_str(part);
                text.push('\n');
            });
        }
        text
    }

    /// Answers a request with a step. `id` is unique for each answer.
    pub(super) fn reply(
        self,
        step: &ScriptStep,
        path: &str,
        body: &Value,
        id: &str,
    ) -> WireResponse {
        if let Some(status) = step.status {
            let message = if step.text.is_empty() { "the script fails here" } else { &step.text };
            let mut error_body = self.error(status, message);
            let error = error_body.get_mut("error").and_then(Value::as_object_mut);
            if let (Some(wait), Some(error)) = (step.retry_after, error) {
                // Only one provider reports the delay in the body; the others use headers.
                let delay = format!("{}.{:03}s", wait.as_secs(), wait.subsec_millis());
                error.insert("details".to_owned(), json!([{ "retryDelay": delay }]));
            }
            return WireResponse::json(status, &error_body);
        }
        match step.broken {
            Some(AnswerDefect::Nothing) => return WireResponse::Silence,
            Some(AnswerDefect::Html) => {
                let (content_type, body) = ("text/html", HTML_PAGE.as_bytes().to_vec());
                return WireResponse::Complete { status: 200, content_type, body };
            }
            _ => {}
        }
        let (content_type, body) = self.answer(step, path, body, id);
        if step.broken == Some(AnswerDefect::Incomplete) {
            let half = body.get(..body.len() / 2).unwrap_or_default().to_vec();
            return WireResponse::Incomplete { content_type, body: half };
        }
        WireResponse::Complete { status: 200, content_type, body }
    }

    fn answer(
        self,
        step: &ScriptStep,
        path: &str,
        body: &Value,
        id: &str,
    ) -> (&'static str, Vec<u8>) {
        let streams = match self {
            Self::Contents => path.contains(":stream"),
            _ => body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        };
        let model = body.get("model").cloned().unwrap_or_else(|| "scripted".into());
        let whole = match self {
            Self::Messages => messages::message(step, &model, id),
            Self::Responses => responses::response(step, &model, id),
            Self::Chat => chat::completion(step, &model, id),
            Self::Contents => contents::content(step, id),
        };
        if !streams {
            return ("application/json", whole.to_string().into_bytes());
        }
        let events = match self {
            Self::Messages => messages::events(whole),
            Self::Responses => responses::events(&whole),
            Self::Chat => chat::events(&whole),
            Self::Contents => contents::events(&whole),
        };
        let mut stream: String = events.iter().map(render_event).collect();
        if self == Self::Chat {
            stream.push_str("data: [DONE]\n\n");
        }
        ("text/event-stream", stream.into_bytes())
    }

    /// An error in the provider's format.
    fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::Messages => {
                let kind = if status == 529 { "overloaded_error" } else { "api_error" };
                let error = json!({ "type": kind, "message": message });
                json!({ "type": "error", "error": error })
            }
            Self::Responses | Self::Chat => {
                let error = json!({ "message": message, "type": "scripted", "code": null });
                json!({ "error": error })
            }
            Self::Contents => {
                let error = json!({ "code": status, "message": message, "status": "SCRIPTED" });
                json!({ "error": error })
            }
        }
    }
}

/// An event of a stream, named if its data has a type.
fn render_event(data: &Value) -> String {
    match data.get("type").and_then(Value::as_str) {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_conversation_is_found_for_each_api() {
        let parts = |text: &str| json!({ "parts": [{ "text": text }] });
        let turn = |role: &str, text: &str| json!({ "role": role, "content": text });
        let [system, first, later] = ["you help", "go", "the agent SUB is done"];
        let block = json!([{ "type": "text", "text": system }]);
        let turns = [turn("user", first), turn("user", later)];
        let bodies = [
            (ScriptedApi::Messages, json!({ "system": block, "messages": turns })),
            (ScriptedApi::Responses, json!({ "instructions": system, "input": turns })),
            (
                ScriptedApi::Chat,
                json!({ "messages": [turn("system", system), turns[0].clone(), turns[1].clone()] }),
            ),
            (
                ScriptedApi::Contents,
                json!({ "systemInstruction": parts(system), "contents": [parts(first), parts(later)] }),
            ),
        ];
        for (wire, body) in bodies {
            let texts: String = wire.opening(&body);
            let texts: Vec<&str> = texts.lines().filter(|line| *line != "text").collect();
            assert_eq!(texts, [system, first], "{wire:?}");
        }
        assert_eq!(ScriptedApi::Contents.opening(&Value::Null), "");
    }

    #[test]
    fn an_api_is_recognised_by_its_path() {
        let gemini = "/v1beta/models/gemini-x:streamGenerateContent";
        let at = ["/v1/messages", "/v1/responses", "/v1/chat/completions", gemini]
            .map(ScriptedApi::at_path);
        let all = [
            ScriptedApi::Messages,
            ScriptedApi::Responses,
            ScriptedApi::Chat,
            ScriptedApi::Contents,
        ];
        assert_eq!(at, all.map(Some));
        assert_eq!(
            ["/v1/models", "/v1beta/models/x:countTokens", "/"].map(ScriptedApi::at_path),
            [None; 3]
        );
    }
}
