//! Google's Gemini.

use serde_json::{Value, json};

use crate::ask::{End, Hearer, Message, Reply, Request, Tool, ToolResult, Usage};
use crate::draft::{Draft, Placed, Trouble, as_object, is_given, placed, turns};
use crate::fields::{list, number_at, set, text, text_at};
use crate::remote::{Listen, Wire};
use crate::spec::{ModelSpec, Provider};

const OWN: &str = Provider::Gemini.as_str();

/// Models that refuse a schema for the answer where there are tools, too.
const EITHER_OR: [&str; 2] = ["gemini-1", "gemini-2"];

pub(crate) struct Contents;

impl Wire for Contents {
    fn path(&self, spec: &ModelSpec) -> String {
        let name = spec.name.strip_prefix("models/").unwrap_or(&spec.name);
        format!("/models/{name}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect()
    }

    fn body(&self, spec: &ModelSpec, request: &Request) -> Value {
        let mut body = json!({ "contents": contents(request) });
        if !request.system.is_empty() {
            set(&mut body, "systemInstruction", json!({ "parts": [{ "text": request.system }] }));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &Tool| {
                let (name, description) = (&tool.name, &tool.description);
                let mut declaration = json!({ "name": name, "description": description });
                // An object without any key is refused.
                let keys = tool.schema.get("properties").and_then(Value::as_object);
                if keys.is_some_and(|keys| !keys.is_empty()) {
                    set(&mut declaration, "parametersJsonSchema", tool.schema.clone());
                }
                declaration
            };
            let tools: Vec<Value> = request.tools.iter().map(tool).collect();
            set(&mut body, "tools", json!([{ "functionDeclarations": tools }]));
        }
        let mut config = json!({});
        if request.output_tokens_max > 0 {
            set(&mut config, "maxOutputTokens", json!(request.output_tokens_max));
        }
        let name = spec.name.strip_prefix("models/").unwrap_or(&spec.name);
        let takes_both = !EITHER_OR.iter().any(|start| name.starts_with(start));
        if let Some(output) = &request.output
            && (takes_both || request.tools.is_empty())
        {
            set(&mut config, "responseMimeType", json!("application/json"));
            set(&mut config, "responseJsonSchema", output.schema.clone());
        }
        set(&mut body, "generationConfig", config);
        body
    }

    fn listen(&self) -> Box<dyn Listen> {
        Box::<Listener>::default()
    }
}

fn contents(request: &Request) -> Vec<Value> {
    let turns = turns(request.messages.iter().map(|message| match message {
        Message::User(text) => ("user", vec![json!({ "text": text })]),
        Message::Results(results) => ("user", results.iter().map(result).collect()),
        Message::Assistant(said) => {
            ("model", placed(said, OWN).into_iter().filter_map(part).collect())
        }
    }));
    turns.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

fn result(result: &ToolResult) -> Value {
    let how = if result.is_error { "error" } else { "output" };
    let mut response = json!({ "name": result.name, "response": { how: result.text } });
    if is_given(&result.call) {
        set(&mut response, "id", json!(result.call));
    }
    json!({ "functionResponse": response })
}

fn part(part: Placed<'_>) -> Option<Value> {
    let (mut part, with) = match part {
        Placed::Text("", None) => return None,
        Placed::Text(text, with) => (json!({ "text": text }), with),
        Placed::Call(call, with) => {
            let mut own = json!({ "name": call.name, "args": as_object(&call.arguments) });
            if is_given(&call.id) {
                set(&mut own, "id", json!(call.id));
            }
            (json!({ "functionCall": own }), with)
        }
        Placed::Own(own) => return Some(own),
    };
    if let Some(signature) = with {
        set(&mut part, "thoughtSignature", signature);
    }
    Some(part)
}

#[derive(Default)]
struct Listener {
    draft: Draft,
}

impl Listener {
    fn part(&mut self, part: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        let signature = part.get("thoughtSignature").filter(|it| it.is_string()).cloned();
        if let Some(call) = part.get("functionCall") {
            let number = self.draft.call(text(call, "id"), text(call, "name"), signature, hear)?;
            let args = call.get("args").filter(|args| args.is_object());
            let args = args.map_or_else(|| "{}".to_owned(), ToString::to_string);
            return self.draft.arguments(number, &args, hear);
        }
        // Thoughts in words are for people.
        if part.get("thought").and_then(Value::as_bool) != Some(true) {
            self.draft.text(text(part, "text"), hear)?;
            if let Some(signature) = signature {
                self.draft.text_with(signature);
            }
        }
        Ok(())
    }

    fn ends(&mut self, reason: &str) -> Result<(), Trouble> {
        self.draft.end = Some(match reason {
            "STOP" => End::Turn,
            "MAX_TOKENS" => End::Length,
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE"
            | "MALFORMED_RESPONSE"
            | "OTHER" => {
                return Err(Trouble::Bad(format!("the answer ended as {reason}")));
            }
            // Safety, recitation, and whatever else is not wanted there.
            _ => End::Refusal,
        });
        Ok(())
    }
}

impl Listen for Listener {
    fn event(&mut self, event: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        self.draft.id = self.draft.id.take().or_else(|| text_at(event, "/responseId"));
        if let Some(content) = event.pointer("/candidates/0/content") {
            for part in list(content, "parts") {
                self.part(part, hear)?;
            }
        }
        if let Some(input) = number_at(event, "/usageMetadata/promptTokenCount") {
            let count =
                |name: &str| number_at(event, &format!("/usageMetadata/{name}")).unwrap_or(0);
            let cache_read = count("cachedContentTokenCount");
            self.draft.usage = Some(Usage {
                input: input.saturating_sub(cache_read),
                cache_read,
                cache_creation: 0,
                output: count("candidatesTokenCount") + count("thoughtsTokenCount"),
            });
        }
        if text_at(event, "/promptFeedback/blockReason").is_some() {
            self.draft.end = Some(End::Refusal);
        }
        text_at(event, "/candidates/0/finishReason").map_or(Ok(()), |reason| self.ends(&reason))
    }

    fn whole(&mut self, answer: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        match answer {
            Value::Array(events) => events.iter().try_for_each(|event| self.event(event, hear)),
            event => self.event(event, hear),
        }
    }

    /// The numbers may come after the reason: the end is that of the connection.
    fn is_over(&self) -> bool {
        false
    }

    fn reply(self: Box<Self>) -> Option<Reply> {
        self.draft.reply(OWN)
    }
}
