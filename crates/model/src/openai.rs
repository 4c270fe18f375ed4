//! The `OpenAI` Responses API.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer_draft::{AnswerDraft, AnswerError, PositionedPart, parts_in_order};
use crate::conversation::{
    AnswerEnd, ConversationMessage, DeltaReceiver, ModelReply, ModelRequest, TokenUsage,
    ToolDeclaration,
};
use crate::fields::{list_field, number_at, set_field, text_at, text_field};
use crate::http_model::{AnswerReader, ProviderApi};
use crate::model_spec::{Provider, RemoteModelSpec};
use crate::provider_schema::{closed_schema, is_strict};

const PROVIDER_NAME: &str = Provider::OpenAi.as_str();

/// Models without reasoning, which refuse a request for encrypted reasoning content.
const MODELS_WITHOUT_REASONING: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-4"];

pub(crate) struct ResponsesApi;

impl ProviderApi for ResponsesApi {
    fn path(&self, _: &RemoteModelSpec) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, spec: &RemoteModelSpec, request: &ModelRequest) -> Value {
        let mut body = json!({
            "model": spec.name,
            "stream": true,
            // The provider stores no conversation, so encrypted thoughts must be sent back.
            "store": false,
            "input": request.messages.iter().flat_map(items).collect::<Vec<_>>(),
        });
        let name = spec.name.strip_prefix("ft:").unwrap_or(&spec.name);
        if !MODELS_WITHOUT_REASONING.iter().any(|start| name.starts_with(start)) {
            set_field(&mut body, "include", json!(["reasoning.encrypted_content"]));
        }
        if !request.system.is_empty() {
            set_field(&mut body, "instructions", json!(request.system));
        }
        if request.output_tokens_max > 0 {
            set_field(&mut body, "max_output_tokens", json!(request.output_tokens_max));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &ToolDeclaration| {
                let mut tool = function_declaration(tool);
                set_field(&mut tool, "type", json!("function"));
                set_field(&mut tool, "strict", json!(false));
                tool
            };
            set_field(&mut body, "tools", request.tools.iter().map(tool).collect());
        }
        if let Some(output) = &request.output {
            let mut format = output_schema(&output.name, &output.schema);
            set_field(&mut format, "type", json!("json_schema"));
            set_field(&mut body, "text", json!({ "format": format }));
        }
        body
    }

    fn answer_reader(&self) -> Box<dyn AnswerReader> {
        Box::<ResponsesReader>::default()
    }
}

pub(crate) fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
}

/// The declaration of a tool, as far as both `OpenAI` APIs agree.
pub(crate) fn function_declaration(tool: &ToolDeclaration) -> Value {
    let (name, description) = (&tool.name, &tool.description);
    json!({ "name": name, "description": description, "parameters": tool.schema })
}

/// The output schema, as far as both APIs agree. A schema that can't be strict is still sent.
pub(crate) fn output_schema(name: &str, schema: &Value) -> Value {
    let closed = closed_schema(schema);
    if is_strict(&closed) {
        return json!({ "name": name, "strict": true, "schema": closed });
    }
    json!({ "name": name, "strict": false, "schema": schema })
}

/// Converts a message to input items.
fn items(message: &ConversationMessage) -> Vec<Value> {
    let message_item = |role: &str, kind: &str, text: &str| {
        let content = json!([{ "type": kind, "text": text }]);
        json!({ "type": "message", "role": role, "content": content })
    };
    match message {
        ConversationMessage::User(text) => vec![message_item("user", "input_text", text)],
        ConversationMessage::Results(results) => {
            let item = |result: &crate::ToolCallResult| {
                let (call, output) = (&result.call, &result.text);
                json!({ "type": "function_call_output", "call_id": call, "output": output })
            };
            results.iter().map(item).collect()
        }
        ConversationMessage::Assistant(answer) => {
            let item = |part| match part {
                PositionedPart::Text("", _) => None,
                PositionedPart::Text(text, _) => {
                    Some(message_item("assistant", "output_text", text))
                }
                PositionedPart::Call(call, _) => Some(json!({
                    "type": "function_call", "call_id": call.id, "name": call.name,
                    "arguments": call.arguments,
                })),
                PositionedPart::ProviderData(own) => Some(own),
            };
            parts_in_order(answer, PROVIDER_NAME).into_iter().filter_map(item).collect()
        }
    }
}

#[derive(Default)]
struct ResponsesReader {
    draft: AnswerDraft,
    /// The numbers of the calls, by output index.
    calls: BTreeMap<u64, usize>,
    is_complete: bool,
}

impl ResponsesReader {
    /// Handles a complete item.
    fn finish_item(&mut self, item: &Value) {
        // The provider accepts a thought only with its encrypted content.
        if text_field(item, "type") == "reasoning"
            && !text_field(item, "encrypted_content").is_empty()
        {
            let mut own = json!({ "type": "reasoning", "id": text_field(item, "id") });
            set_field(
                &mut own,
                "summary",
                item.get("summary").cloned().unwrap_or_else(|| json!([])),
            );
            set_field(&mut own, "encrypted_content", json!(text_field(item, "encrypted_content")));
            self.draft.add_provider_data(own);
        }
    }

    fn start_call(
        &mut self,
        item: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<usize, AnswerError> {
        let number = self.draft.start_call(
            text_field(item, "call_id"),
            text_field(item, "name"),
            None,
            hear,
        )?;
        self.draft.add_arguments(number, text_field(item, "arguments"), hear)?;
        Ok(number)
    }

    /// Handles the end of a call. Some servers send the arguments only here.
    fn finish_call(
        &mut self,
        event: &Value,
        arguments: &str,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        let Some(number) = self.calls.get(&output_index(event)).copied() else { return Ok(()) };
        let has_arguments =
            self.draft.calls().get(number).is_some_and(|call| !call.arguments.is_empty());
        if has_arguments { Ok(()) } else { self.draft.add_arguments(number, arguments, hear) }
    }

    /// Reads the fields of the complete response.
    fn finish_response(&mut self, response: &Value) {
        self.draft.id = text_at(response, "/id").or(self.draft.id.take());
        let reason = text_at(response, "/incomplete_details/reason");
        let refused = self.draft.end == Some(AnswerEnd::Refusal);
        self.draft.end = Some(match reason.as_deref() {
            Some("content_filter") => AnswerEnd::Refusal,
            Some(_) => AnswerEnd::Length,
            None if refused => AnswerEnd::Refusal,
            None => AnswerEnd::Turn,
        });
        if let Some(input) = number_at(response, "/usage/input_tokens") {
            let cached = number_at(response, "/usage/input_tokens_details/cached_tokens");
            let output = number_at(response, "/usage/output_tokens");
            self.draft.usage = Some(token_usage(input, cached, output));
        }
        self.is_complete = true;
    }
}

/// Both APIs count cached tokens as input tokens.
pub(crate) fn token_usage(input: u64, cached: Option<u64>, output: Option<u64>) -> TokenUsage {
    let cache_read = cached.unwrap_or_default();
    TokenUsage {
        input: input.saturating_sub(cache_read),
        cache_read,
        cache_creation: 0,
        output: output.unwrap_or_default(),
    }
}

impl AnswerReader for ResponsesReader {
    fn event(&mut self, event: &Value, hear: &mut DeltaReceiver<'_>) -> Result<(), AnswerError> {
        let null = Value::Null;
        let response = event.get("response").unwrap_or(&null);
        let item = event.get("item").unwrap_or(&null);
        match text_field(event, "type") {
            "response.created" => self.draft.id = text_at(response, "/id"),
            "response.output_item.added" if text_field(item, "type") == "function_call" => {
                let number = self.start_call(item, hear)?;
                self.calls.insert(output_index(event), number);
            }
            "response.output_item.done" => {
                self.finish_call(event, text_field(item, "arguments"), hear)?;
                self.finish_item(item);
            }
            "response.output_text.delta" => {
                self.draft.add_text(text_field(event, "delta"), hear)?;
            }
            "response.refusal.delta" => {
                self.draft.end = Some(AnswerEnd::Refusal);
                self.draft.add_text(text_field(event, "delta"), hear)?;
            }
            "response.function_call_arguments.delta" => {
                if let Some(number) = self.calls.get(&output_index(event)) {
                    self.draft.add_arguments(*number, text_field(event, "delta"), hear)?;
                }
            }
            "response.function_call_arguments.done" => {
                self.finish_call(event, text_field(event, "arguments"), hear)?;
            }
            "response.completed" | "response.incomplete" => self.finish_response(response),
            "response.failed" => return Err(AnswerError::Reported(response.clone())),
            _ => {}
        }
        Ok(())
    }

    fn complete_answer(
        &mut self,
        answer: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        if !answer.get("output").is_some_and(Value::is_array) {
            return Err(AnswerError::Invalid("`output` is missing in the answer".to_owned()));
        }
        for item in list_field(answer, "output") {
            match text_field(item, "type") {
                "function_call" => {
                    self.start_call(item, hear)?;
                }
                "message" => {
                    for part in list_field(item, "content") {
                        if text_field(part, "type") == "refusal" {
                            self.draft.end = Some(AnswerEnd::Refusal);
                        }
                        self.draft.add_text(text_field(part, "text"), hear)?;
                        self.draft.add_text(text_field(part, "refusal"), hear)?;
                    }
                }
                _ => self.finish_item(item),
            }
        }
        self.finish_response(answer);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn into_reply(self: Box<Self>) -> Option<ModelReply> {
        if self.is_complete { self.draft.into_reply(PROVIDER_NAME) } else { None }
    }
}

fn output_index(event: &Value) -> u64 {
    number_at(event, "/output_index").unwrap_or_default()
}
