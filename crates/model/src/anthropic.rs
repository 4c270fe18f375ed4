//! Anthropic's Messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::ask::{End, Hearer, Message, Reply, Request, ToolResult, Usage};
use crate::draft::{Draft, Placed, Trouble, as_object, placed, turns};
use crate::fields::{number_at, set, text, text_at};
use crate::remote::{Listen, Wire};
use crate::schema::closed;
use crate::spec::{ModelSpec, Provider};

const OWN: &str = Provider::Anthropic.as_str();

/// The version of the wire.
const VERSION: &str = "2023-06-01";

/// The wire wants a number: what may be written where nothing is said.
const OUTPUT_TOKENS: u32 = 8192;

pub(crate) struct Messages;

impl Wire for Messages {
    fn path(&self, _: &ModelSpec) -> String {
        "/messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-api-key", key.to_owned()));
        [("anthropic-version", VERSION.to_owned())].into_iter().chain(key).collect()
    }

    fn body(&self, spec: &ModelSpec, request: &Request) -> Value {
        let tokens = request.output_tokens_max;
        let mut body = json!({
            "model": spec.name,
            "max_tokens": if tokens == 0 { OUTPUT_TOKENS } else { tokens },
            "stream": true,
            "messages": messages(request),
        });
        if !request.system.is_empty() {
            let block = json!({ "type": "text", "text": request.system });
            set(&mut body, "system", json!([cached(block)]));
        }
        if !request.tools.is_empty() {
            let tool = |tool: &crate::Tool| {
                let (name, description) = (&tool.name, &tool.description);
                json!({ "name": name, "description": description, "input_schema": tool.schema })
            };
            set(&mut body, "tools", request.tools.iter().map(tool).collect());
        }
        if let Some(output) = &request.output {
            let schema = closed(&output.schema);
            set(
                &mut body,
                "output_config",
                json!({ "format": { "type": "json_schema", "schema": schema } }),
            );
        }
        body
    }

    fn listen(&self) -> Box<dyn Listen> {
        Box::<Listener>::default()
    }
}

/// Marks the end of what the next request will have in common with this one.
fn cached(mut block: Value) -> Value {
    set(&mut block, "cache_control", json!({ "type": "ephemeral" }));
    block
}

fn messages(request: &Request) -> Vec<Value> {
    let mut turns = turns(request.messages.iter().map(|message| match message {
        Message::User(text) => ("user", text_block(text).into_iter().collect()),
        Message::Results(results) => ("user", results.iter().map(result_block).collect()),
        Message::Assistant(said) => {
            ("assistant", placed(said, OWN).into_iter().filter_map(said_block).collect())
        }
    }));
    if let Some(("user", blocks)) = turns.last_mut()
        && let Some(last) = blocks.pop()
    {
        blocks.push(cached(last));
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// An empty block is refused.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn result_block(result: &ToolResult) -> Value {
    let mut block = json!({
        "type": "tool_result", "tool_use_id": fitting(&result.call), "is_error": result.is_error,
    });
    if let Some(text) = text_block(&result.text) {
        set(&mut block, "content", json!([text]));
    }
    block
}

/// An id that another provider gave may have characters that are refused here.
fn fitting(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    id.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

fn said_block(part: Placed<'_>) -> Option<Value> {
    match part {
        Placed::Text(text, _) => text_block(text),
        Placed::Call(call, _) => {
            let input = as_object(&call.arguments);
            let id = fitting(&call.id);
            Some(json!({ "type": "tool_use", "id": id, "name": call.name, "input": input }))
        }
        Placed::Own(own) => Some(own),
    }
}

/// What a block of an answer is, while it comes.
enum Block {
    Text,
    Call(usize),
    /// A thought, at its place.
    Own(usize),
}

#[derive(Default)]
struct Listener {
    draft: Draft,
    blocks: BTreeMap<u64, Block>,
    over: bool,
}

impl Listener {
    fn begin(&mut self, block: &Value, hear: &mut Hearer<'_>) -> Result<Option<Block>, Trouble> {
        Ok(match text(block, "type") {
            "text" => {
                self.draft.text(text(block, "text"), hear)?;
                Some(Block::Text)
            }
            "tool_use" => {
                let number = self.draft.call(text(block, "id"), text(block, "name"), None, hear)?;
                // In a stream it is empty here, and comes piece by piece.
                let input = block.get("input").and_then(Value::as_object);
                if let Some(input) = input.filter(|input| !input.is_empty()) {
                    self.draft.arguments(number, &json!(input).to_string(), hear)?;
                }
                Some(Block::Call(number))
            }
            "thinking" | "redacted_thinking" => Some(Block::Own(self.draft.own(block.clone()))),
            _ => None,
        })
    }

    fn go_on(&mut self, event: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        let Some(delta) = event.get("delta") else { return Ok(()) };
        match (self.blocks.get(&index(event)), text(delta, "type")) {
            (Some(Block::Text), "text_delta") => self.draft.text(text(delta, "text"), hear),
            (Some(Block::Call(number)), "input_json_delta") => {
                self.draft.arguments(*number, text(delta, "partial_json"), hear)
            }
            (Some(Block::Own(place)), "thinking_delta") => {
                self.draft.more_of_own(*place, "thinking", text(delta, "thinking"));
                Ok(())
            }
            (Some(Block::Own(place)), "signature_delta") => {
                self.draft.more_of_own(*place, "signature", text(delta, "signature"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Numbers of tokens; later ones hold, and what is not told stays.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
        let now = self.draft.usage.get_or_insert_default();
        let update = |field: &mut u64, name: &str| {
            *field = number_at(usage, name).unwrap_or(*field);
        };
        let Usage { input, cache_read, cache_creation, output } = now;
        update(input, "/input_tokens");
        update(cache_read, "/cache_read_input_tokens");
        update(cache_creation, "/cache_creation_input_tokens");
        update(output, "/output_tokens");
    }

    fn ends(&mut self, reason: &str) {
        self.draft.end = match reason {
            "" => self.draft.end,
            "tool_use" => Some(End::Calls),
            "max_tokens" | "model_context_window_exceeded" => Some(End::Length),
            "refusal" => Some(End::Refusal),
            _ => Some(End::Turn),
        };
    }
}

impl Listen for Listener {
    fn event(&mut self, event: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        match text(event, "type") {
            "message_start" => {
                self.draft.id = text_at(event, "/message/id");
                self.count(event.pointer("/message/usage"));
            }
            "content_block_start" => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                if let Some(block) = self.begin(block, hear)? {
                    self.blocks.insert(index(event), block);
                }
            }
            "content_block_delta" => self.go_on(event, hear)?,
            "message_delta" => {
                self.ends(&text_at(event, "/delta/stop_reason").unwrap_or_default());
                self.count(event.get("usage"));
            }
            "message_stop" => self.over = true,
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, answer: &Value, hear: &mut Hearer<'_>) -> Result<(), Trouble> {
        let Some(blocks) = answer.get("content").and_then(Value::as_array) else {
            return Err(Trouble::Bad("the answer has no `content`".to_owned()));
        };
        for block in blocks {
            self.begin(block, hear)?;
        }
        self.draft.id = text_at(answer, "/id");
        self.count(answer.get("usage"));
        self.ends(text(answer, "stop_reason"));
        self.over = true;
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn reply(mut self: Box<Self>) -> Option<Reply> {
        if !self.over {
            return None;
        }
        self.draft.end = self.draft.end.or(Some(End::Turn));
        self.draft.reply(OWN)
    }
}

fn index(event: &Value) -> u64 {
    number_at(event, "/index").unwrap_or_default()
}
