//! How fast the streaming check reads: a plan of tool calls, in chunks as a model sends them.
#![expect(clippy::print_stdout, reason = "an example that prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "measuring needs a clock")]

use std::time::Instant;

use jackline_decode::stream::{Stream, StreamSchema};
use serde_json::{Value, json};

const CHUNK_BYTES: [usize; 3] = [4, 64, 65_536];
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = StreamSchema::compile(&plan_schema())?;
    let pretty = serde_json::to_string_pretty(&plan(20_000))?;
    let compact = plan(20_000).to_string();
    for (name, document) in [("pretty", pretty), ("compact", compact)] {
        for chunk_bytes in CHUNK_BYTES {
            let mut best = u128::MAX;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                let mut stream = Stream::new(&schema);
                document.as_bytes().chunks(chunk_bytes).try_for_each(|chunk| stream.feed(chunk))?;
                stream.finish()?;
                best = best.min(start.elapsed().as_micros());
            }
            // Bytes in a microsecond are megabytes in a second.
            let speed = document.len() as u128 / best.max(1);
            let bytes = document.len();
            println!("{name}, {bytes} bytes in chunks of {chunk_bytes}: {speed} MB/s");
        }
    }
    Ok(())
}

/// Steps of four kinds, told apart by a constant, as plans of agents have them.
fn plan_schema() -> Value {
    let path = json!({ "type": "string", "minLength": 1, "maxLength": 4096 });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "goal": { "type": "string", "maxLength": 500 },
            "steps": { "type": "array", "items": { "$ref": "#/$defs/step" }, "minItems": 1 },
        },
        "required": ["goal", "steps"],
        "additionalProperties": false,
        "$defs": {
            "common": {
                "type": "object",
                "properties": {
                    "id": { "type": "integer", "minimum": 0 },
                    "why": { "type": "string" },
                    "risk": { "enum": ["low", "medium", "high"] },
                    "after": { "type": "array", "items": { "type": "integer" }, "maxItems": 8 },
                },
                "required": ["id", "why"],
            },
            "step": {
                "$ref": "#/$defs/common",
                "anyOf": [
                    { "properties": {
                        "tool": { "const": "read_file" },
                        "args": {
                            "type": "object",
                            "properties": { "path": path, "offset": { "type": "integer" }, "limit": { "type": "integer" } },
                            "required": ["path"], "additionalProperties": false,
                        },
                    }, "required": ["tool", "args"] },
                    { "properties": {
                        "tool": { "const": "edit_file" },
                        "args": {
                            "type": "object",
                            "properties": { "path": path, "old": { "type": "string" }, "new": { "type": "string" } },
                            "required": ["path", "old", "new"], "additionalProperties": false,
                        },
                    }, "required": ["tool", "args"] },
                    { "properties": {
                        "tool": { "const": "search" },
                        "args": {
                            "type": "object",
                            "properties": { "pattern": { "type": "string" }, "glob": { "type": ["string", "null"] } },
                            "required": ["pattern"], "additionalProperties": false,
                        },
                    }, "required": ["tool", "args"] },
                    { "properties": {
                        "tool": { "const": "shell" },
                        "args": {
                            "type": "object",
                            "properties": { "command": { "type": "string", "pattern": "^[^\\u0000]*$" }, "timeout_ms": { "type": "number", "maximum": 600_000 } },
                            "required": ["command"], "additionalProperties": false,
                        },
                    }, "required": ["tool", "args"] },
                ],
            },
        },
    })
}

fn plan(steps: usize) -> Value {
    let steps: Vec<Value> = (0..steps)
        .map(|id| {
            let (tool, args) = match id % 4 {
                0 => ("read_file", json!({ "path": format!("crates/engine/src/guards/{id}.rs"), "offset": id, "limit": 200 })),
                1 => ("edit_file", json!({
                    "path": "crates/engine/src/lib.rs",
                    "old": "pub fn decide(&self, event: &Event) -> Verdict {\n    self.guards.decide(event)\n}\n",
                    "new": "/// Answers one event, « deterministically ».\npub fn decide(&self, event: &Event) -> Verdict {\n    self.guards.iter().map(|guard| guard.decide(event)).max()\n}\n",
                })),
                2 => ("search", json!({ "pattern": "fn decide\\(", "glob": null })),
                _ => ("shell", json!({ "command": "cargo test -p jackline-engine -- --nocapture 2>&1 | tail -20", "timeout_ms": 120_000.5 })),
            };
            json!({
                "id": id, "tool": tool, "args": args, "risk": "medium", "after": [id / 2, id / 3],
                "why": "The guard looks at every event, so the change has to be seen by its callers first.",
            })
        })
        .collect();
    json!({ "goal": "Make guards answer in one pass", "steps": steps })
}
