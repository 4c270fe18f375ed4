//! `OpenAI`'s Responses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::ask::{End, Hearer, Message, Reply, Request, Tool, Usage};
use crate::draft::{Draft, Placed, Trouble, placed};
use crate::fields::{list, number_at, set, text, text_at};
use crate::remote::{Listen, Wire};
use crate::schema::{closed, is_strict};
use crate::spec::{ModelSpec, Provider};

const OWN: &str = Provider::OpenAi.as_str();

/// Models that do not think, and refuse to be asked for their thoughts.
const THOUGHTLESS: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-4"];

pub(crate) struct Responses;

impl Wire for Responses {
    fn path(&self, _: &ModelSpec) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, spec: &ModelSpec, request: &Request) -> Value {
        let mut body = json!({
            "model": spec.name,
            "stream": true,
            // Nothing of a conversation stays there; so thoughts come along, sealed.
            "store": false,
            "input": request.messages.iter().flat_map(items).collect::<Vec<_>>(),
        });
        let name = spec.name.strip_prefix("ft:").unwrap_or(&spec.name);
        if !THOUGHTLESS.iter().any(|start| name.starts_with(start)) {
            set(&mut body, "include", json!(["reasoning.encrypted_content"]));
        }
        if !request.system.is_empty() {
            set(&mut body, "instructions", json!(request.system));
        }
        if request.output_tokens_max > 0 {
            set(&mut body, "max_output_tokens", json!(request.output_tokens_max));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &Tool| {
                let mut tool = function(tool);
                set(&mut tool, "type", json!("function"));
                set(&mut tool, "strict", json!(false));
                tool
            };
            set(&mut body, "tools", request.tools.iter().map(tool).collect());
        }
        if let Some(output) = &request.output {
            let mut format = schema(&output.name, &output.schema);
            set(&mut format, "type", json!("json_schema"));
            set(&mut body, "text", json!({ "format": format }));
        }
        body
    }

    fn listen(&self) -> Box<dyn Listen> {
        Box::<Listener>::default()
    }
}

pub(crate) fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
}

/// A tool, as far as both of `OpenAI`'s wires agree.
pub(crate) fn function(tool: &Tool) -> Value {
    let (name, description) = (&tool.name, &tool.description);
    json!({ "name": name, "description": description, "parameters": tool.schema })
}

/// What an answer has to look like, as far as both wires agree. What can't be strict is
/// asked for all the same.
pub(crate) fn schema(name: &str, schema: &Value) -> Value {
    let closed = closed(schema);
    if is_strict(&closed) {
        return json!({ "name": name, "strict": true, "schema": closed });
    }
    json!({ "name": name, "strict": false, "schema": schema })
}

/// A message as items of the conversation.
fn items(message: &Message) -> Vec<Value> {
    let said = |role: &str, kind: &str, text: &str| {
        let content = json!([{ "type": kind, "text": text }]);
        json!({ "type": "message", "role": role, "content": content })
    };
    match message {
        Message::User(text) => vec![said("user", "input_text", text)],
        Message::Results(results) => {
            let item = |result: &crate::ToolResult| {
                let (call, output) = (&result.call, &result.text);
                json!({ "type": "function_call_output", "call_id": call, "output": output })
            };
            results.iter().map(item).collect()
        }
        Message::Assistant(answer) => {
            let item = |part| match part {
                Placed::Text("", _) => None,
                Placed::Text(text, _) => Some(said("assistant", "output_text", text)),
                Placed::Call(call, _) => Some(json!({
                    "type": "function_call", "call_id": call.id, "name": call.name,
                    "arguments": call.arguments,
                })),
                Placed::Own(own) => Some(own),
            };
            placed(answer, OWN).into_iter().filter_map(item).collect()
        }
    }
}

#[derive(Default)]
struct Listener {
    draft: Draft,
    /// The calls by their place among the items.
    calls: BTreeMap<u64, usize>,
    over: bool,
}

impl Listener {
    /// An item is whole.
    fn item(&mut self, item: &Value) {
        // Without what is sealed in it, nobody takes a thought back.
        if text(item, "type") == "reasoning" && !text(item, "encrypted_content").is_empty() {
            let mut own = json!({ "type": "reasoning", "id": text(item, "id") });
            set(&mut own, "summary", item.get("summary").cloned().unwrap_or_else(|| json!([])));
            set(&mut own, "encrypted_content", json!(text(item, "encrypted_content")));
            self.draft.own(own);
        }
    }

    fn call(&mut self, item: &Value, hear: &mut Hearer<'_>) -> Result<usize, Trouble> {
        let number = self.draft.call(text(item, "call_id"), text(item, "name"), None, hear)?;
        self.draft.arguments(number, text(item, "arguments"), hear)?;
        Ok(number)
    }

    /// Nothing more comes of a call; some servers send its arguments only here.
    fn call_done(
        &mut self,
        event: &Value,
        arguments: &str,
        hear: &mut Hearer<'_>,
    ) -> Result<(), Trouble> {
        let Some(number) = self.calls.get(&place(event)).copied() else { return Ok(()) };
        let heard = self.draft.calls().get(number).is_some_and(|call| !call.arguments.is_empty());
        if heard { Ok(()) } else { self.draft.arguments(number, arguments, hear) }
    }

    /// What is known of the whole answer at its end.
    fn ends(&mut self, response: &Value) {
        self.draft.id = text_at(response, "/id").or(self.draft.id.take());
        let reason = text_at(response, "/incomplete_details/reason");
        let refused = self.draft.end == Some(End::Refusal);
        self.draft.end = Some(match reason.as_deref() {
            Some("content_filter") => End::Refusal,
            Some(_) => End::Length,
            None if refused => End::Refusal,
            None => End::Turn,
        });
        if let Some(input) = number_at(response, "/usage/input_tokens") {
            let cached = number_at(response, "/usage/input_tokens_details/cached_tokens");
            let output = number_at(response, "/usage/output_tokens");
            self.draft.usage = Some(usage(input, cached, output));
        }
        self.over = true;
    }
}

/// Both wires count what was in the cache to what was read.
pub(crate) fn usage(input: u64, cached: Option<u64>, output: Option<u64>) -> Usage {
    let cache_read = cached.unwrap_or_default();
    Usage {
        input: input.saturating_sub(cache_read),
        cache_read,
        cache_creation: 0,
        output: output.unwrap_or_default(),
    }
}

impl Listen for Listener {
    fn event(&mut self, event: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        let null = Value::Null;
        let response = event.get("response").unwrap_or(&null);
        let item = event.get("item").unwrap_or(&null);
        match text(event, "type") {
            "response.created" => self.draft.id = text_at(response, "/id"),
            "response.output_item.added" if text(item, "type") == "function_call" => {
                let number = self.call(item, hear)?;
                self.calls.insert(place(event), number);
            }
            "response.output_item.done" => {
                self.call_done(event, text(item, "arguments"), hear)?;
                self.item(item);
            }
            "response.output_text.delta" => self.draft.text(text(event, "delta"), hear)?,
            "response.refusal.delta" => {
                self.draft.end = Some(End::Refusal);
                self.draft.text(text(event, "delta"), hear)?;
            }
            "response.function_call_arguments.delta" => {
                if let Some(number) = self.calls.get(&place(event)) {
                    self.draft.arguments(*number, text(event, "delta"), hear)?;
                }
            }
            "response.function_call_arguments.done" => {
                self.call_done(event, text(event, "arguments"), hear)?;
            }
            "response.completed" | "response.incomplete" => self.ends(response),
            "response.failed" => return Err(Trouble::Complaint(response.clone())),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, answer: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        if !answer.get("output").is_some_and(Value::is_array) {
            return Err(Trouble::Bad("the answer has no `output`".to_owned()));
        }
        for item in list(answer, "output") {
            match text(item, "type") {
                "function_call" => {
                    self.call(item, hear)?;
                }
                "message" => {
                    for part in list(item, "content") {
                        if text(part, "type") == "refusal" {
                            self.draft.end = Some(End::Refusal);
                        }
                        self.draft.text(text(part, "text"), hear)?;
                        self.draft.text(text(part, "refusal"), hear)?;
                    }
                }
                _ => self.item(item),
            }
        }
        self.ends(answer);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn reply(self: Box<Self>) -> Option<Reply> {
        if self.over { self.draft.reply(OWN) } else { None }
    }
}

fn place(event: &Value) -> u64 {
    number_at(event, "/output_index").unwrap_or_default()
}
