//! Chat completions: `OpenAI`'s older wire, which every server for local models speaks.
//!
//! Servers differ in what they leave out, so little is relied on: an index, an id, the
//! last word `[DONE]` and the stream itself may be missing.

use serde_json::{Value, json};

use crate::ask::{End, Hearer, Message, Reply, Request, Tool};
use crate::draft::{Draft, Trouble, as_object};
use crate::fields::{list, number_at, set, text, text_at};
use crate::openai::{bearer, function, schema, usage};
use crate::remote::{Listen, Wire};
use crate::spec::{ModelSpec, Provider};

const OWN: &str = Provider::OpenAiChat.as_str();

/// Where a newer name for the limit of an answer is the only one that all models know.
const OPENAI_HOST: &str = "api.openai.com";

pub(crate) struct Completions;

impl Wire for Completions {
    fn path(&self, _: &ModelSpec) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, spec: &ModelSpec, request: &Request) -> Value {
        let system = (!request.system.is_empty()).then(|| said("system", &request.system));
        let messages = system.into_iter().chain(request.messages.iter().flat_map(messages));
        let mut body = json!({
            "model": spec.name,
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": messages.collect::<Vec<_>>(),
        });
        if request.output_tokens_max > 0 {
            let is_openai = spec.url().contains(OPENAI_HOST);
            let name = if is_openai { "max_completion_tokens" } else { "max_tokens" };
            set(&mut body, name, json!(request.output_tokens_max));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &Tool| json!({ "type": "function", "function": function(tool) });
            set(&mut body, "tools", request.tools.iter().map(tool).collect());
        }
        if let Some(output) = &request.output {
            let schema = schema(&output.name, &output.schema);
            set(
                &mut body,
                "response_format",
                json!({ "type": "json_schema", "json_schema": schema }),
            );
        }
        body
    }

    fn listen(&self) -> Box<dyn Listen> {
        Box::<Listener>::default()
    }
}

fn said(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn messages(message: &Message) -> Vec<Value> {
    match message {
        Message::User(text) => vec![said("user", text)],
        Message::Results(results) => {
            let result = |result: &crate::ToolResult| {
                let mut message = said("tool", &result.text);
                set(&mut message, "tool_call_id", json!(result.call));
                message
            };
            results.iter().map(result).collect()
        }
        Message::Assistant(answer) => {
            let mut message = said("assistant", &answer.text);
            let calls = answer.calls.iter().map(|call| {
                // Some servers read the arguments, and fail where they can't.
                let arguments = as_object(&call.arguments).to_string();
                let function = json!({ "name": call.name, "arguments": arguments });
                json!({ "id": call.id, "type": "function", "function": function })
            });
            if !answer.calls.is_empty() {
                set(&mut message, "tool_calls", calls.collect());
            }
            vec![message]
        }
    }
}

#[derive(Default)]
struct Listener {
    draft: Draft,
    /// The index that each call came with.
    indices: Vec<Option<u64>>,
    done: bool,
}

impl Listener {
    /// What a choice adds: a piece of it, or all.
    fn add(&mut self, said: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        match said.get("content") {
            Some(Value::String(more)) => self.draft.text(more, hear)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.draft.text(text(part, "text"), hear)?;
                }
            }
            _ => {}
        }
        if !text(said, "refusal").is_empty() {
            self.draft.end = Some(End::Refusal);
            self.draft.text(text(said, "refusal"), hear)?;
        }
        for call in list(said, "tool_calls") {
            let number = self.number(call, hear)?;
            match call.pointer("/function/arguments") {
                Some(Value::String(more)) => self.draft.arguments(number, more, hear)?,
                Some(object @ Value::Object(_)) => {
                    self.draft.arguments(number, &object.to_string(), hear)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Which call is meant; a new one begins where none is.
    fn number(&mut self, call: &Value, hear: &mut Hearer<'_>) -> Result<usize, Trouble> {
        let (id, index) = (text(call, "id"), number_at(call, "/index"));
        let calls = self.draft.calls();
        let of_index = self.indices.iter().rposition(|it| index.is_some() && *it == index);
        let last = calls.len().checked_sub(1);
        let found = match (of_index, last) {
            (Some(number), _) => Some(number),
            (None, Some(last)) if index.is_none() && id.is_empty() => Some(last),
            _ => None,
        };
        // Two calls with one index differ by their ids.
        let is_it = |number: &usize| {
            calls
                .get(*number)
                .is_some_and(|known| id.is_empty() || known.id.is_empty() || known.id == id)
        };
        match found.filter(is_it) {
            Some(number) => Ok(number),
            None => {
                let name = text_at(call, "/function/name").unwrap_or_default();
                self.indices.push(index);
                self.draft.call(id, &name, None, hear)
            }
        }
    }

    /// Whatever is told with pieces and with whole answers alike.
    fn note(&mut self, said: &Value) {
        self.draft.id = self.draft.id.take().or_else(|| text_at(said, "/id"));
        if let Some(input) = number_at(said, "/usage/prompt_tokens") {
            let cached = number_at(said, "/usage/prompt_tokens_details/cached_tokens");
            let cached = cached.or_else(|| number_at(said, "/usage/prompt_cache_hit_tokens"));
            let output = number_at(said, "/usage/completion_tokens");
            self.draft.usage = Some(usage(input, cached, output));
        }
        let refused = self.draft.end == Some(End::Refusal);
        let reason = text_at(said, "/choices/0/finish_reason");
        self.draft.end = match reason.as_deref() {
            None => self.draft.end,
            Some(_) if refused => Some(End::Refusal),
            Some("length") => Some(End::Length),
            Some("content_filter") => Some(End::Refusal),
            Some(_) => Some(End::Turn),
        };
    }
}

impl Listen for Listener {
    fn event(&mut self, event: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        if let Some(delta) = event.pointer("/choices/0/delta") {
            self.add(delta, hear)?;
        }
        self.note(event);
        Ok(())
    }

    fn whole(&mut self, answer: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        let Some(message) = answer.pointer("/choices/0/message") else {
            return Err(Trouble::Bad("the answer has no `choices`".to_owned()));
        };
        self.add(message, hear)?;
        self.note(answer);
        self.draft.end = self.draft.end.or(Some(End::Turn));
        Ok(())
    }

    fn done(&mut self) {
        self.done = true;
        // A server that says so, and never why.
        self.draft.end = self.draft.end.or(Some(End::Turn));
    }

    fn is_over(&self) -> bool {
        self.done
    }

    fn reply(self: Box<Self>) -> Option<Reply> {
        self.draft.reply(OWN)
    }
}
