//! What a hook costs: the whole way, from the client's shell to the answer.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::definition;
use crate::live::{LiveError, Scratch, micros};
use jackline_clients::Client;
use jackline_clients::installation::HookEntry;
use jackline_clients::live_client::SamplePayload;

/// How many calls are measured.
const CALLS: usize = 100;

/// How long the gate takes to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// How many calls were measured.
    pub calls: usize,
    /// Half of them took no longer.
    pub p50_micros: u64,
    /// All but a hundredth took no longer.
    pub p99_micros: u64,
}

/// Asks about harmless calls, one after another, as the client would.
pub(super) fn measure(client: &Client, hooks: &[HookEntry]) -> Result<Option<Latency>, LiveError> {
    let scratch = Scratch::new()?;
    scratch.write("jackline.yaml", &definition())?;
    let line = |event: &str| {
        hooks.iter().find(|hook| hook.event == event).map(HookEntry::command).unwrap_or_default()
    };
    let mut took = Vec::new();
    for number in 0..CALLS {
        let [before, after] =
            client.live.sample_payloads(&scratch.work(), &format!("call-{number}"));
        let ask =
            |sample: &SamplePayload| ask(client, &scratch, line(sample.event), &sample.payload);
        let began = micros();
        if ask(&before)? {
            took.push(micros().saturating_sub(began));
        }
        // A call that never comes back stays open, and the open ones are bounded.
        ask(&after)?;
    }
    took.sort_unstable();
    let at = |hundredths: usize| took.get((took.len() * hundredths).div_ceil(100).max(1) - 1);
    let (Some(p50), Some(p99)) = (at(50), at(99)) else { return Ok(None) };
    Ok(Some(Latency { calls: took.len(), p50_micros: *p50, p99_micros: *p99 }))
}

/// Runs a hook; whether it had no objection.
fn ask(client: &Client, scratch: &Scratch, line: &str, payload: &Value) -> Result<bool, LiveError> {
    let started = |source| LiveError::Start { program: Path::new("/bin/sh").to_owned(), source };
    let mut command = Command::new("/bin/sh");
    scratch.enter(&mut command);
    command.args(["-c", line]).env(client.live.project_variable(), scratch.work());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(started)?;
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut input| input.write_all(payload.to_string().as_bytes()));
    let output = child.wait_with_output().map_err(started)?;
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(started(error)),
        _ => Ok(output.status.success() && output.stdout.is_empty()),
    }
}
