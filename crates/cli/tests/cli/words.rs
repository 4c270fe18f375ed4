//! Words to tell a session's story with: events, and what was answered.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};

/// How often something is waited for, a moment each time.
const LOOKS_MAX: u32 = 3000;

pub(crate) fn started() -> Value {
    json!({"event": "session_started"})
}

pub(crate) fn prompt() -> Value {
    json!({"event": "prompt_submitted", "source": "human", "text": "go on"})
}

pub(crate) fn stop() -> Value {
    json!({"event": "stop_proposed"})
}

/// A command line that is about to run.
pub(crate) fn run(call: &str, line: &str) -> Value {
    propose(call, "Bash", &json!({"command": line}))
}

pub(crate) fn propose(call: &str, tool: &str, args: &Value) -> Value {
    json!({"event": "tool_proposed", "call": call, "tool": tool, "args": args})
}

pub(crate) fn finish(call: &str) -> Value {
    json!({"event": "tool_finished", "call": call, "status": "ok"})
}

/// Events of one session as the lines of a stream.
pub(crate) fn stream(session: &str, events: &[Value]) -> String {
    let line = |event: &Value| {
        let mut event = event.clone();
        event["session"] = session.into();
        format!("{event}\n")
    };
    events.iter().map(line).collect()
}

/// Tells a new process some events of a session, and gives what it left behind.
pub(crate) fn tell_by(command: &mut Command, session: &str, events: &[Value]) -> Run {
    feed(command.arg("stdio"), stream(session, events).as_bytes())
}

/// Tells a new process some events of a session, and gives its verdicts.
pub(crate) fn tell(world: &World, session: &str, events: &[Value]) -> Vec<Value> {
    let run = tell_by(&mut world.command(JACKLINE), session, events);
    assert_eq!(run.code, Some(0), "{run:?}");
    run.verdicts()
}

/// Tells a new process one event.
pub(crate) fn tell_one(world: &World, session: &str, event: Value) -> Value {
    tell(world, session, &[event]).remove(0)
}

/// A verdict in a few words: the decision, and the kinds of objections.
pub(crate) fn words(verdict: &Value) -> String {
    let objections = verdict["violations"].as_array().map_or(&[][..], Vec::as_slice);
    let kinds = objections.iter().filter_map(|objection| objection["subtype"].as_str());
    [verdict["decision"].as_str().unwrap()].into_iter().chain(kinds).collect::<Vec<_>>().join(" ")
}

pub(crate) fn all_words(verdicts: &[Value]) -> Vec<String> {
    verdicts.iter().map(words).collect()
}

/// What the first objection of a verdict says.
pub(crate) fn message(verdict: &Value) -> &str {
    verdict["violations"][0]["message"].as_str().unwrap()
}

/// Looks until something is so.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain: {what}");
}

pub(crate) fn wait_for(path: &Path) {
    wait_until(&path.display().to_string(), || path.exists());
}
