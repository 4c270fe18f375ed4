//! Measures how long a hook takes, from the client's shell to the answer.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::definition;
use crate::live::{LiveError, ScratchHome, micros};
use jackline_clients::Client;
use jackline_clients::installation::HookEntry;
use jackline_clients::live_client::SamplePayload;

/// How many calls are measured.
const CALLS: usize = 100;

/// How long a hook takes to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookLatency {
    /// How many calls were measured.
    pub calls: usize,
    /// The median.
    pub p50_micros: u64,
    /// The 99th percentile.
    pub p99_micros: u64,
}

/// Runs the hooks for harmless calls, one after another, like the client.
pub(super) fn measure(
    client: &Client,
    hooks: &[HookEntry],
) -> Result<Option<HookLatency>, LiveError> {
    let scratch = ScratchHome::new()?;
    scratch.write("jackline.yaml", &definition())?;
    let line = |event: &str| {
        hooks.iter().find(|hook| hook.event == event).map(HookEntry::command).unwrap_or_default()
    };
    let mut durations = Vec::new();
    for number in 0..CALLS {
        let [before, after] =
            client.live.sample_payloads(&scratch.work(), &format!("call-{number}"));
        let ask = |sample: &SamplePayload| {
            run_hook(client, &scratch, line(sample.event), &sample.payload)
        };
        let start = micros();
        if ask(&before)? {
            durations.push(micros().saturating_sub(start));
        }
        // Report the result too: a call without one stays open, and the number of open calls is
        // limited.
        ask(&after)?;
    }
    durations.sort_unstable();
    let at =
        |hundredths: usize| durations.get((durations.len() * hundredths).div_ceil(100).max(1) - 1);
    let (Some(p50), Some(p99)) = (at(50), at(99)) else { return Ok(None) };
    Ok(Some(HookLatency { calls: durations.len(), p50_micros: *p50, p99_micros: *p99 }))
}

/// Runs a hook. Returns whether its answer was empty, so that the call may run.
fn run_hook(
    client: &Client,
    scratch: &ScratchHome,
    line: &str,
    payload: &Value,
) -> Result<bool, LiveError> {
    let started = |source| LiveError::Start { program: Path::new("/bin/sh").to_owned(), source };
    let mut command = Command::new("/bin/sh");
    scratch.configure_command(&mut command);
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
