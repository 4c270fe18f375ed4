//! The chat completions API: `OpenAI`'s older API, which every server for local models supports.
//!
//! Servers differ in what they omit, so this reader relies on little: an index, an id, the final
//! `[DONE]` and streaming itself may be missing.

use serde_json::{Value, json};

use crate::answer_draft::{AnswerDraft, AnswerError, arguments_as_object};
use crate::conversation::{
    AnswerEnd, ConversationMessage, DeltaReceiver, ModelReply, ModelRequest, ToolDeclaration,
};
use crate::fields::{list_field, number_at, set_field, text_at, text_field};
use crate::http_model::{AnswerReader, ProviderApi};
use crate::model_spec::{Provider, RemoteModelSpec};
use crate::openai::{bearer, function_declaration, output_schema, token_usage};

const PROVIDER_NAME: &str = Provider::OpenAiChat.as_str();

/// The host that accepts only the newer name of the output limit.
const OPENAI_HOST: &str = "api.openai.com";

pub(crate) struct ChatCompletionsApi;

impl ProviderApi for ChatCompletionsApi {
    fn path(&self, _: &RemoteModelSpec) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, spec: &RemoteModelSpec, request: &ModelRequest) -> Value {
        let system = (!request.system.is_empty()).then(|| role_message("system", &request.system));
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
            set_field(&mut body, name, json!(request.output_tokens_max));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &ToolDeclaration| json!({ "type": "function", "function": function_declaration(tool) });
            set_field(&mut body, "tools", request.tools.iter().map(tool).collect());
        }
        if let Some(output) = &request.output {
            let schema = output_schema(&output.name, &output.schema);
            set_field(
                &mut body,
                "response_format",
                json!({ "type": "json_schema", "json_schema": schema }),
            );
        }
        body
    }

    fn answer_reader(&self) -> Box<dyn AnswerReader> {
        Box::<ChatReader>::default()
    }
}

fn role_message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn messages(message: &ConversationMessage) -> Vec<Value> {
    match message {
        ConversationMessage::User(text) => vec![role_message("user", text)],
        ConversationMessage::Results(results) => {
            let result = |result: &crate::ToolCallResult| {
                let mut message = role_message("tool", &result.text);
                set_field(&mut message, "tool_call_id", json!(result.call));
                message
            };
            results.iter().map(result).collect()
        }
        ConversationMessage::Assistant(answer) => {
            let mut message = role_message("assistant", &answer.text);
            let calls = answer.calls.iter().map(|call| {
                // Some servers parse the arguments and fail if they are invalid.
                let arguments = arguments_as_object(&call.arguments).to_string();
                let function = json!({ "name": call.name, "arguments": arguments });
                json!({ "id": call.id, "type": "function", "function": function })
            });
            if !answer.calls.is_empty() {
                set_field(&mut message, "tool_calls", calls.collect());
            }
            vec![message]
        }
    }
}

#[derive(Default)]
struct ChatReader {
    draft: AnswerDraft,
    /// The index of each call.
    indices: Vec<Option<u64>>,
    done: bool,
}

impl ChatReader {
    /// Adds the content of a choice: a piece of it, or the complete message.
    fn add_content(
        &mut self,
        content: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        match content.get("content") {
            Some(Value::String(more)) => self.draft.add_text(more, hear)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.draft.add_text(text_field(part, "text"), hear)?;
                }
            }
            _ => {}
        }
        if !text_field(content, "refusal").is_empty() {
            self.draft.end = Some(AnswerEnd::Refusal);
            self.draft.add_text(text_field(content, "refusal"), hear)?;
        }
        for call in list_field(content, "tool_calls") {
            let number = self.find_or_start_call(call, hear)?;
            match call.pointer("/function/arguments") {
                Some(Value::String(more)) => self.draft.add_arguments(number, more, hear)?,
                Some(object @ Value::Object(_)) => {
                    self.draft.add_arguments(number, &object.to_string(), hear)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The number of the call that a piece belongs to. A new call starts if there is none.
    fn find_or_start_call(
        &mut self,
        call: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<usize, AnswerError> {
        let (id, index) = (text_field(call, "id"), number_at(call, "/index"));
        let calls = self.draft.calls();
        let of_index = self.indices.iter().rposition(|it| index.is_some() && *it == index);
        let last = calls.len().checked_sub(1);
        let number = match (of_index, last) {
            (Some(number), _) => Some(number),
            (None, Some(last)) if index.is_none() && id.is_empty() => Some(last),
            _ => None,
        };
        // Two calls with the same index differ by their ids.
        let is_same_call = |number: &usize| {
            calls.get(*number).is_some_and(|existing| {
                id.is_empty() || existing.id.is_empty() || existing.id == id
            })
        };
        match number.filter(is_same_call) {
            Some(number) => Ok(number),
            None => {
                let name = text_at(call, "/function/name").unwrap_or_default();
                self.indices.push(index);
                self.draft.start_call(id, &name, None, hear)
            }
        }
    }

    /// Reads the fields that pieces and complete answers have in common.
    fn read_common_fields(&mut self, answer: &Value) {
        self.draft.id = self.draft.id.take().or_else(|| text_at(answer, "/id"));
        if let Some(input) = number_at(answer, "/usage/prompt_tokens") {
            let cached = number_at(answer, "/usage/prompt_tokens_details/cached_tokens");
            let cached = cached.or_else(|| number_at(answer, "/usage/prompt_cache_hit_tokens"));
            let output = number_at(answer, "/usage/completion_tokens");
            self.draft.usage = Some(token_usage(input, cached, output));
        }
        let refused = self.draft.end == Some(AnswerEnd::Refusal);
        let reason = text_at(answer, "/choices/0/finish_reason");
        self.draft.end = match reason.as_deref() {
            None => self.draft.end,
            Some(_) if refused => Some(AnswerEnd::Refusal),
            Some("length") => Some(AnswerEnd::Length),
            Some("content_filter") => Some(AnswerEnd::Refusal),
            Some(_) => Some(AnswerEnd::Turn),
        };
    }
}

impl AnswerReader for ChatReader {
    fn event(&mut self, event: &Value, hear: &mut DeltaReceiver<'_>) -> Result<(), AnswerError> {
        if let Some(delta) = event.pointer("/choices/0/delta") {
            self.add_content(delta, hear)?;
        }
        self.read_common_fields(event);
        Ok(())
    }

    fn complete_answer(
        &mut self,
        answer: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        let Some(message) = answer.pointer("/choices/0/message") else {
            return Err(AnswerError::Invalid("`choices` is missing in the answer".to_owned()));
        };
        self.add_content(message, hear)?;
        self.read_common_fields(answer);
        self.draft.end = self.draft.end.or(Some(AnswerEnd::Turn));
        Ok(())
    }

    fn done(&mut self) {
        self.done = true;
        // The server sent `[DONE]` without a finish reason.
        self.draft.end = self.draft.end.or(Some(AnswerEnd::Turn));
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn into_reply(self: Box<Self>) -> Option<ModelReply> {
        self.draft.into_reply(PROVIDER_NAME)
    }
}
