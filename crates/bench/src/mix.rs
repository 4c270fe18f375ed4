//! Plays the committed mix of events as an endless session.

use std::fmt::Write as _;

use jackline_engine::observe::elide;
use jackline_engine::wire::parse_line;
use jackline_engine::{Definition, Event};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::BenchError;

#[derive(Deserialize)]
struct EventMix {
    calls: Vec<MixedCall>,
    every: MixIntervals,
}

#[derive(Deserialize)]
struct MixedCall {
    share: usize,
    tool: String,
    args: Value,
    result_kib: Vec<usize>,
}

#[derive(Deserialize)]
struct MixIntervals {
    prompt_calls: usize,
    usage_calls: usize,
}

/// How far apart the calls of one share are. It is coprime to 100, so every hundred calls contain
/// every share exactly.
const STRIDE: usize = 37;

/// The events of `calls` calls, as JSON lines.
pub(crate) fn event_lines(calls: usize, session: &str) -> Result<Vec<String>, BenchError> {
    let mix: EventMix = serde_json::from_str(include_str!("../mix.json"))?;
    let deck: Vec<&MixedCall> =
        mix.calls.iter().flat_map(|call| std::iter::repeat_n(call, call.share)).collect();
    let mut lines = Vec::new();
    lines.push(json!({"v":1,"session":session,"event":"session_started","client":"bench"}));
    for number in 0..calls {
        if number % mix.every.prompt_calls == 0 {
            lines.push(json!({"event":"prompt_submitted","source":"human","text":"Go on."}));
        }
        let Some(call) = deck.get(number * STRIDE % deck.len()) else { continue };
        let id = format!("call-{number}");
        lines.push(json!({
            "event": "tool_proposed", "call": id, "tool": call.tool, "args": call.args, "cwd": ".",
        }));
        let kib = call.result_kib.get(number % call.result_kib.len()).copied().unwrap_or(1);
        lines.push(json!({
            "event": "tool_finished", "call": id, "status": "ok", "result": text(kib * 1024, number),
        }));
        if number % mix.every.usage_calls == 0 {
            lines.push(json!({
                "event": "usage_reported", "request": format!("r{number}"), "input": 900,
                "cache_read": 14000, "output": 300,
            }));
        }
    }
    Ok(lines.iter().map(ToString::to_string).collect())
}

/// The same events, parsed and shortened as the runtime does before a decision.
pub(crate) fn parsed_events(
    calls: usize,
    definition: &Definition,
) -> Result<Vec<Event>, BenchError> {
    let session = jackline_engine::SessionId::parse("bench")?;
    event_lines(calls, "bench")?
        .iter()
        .map(|line| {
            let mut event = parse_line(line.as_bytes(), Some(&session))?;
            elide(&mut event, definition);
            Ok(event)
        })
        .collect()
}

/// Text like the output of a tool, different for each number.
fn text(bytes: usize, number: usize) -> String {
    let mut text = String::with_capacity(bytes + 80);
    let mut line = 0;
    while text.len() < bytes {
        let _ = writeln!(text, "test suite_{number}::case_{line} ... ok (0.0{line}s)");
        line += 1;
    }
    text.truncate(bytes);
    text
}
