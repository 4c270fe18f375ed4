//! The Anthropic Messages API.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer_draft::{
    AnswerDraft, AnswerError, PositionedPart, arguments_as_object, merge_turns, parts_in_order,
};
use crate::conversation::{
    AnswerEnd, ConversationMessage, DeltaReceiver, ModelReply, ModelRequest, TokenUsage,
    ToolCallResult,
};
use crate::fields::{number_at, set_field, text_at, text_field};
use crate::http_model::{AnswerReader, ProviderApi};
use crate::model_spec::{Provider, RemoteModelSpec};
use crate::provider_schema::closed_schema;

const PROVIDER_NAME: &str = Provider::Anthropic.as_str();

/// The version of the API.
const API_VERSION: &str = "2023-06-01";

/// The API requires a number: the output limit if the request sets none.
const OUTPUT_TOKENS_DEFAULT: u32 = 8192;

pub(crate) struct AnthropicApi;

impl ProviderApi for AnthropicApi {
    fn path(&self, _: &RemoteModelSpec) -> String {
        "/messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-api-key", key.to_owned()));
        [("anthropic-version", API_VERSION.to_owned())].into_iter().chain(key).collect()
    }

    fn body(&self, spec: &RemoteModelSpec, request: &ModelRequest) -> Value {
        let tokens = request.output_tokens_max;
        let mut body = json!({
            "model": spec.name,
            "max_tokens": if tokens == 0 { OUTPUT_TOKENS_DEFAULT } else { tokens },
            "stream": true,
            "messages": messages(request),
        });
        if !request.system.is_empty() {
            let block = json!({ "type": "text", "text": request.system });
            set_field(&mut body, "system", json!([with_cache_control(block)]));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &crate::ToolDeclaration| {
                let (name, description) = (&tool.name, &tool.description);
                json!({ "name": name, "description": description, "input_schema": tool.schema })
            };
            set_field(&mut body, "tools", request.tools.iter().map(tool).collect());
        }
        if let Some(output) = &request.output {
            let schema = closed_schema(&output.schema);
            set_field(
                &mut body,
                "output_config",
                json!({ "format": { "type": "json_schema", "schema": schema } }),
            );
        }
        body
    }

    fn answer_reader(&self) -> Box<dyn AnswerReader> {
        Box::<AnthropicReader>::default()
    }
}

/// Marks the end of the prefix that the next request will share with this one.
fn with_cache_control(mut block: Value) -> Value {
    set_field(&mut block, "cache_control", json!({ "type": "ephemeral" }));
    block
}

fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut turns = merge_turns(request.messages.iter().map(|message| match message {
        ConversationMessage::User(text) => ("user", text_block(text).into_iter().collect()),
        ConversationMessage::Results(results) => {
            ("user", results.iter().map(result_block).collect())
        }
        ConversationMessage::Assistant(reply) => (
            "assistant",
            parts_in_order(reply, PROVIDER_NAME).into_iter().filter_map(assistant_block).collect(),
        ),
    }));
    if let Some(("user", blocks)) = turns.last_mut()
        && let Some(last) = blocks.pop()
    {
        blocks.push(with_cache_control(last));
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// The API refuses an empty block.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn result_block(result: &ToolCallResult) -> Value {
    let mut block = json!({
        "type": "tool_result", "tool_use_id": valid_id(&result.call), "is_error": result.is_error,
    });
    if let Some(text) = text_block(&result.text) {
        set_field(&mut block, "content", json!([text]));
    }
    block
}

/// An id from another provider may contain characters that this API refuses.
fn valid_id(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    id.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

fn assistant_block(part: PositionedPart<'_>) -> Option<Value> {
    match part {
        PositionedPart::Text(text, _) => text_block(text),
        PositionedPart::Call(call, _) => {
            let input = arguments_as_object(&call.arguments);
            let id = valid_id(&call.id);
            Some(json!({ "type": "tool_use", "id": id, "name": call.name, "input": input }))
        }
        PositionedPart::ProviderData(own) => Some(own),
    }
}

/// The kind of a content block in a streamed answer.
enum ContentBlock {
    Text,
    Call(usize),
    /// A thinking block, by its index.
    ProviderData(usize),
}

#[derive(Default)]
struct AnthropicReader {
    draft: AnswerDraft,
    blocks: BTreeMap<u64, ContentBlock>,
    is_complete: bool,
}

impl AnthropicReader {
    fn start_block(
        &mut self,
        block: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<Option<ContentBlock>, AnswerError> {
        Ok(match text_field(block, "type") {
            "text" => {
                self.draft.add_text(text_field(block, "text"), hear)?;
                Some(ContentBlock::Text)
            }
            "tool_use" => {
                let number = self.draft.start_call(
                    text_field(block, "id"),
                    text_field(block, "name"),
                    None,
                    hear,
                )?;
                // In a stream, the input is empty here and follows in pieces.
                let input = block.get("input").and_then(Value::as_object);
                if let Some(input) = input.filter(|input| !input.is_empty()) {
                    self.draft.add_arguments(number, &json!(input).to_string(), hear)?;
                }
                Some(ContentBlock::Call(number))
            }
            "thinking" | "redacted_thinking" => {
                Some(ContentBlock::ProviderData(self.draft.add_provider_data(block.clone())))
            }
            _ => None,
        })
    }

    fn continue_block(
        &mut self,
        event: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        let Some(delta) = event.get("delta") else { return Ok(()) };
        match (self.blocks.get(&block_index(event)), text_field(delta, "type")) {
            (Some(ContentBlock::Text), "text_delta") => {
                self.draft.add_text(text_field(delta, "text"), hear)
            }
            (Some(ContentBlock::Call(number)), "input_json_delta") => {
                self.draft.add_arguments(*number, text_field(delta, "partial_json"), hear)
            }
            (Some(ContentBlock::ProviderData(place)), "thinking_delta") => {
                self.draft.append_to_provider_data(
                    *place,
                    "thinking",
                    text_field(delta, "thinking"),
                );
                Ok(())
            }
            (Some(ContentBlock::ProviderData(place)), "signature_delta") => {
                self.draft.append_to_provider_data(
                    *place,
                    "signature",
                    text_field(delta, "signature"),
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads token counts. A later count replaces an earlier one; a missing count changes nothing.
    fn update_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
        let now = self.draft.usage.get_or_insert_default();
        let update = |field: &mut u64, name: &str| {
            *field = number_at(usage, name).unwrap_or(*field);
        };
        let TokenUsage { input, cache_read, cache_creation, output } = now;
        update(input, "/input_tokens");
        update(cache_read, "/cache_read_input_tokens");
        update(cache_creation, "/cache_creation_input_tokens");
        update(output, "/output_tokens");
    }

    fn set_end(&mut self, reason: &str) {
        self.draft.end = match reason {
            "" => self.draft.end,
            "tool_use" => Some(AnswerEnd::Calls),
            "max_tokens" | "model_context_window_exceeded" => Some(AnswerEnd::Length),
            "refusal" => Some(AnswerEnd::Refusal),
            _ => Some(AnswerEnd::Turn),
        };
    }
}

impl AnswerReader for AnthropicReader {
    fn event(&mut self, event: &Value, hear: &mut DeltaReceiver<'_>) -> Result<(), AnswerError> {
        match text_field(event, "type") {
            "message_start" => {
                self.draft.id = text_at(event, "/message/id");
                self.update_usage(event.pointer("/message/usage"));
            }
            "content_block_start" => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                if let Some(block) = self.start_block(block, hear)? {
                    self.blocks.insert(block_index(event), block);
                }
            }
            "content_block_delta" => self.continue_block(event, hear)?,
            "message_delta" => {
                self.set_end(&text_at(event, "/delta/stop_reason").unwrap_or_default());
                self.update_usage(event.get("usage"));
            }
            "message_stop" => self.is_complete = true,
            _ => {}
        }
        Ok(())
    }

    fn complete_answer(
        &mut self,
        answer: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        let Some(blocks) = answer.get("content").and_then(Value::as_array) else {
            return Err(AnswerError::Invalid("`content` is missing in the answer".to_owned()));
        };
        for block in blocks {
            self.start_block(block, hear)?;
        }
        self.draft.id = text_at(answer, "/id");
        self.update_usage(answer.get("usage"));
        self.set_end(text_field(answer, "stop_reason"));
        self.is_complete = true;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn into_reply(mut self: Box<Self>) -> Option<ModelReply> {
        if !self.is_complete {
            return None;
        }
        self.draft.end = self.draft.end.or(Some(AnswerEnd::Turn));
        self.draft.into_reply(PROVIDER_NAME)
    }
}

fn block_index(event: &Value) -> u64 {
    number_at(event, "/index").unwrap_or_default()
}
