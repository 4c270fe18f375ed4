//! One step in the words of each provider, at once or as a stream.

mod chat;
mod contents;
mod messages;
mod responses;

use serde_json::{Value, json};

use super::script::{Broken, Step, for_each_text};

/// What comes where an answer is expected.
const PAGE: &str = "<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>";

/// How much of the arguments of a call comes at once.
const PIECE_BYTES: usize = 64;

/// A text in pieces, as a stream brings it; one that is empty is a piece, too.
fn pieces(text: &str) -> Vec<&str> {
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

/// Whose words are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Messages,
    Responses,
    Chat,
    Contents,
}

/// An answer that is ready to be sent.
pub(super) enum Reply {
    Whole {
        status: u16,
        content_type: &'static str,
        body: Vec<u8>,
    },
    /// A part of an answer, and then the connection ends.
    Half {
        content_type: &'static str,
        body: Vec<u8>,
    },
    /// Nothing at all.
    Silence,
}

impl Reply {
    pub(super) fn json(status: u16, value: &Value) -> Self {
        let body = value.to_string().into_bytes();
        Self::Whole { status, content_type: "application/json", body }
    }
}

impl Wire {
    /// The wire that is spoken at a path without its query.
    pub(super) fn at(path: &str) -> Option<Self> {
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

    /// What a conversation begins with: its system text and its first message.
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

    /// Answers a request with a step. `id` differs from every other answer's.
    pub(super) fn reply(self, step: &Step, path: &str, body: &Value, id: &str) -> Reply {
        if let Some(status) = step.status {
            let message = if step.text.is_empty() { "the script says so" } else { &step.text };
            let mut said = self.error(status, message);
            let error = said.get_mut("error").and_then(Value::as_object_mut);
            if let (Some(wait), Some(error)) = (step.retry_after, error) {
                // Only one provider says it so; the others have headers for it.
                let delay = format!("{}.{:03}s", wait.as_secs(), wait.subsec_millis());
                error.insert("details".to_owned(), json!([{ "retryDelay": delay }]));
            }
            return Reply::json(status, &said);
        }
        match step.broken {
            Some(Broken::Nothing) => return Reply::Silence,
            Some(Broken::Html) => {
                let (content_type, body) = ("text/html", PAGE.as_bytes().to_vec());
                return Reply::Whole { status: 200, content_type, body };
            }
            _ => {}
        }
        let (content_type, body) = self.answer(step, path, body, id);
        if step.broken == Some(Broken::Half) {
            let half = body.get(..body.len() / 2).unwrap_or_default().to_vec();
            return Reply::Half { content_type, body: half };
        }
        Reply::Whole { status: 200, content_type, body }
    }

    fn answer(self, step: &Step, path: &str, body: &Value, id: &str) -> (&'static str, Vec<u8>) {
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
        let mut stream: String = events.iter().map(event).collect();
        if self == Self::Chat {
            stream.push_str("data: [DONE]\n\n");
        }
        ("text/event-stream", stream.into_bytes())
    }

    /// A failure, as the provider words it.
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

/// An event of a stream; what names itself is named.
fn event(data: &Value) -> String {
    match data.get("type").and_then(Value::as_str) {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_known_by_how_it_begins() {
        let parts = |text: &str| json!({ "parts": [{ "text": text }] });
        let said = |role: &str, text: &str| json!({ "role": role, "content": text });
        let [system, first, later] = ["you help", "go", "the agent SUB is done"];
        let block = json!([{ "type": "text", "text": system }]);
        let talk = [said("user", first), said("user", later)];
        let bodies = [
            (Wire::Messages, json!({ "system": block, "messages": talk })),
            (Wire::Responses, json!({ "instructions": system, "input": talk })),
            (
                Wire::Chat,
                json!({ "messages": [said("system", system), talk[0].clone(), talk[1].clone()] }),
            ),
            (
                Wire::Contents,
                json!({ "systemInstruction": parts(system), "contents": [parts(first), parts(later)] }),
            ),
        ];
        for (wire, body) in bodies {
            let texts: String = wire.opening(&body);
            let texts: Vec<&str> = texts.lines().filter(|line| *line != "text").collect();
            assert_eq!(texts, [system, first], "{wire:?}");
        }
        assert_eq!(Wire::Contents.opening(&Value::Null), "");
    }

    #[test]
    fn a_wire_is_known_by_its_path() {
        let gemini = "/v1beta/models/gemini-x:streamGenerateContent";
        let at = ["/v1/messages", "/v1/responses", "/v1/chat/completions", gemini].map(Wire::at);
        let all = [Wire::Messages, Wire::Responses, Wire::Chat, Wire::Contents];
        assert_eq!(at, all.map(Some));
        assert_eq!(["/v1/models", "/v1beta/models/x:countTokens", "/"].map(Wire::at), [None; 3]);
    }
}
