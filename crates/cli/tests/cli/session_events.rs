//! Builders for the events of a session, and helpers that send them and summarise the verdicts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// How many times `wait_until` checks its condition, with 10 ms between two checks.
const WAIT_CHECKS_MAX: u32 = 3000;

pub(crate) fn session_started() -> Value {
    json!({"event": "session_started"})
}

pub(crate) fn human_prompt() -> Value {
    json!({"event": "prompt_submitted", "source": "human", "text": "go on"})
}

pub(crate) fn stop_proposed() -> Value {
    json!({"event": "stop_proposed"})
}

/// A shell command that is proposed.
pub(crate) fn shell_proposed(call: &str, line: &str) -> Value {
    tool_proposed(call, "Bash", &json!({"command": line}))
}

pub(crate) fn tool_proposed(call: &str, tool: &str, args: &Value) -> Value {
    json!({"event": "tool_proposed", "call": call, "tool": tool, "args": args})
}

pub(crate) fn tool_finished(call: &str) -> Value {
    json!({"event": "tool_finished", "call": call, "status": "ok"})
}

/// Formats the events of one session as input lines.
pub(crate) fn event_lines(session: &str, events: &[Value]) -> String {
    let line = |event: &Value| {
        let mut event = event.clone();
        event["session"] = session.into();
        format!("{event}\n")
    };
    events.iter().map(line).collect()
}

/// Sends events of a session to a new process and returns its output.
pub(crate) fn send_events_with(
    command: &mut Command,
    session: &str,
    events: &[Value],
) -> CliOutput {
    run_with_input(command.arg("stdio"), event_lines(session, events).as_bytes())
}

/// Sends events of a session to a new process and returns its verdicts.
pub(crate) fn send_events(world: &CliWorld, session: &str, events: &[Value]) -> Vec<Value> {
    let run = send_events_with(&mut world.command(JACKLINE), session, events);
    assert_eq!(run.code, Some(0), "{run:?}");
    run.json_lines()
}

/// Sends one event to a new process and returns its verdict.
pub(crate) fn send_event(world: &CliWorld, session: &str, event: Value) -> Value {
    send_events(world, session, &[event]).remove(0)
}

/// Returns the decision of a verdict and the subtypes of its violations as one text.
pub(crate) fn verdict_summary(verdict: &Value) -> String {
    let violations = verdict["violations"].as_array().map_or(&[][..], Vec::as_slice);
    let kinds = violations.iter().filter_map(|violation| violation["subtype"].as_str());
    [verdict["decision"].as_str().unwrap()].into_iter().chain(kinds).collect::<Vec<_>>().join(" ")
}

pub(crate) fn verdict_summaries(verdicts: &[Value]) -> Vec<String> {
    verdicts.iter().map(verdict_summary).collect()
}

/// Returns the message of the first violation.
pub(crate) fn violation_message(verdict: &Value) -> &str {
    verdict["violations"][0]["message"].as_str().unwrap()
}

/// Waits until a condition is true, and panics after about 30 seconds.
pub(crate) fn wait_until(condition: &str, is_true: impl Fn() -> bool) {
    for _ in 0..WAIT_CHECKS_MAX {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("timed out waiting for: {condition}");
}

pub(crate) fn wait_for_path(path: &Path) {
    wait_until(&path.display().to_string(), || path.exists());
}
