//! Measures the streaming check: a plan of tool calls, in chunks as a model sends them.

use std::time::Instant;

use jackline_decode::stream::{StreamCheck, StreamSchema};
use serde_json::{Value, json};

use crate::BenchError;
use crate::limits::Row;
use crate::report::BenchReport;

const CHUNK_BYTES: [usize; 3] = [4, 64, 65_536];

/// The fastest round counts, because other processes use the machine too.
const ROUNDS: usize = 5;

pub(super) fn run(report: &mut BenchReport) -> Result<(), BenchError> {
    let schema = StreamSchema::compile(&plan_schema())?;
    let pretty = serde_json::to_string_pretty(&plan(20_000))?;
    let compact = plan(20_000).to_string();
    let mut slowest = f64::INFINITY;
    let mut speeds = Vec::new();
    for (name, document) in [("pretty", pretty), ("compact", compact)] {
        for chunk_bytes in CHUNK_BYTES {
            let mut best = f64::INFINITY;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                let mut stream = StreamCheck::new(&schema);
                document.as_bytes().chunks(chunk_bytes).try_for_each(|chunk| stream.feed(chunk))?;
                stream.finish()?;
                best = best.min(start.elapsed().as_secs_f64());
            }
            let speed = document.len() as f64 / 1e6 / best;
            slowest = slowest.min(speed);
            speeds.push(format!("{name} by {chunk_bytes} bytes {speed:.0}"));
        }
    }
    report.add(Row("io: streaming check, slowest of six"), slowest, speeds.join(", "));
    Ok(())
}

/// A schema for steps of four kinds, distinguished by a constant, as in plans of agents.
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
