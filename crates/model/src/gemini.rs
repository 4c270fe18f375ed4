//! The Google Gemini API.

use serde_json::{Value, json};

use crate::answer_draft::{
    AnswerDraft, AnswerError, PositionedPart, arguments_as_object, is_provider_id, merge_turns,
    parts_in_order,
};
use crate::conversation::{
    AnswerEnd, ConversationMessage, DeltaReceiver, ModelReply, ModelRequest, TokenUsage,
    ToolCallResult, ToolDeclaration,
};
use crate::fields::{list_field, number_at, set_field, text_at, text_field};
use crate::http_model::{AnswerReader, ProviderApi};
use crate::model_spec::{Provider, RemoteModelSpec};

const PROVIDER_NAME: &str = Provider::Gemini.as_str();

/// Models that refuse an output schema together with tools.
const SCHEMA_OR_TOOLS_ONLY: [&str; 2] = ["gemini-1", "gemini-2"];

pub(crate) struct GeminiApi;

impl ProviderApi for GeminiApi {
    fn path(&self, spec: &RemoteModelSpec) -> String {
        let name = spec.name.strip_prefix("models/").unwrap_or(&spec.name);
        format!("/models/{name}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect()
    }

    fn body(&self, spec: &RemoteModelSpec, request: &ModelRequest) -> Value {
        let mut body = json!({ "contents": contents(request) });
        if !request.system.is_empty() {
            set_field(
                &mut body,
                "systemInstruction",
                json!({ "parts": [{ "text": request.system }] }),
            );
        }
        if !request.tools.is_empty() {
            let tool = |tool: &ToolDeclaration| {
                let (name, description) = (&tool.name, &tool.description);
                let mut declaration = json!({ "name": name, "description": description });
                // The API refuses an object schema without properties.
                let keys = tool.schema.get("properties").and_then(Value::as_object);
                if keys.is_some_and(|keys| !keys.is_empty()) {
                    set_field(&mut declaration, "parametersJsonSchema", tool.schema.clone());
                }
                declaration
            };
            let tools: Vec<Value> = request.tools.iter().map(tool).collect();
            set_field(&mut body, "tools", json!([{ "functionDeclarations": tools }]));
        }
        let mut config = json!({});
        if request.output_tokens_max > 0 {
            set_field(&mut config, "maxOutputTokens", json!(request.output_tokens_max));
        }
        let name = spec.name.strip_prefix("models/").unwrap_or(&spec.name);
        let takes_both = !SCHEMA_OR_TOOLS_ONLY.iter().any(|start| name.starts_with(start));
        if let Some(output) = &request.output
            && (takes_both || request.tools.is_empty())
        {
            set_field(&mut config, "responseMimeType", json!("application/json"));
            set_field(&mut config, "responseJsonSchema", output.schema.clone());
        }
        set_field(&mut body, "generationConfig", config);
        body
    }

    fn answer_reader(&self) -> Box<dyn AnswerReader> {
        Box::<GeminiReader>::default()
    }
}

fn contents(request: &ModelRequest) -> Vec<Value> {
    let turns = merge_turns(request.messages.iter().map(|message| match message {
        ConversationMessage::User(text) => ("user", vec![json!({ "text": text })]),
        ConversationMessage::Results(results) => {
            ("user", results.iter().map(function_response).collect())
        }
        ConversationMessage::Assistant(reply) => {
            ("model", parts_in_order(reply, PROVIDER_NAME).into_iter().filter_map(part).collect())
        }
    }));
    turns.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

fn function_response(result: &ToolCallResult) -> Value {
    let how = if result.is_error { "error" } else { "output" };
    let mut response = json!({ "name": result.name, "response": { how: result.text } });
    if is_provider_id(&result.call) {
        set_field(&mut response, "id", json!(result.call));
    }
    json!({ "functionResponse": response })
}

fn part(part: PositionedPart<'_>) -> Option<Value> {
    let (mut part, with) = match part {
        PositionedPart::Text("", None) => return None,
        PositionedPart::Text(text, with) => (json!({ "text": text }), with),
        PositionedPart::Call(call, with) => {
            let mut own =
                json!({ "name": call.name, "args": arguments_as_object(&call.arguments) });
            if is_provider_id(&call.id) {
                set_field(&mut own, "id", json!(call.id));
            }
            (json!({ "functionCall": own }), with)
        }
        PositionedPart::ProviderData(own) => return Some(own),
    };
    if let Some(signature) = with {
        set_field(&mut part, "thoughtSignature", signature);
    }
    Some(part)
}

#[derive(Default)]
struct GeminiReader {
    draft: AnswerDraft,
}

impl GeminiReader {
    fn add_part(&mut self, part: &Value, hear: &mut DeltaReceiver<'_>) -> Result<(), AnswerError> {
        let signature = part.get("thoughtSignature").filter(|it| it.is_string()).cloned();
        if let Some(call) = part.get("functionCall") {
            let number = self.draft.start_call(
                text_field(call, "id"),
                text_field(call, "name"),
                signature,
                hear,
            )?;
            let args = call.get("args").filter(|args| args.is_object());
            let args = args.map_or_else(|| "{}".to_owned(), ToString::to_string);
            return self.draft.add_arguments(number, &args, hear);
        }
        // Thought summaries are not part of the answer.
        if part.get("thought").and_then(Value::as_bool) != Some(true) {
            self.draft.add_text(text_field(part, "text"), hear)?;
            if let Some(signature) = signature {
                self.draft.attach_to_text(signature);
            }
        }
        Ok(())
    }

    fn set_end(&mut self, reason: &str) -> Result<(), AnswerError> {
        self.draft.end = Some(match reason {
            "STOP" => AnswerEnd::Turn,
            "MAX_TOKENS" => AnswerEnd::Length,
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE"
            | "MALFORMED_RESPONSE"
            | "OTHER" => {
                return Err(AnswerError::Invalid(format!(
                    "the answer ended with the reason {reason}"
                )));
            }
            // Safety filters, recitation and other refusals.
            _ => AnswerEnd::Refusal,
        });
        Ok(())
    }
}

impl AnswerReader for GeminiReader {
    fn event(&mut self, event: &Value, hear: &mut DeltaReceiver<'_>) -> Result<(), AnswerError> {
        self.draft.id = self.draft.id.take().or_else(|| text_at(event, "/responseId"));
        if let Some(content) = event.pointer("/candidates/0/content") {
            for part in list_field(content, "parts") {
                self.add_part(part, hear)?;
            }
        }
        if let Some(input) = number_at(event, "/usageMetadata/promptTokenCount") {
            let count =
                |name: &str| number_at(event, &format!("/usageMetadata/{name}")).unwrap_or(0);
            let cache_read = count("cachedContentTokenCount");
            self.draft.usage = Some(TokenUsage {
                input: input.saturating_sub(cache_read),
                cache_read,
                cache_creation: 0,
                output: count("candidatesTokenCount") + count("thoughtsTokenCount"),
            });
        }
        if text_at(event, "/promptFeedback/blockReason").is_some() {
            self.draft.end = Some(AnswerEnd::Refusal);
        }
        text_at(event, "/candidates/0/finishReason").map_or(Ok(()), |reason| self.set_end(&reason))
    }

    fn complete_answer(
        &mut self,
        answer: &Value,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<(), AnswerError> {
        match answer {
            Value::Array(events) => events.iter().try_for_each(|event| self.event(event, hear)),
            event => self.event(event, hear),
        }
    }

    /// Token counts may follow the finish reason, so the answer ends with the connection.
    fn is_complete(&self) -> bool {
        false
    }

    fn into_reply(self: Box<Self>) -> Option<ModelReply> {
        self.draft.into_reply(PROVIDER_NAME)
    }
}
