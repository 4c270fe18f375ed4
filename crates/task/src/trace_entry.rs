//! The trace file of a session: one line per call with all details, for engineers.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jackline_attempt::{CallTrace, InternalOutcome, PublicOutcome};
use jackline_engine::Timestamp;
use jackline_host::clock::now;
use jackline_runtime::redact_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of the trace file in the session directory.
pub const TRACE_FILE: &str = "attempts.jsonl";

/// This program, in traces.
pub(crate) const RUNTIME: &str = concat!("jackline/", env!("CARGO_PKG_VERSION"));

/// One call that has ended.
#[derive(Debug, Serialize)]
pub(crate) struct TraceEntry<'a> {
    pub(crate) timestamp: Timestamp,
    pub(crate) runtime: &'static str,
    pub(crate) session: &'a str,
    pub(crate) call_id: &'a str,
    pub(crate) parent_call_id: Option<&'a str>,
    pub(crate) depth: u32,
    pub(crate) name: &'a str,
    pub(crate) model: String,
    pub(crate) arguments: &'a Map<String, Value>,
    /// The last artifact that was written.
    pub(crate) code: &'a str,
    /// How many times the model was asked.
    pub(crate) generation_attempt: u32,
    pub(crate) duration_ms: u64,
    pub(crate) outcome_status: &'static str,
    /// The internal outcome.
    pub(crate) outcome: &'a InternalOutcome,
    #[serde(flatten)]
    pub(crate) trace: &'a CallTrace,
    pub(crate) latest_failure_stage: Option<&'a str>,
    pub(crate) latest_failure_class: Option<&'a str>,
    pub(crate) latest_failure_message: Option<&'a str>,
    /// How many times each violation subtype was raised in this call.
    pub(crate) guardrail_violation_subtypes: &'a BTreeMap<String, u32>,
    /// The outcome that the caller got, if this is the call of the task. A
    /// run has its own line for it.
    pub(crate) user_outcome: Option<&'a PublicOutcome>,
}

/// Appends a call to the trace, without secrets.
pub(crate) fn append_entry(directory: &Path, line: &TraceEntry<'_>) -> std::io::Result<()> {
    append_line(directory, serde_json::to_value(line)?)
}

/// The last line of a run: the outcome that its caller got.
#[derive(Debug, Serialize)]
struct RunOutcomeLine<'a> {
    timestamp: Timestamp,
    runtime: &'static str,
    session: &'a str,
    user_outcome: &'a PublicOutcome,
    user_outcome_normalized: bool,
    user_outcome_normalization_policy: Option<&'static str>,
}

/// Appends the public outcome of a run to its trace. The calls of a run have none of their own.
pub fn append_run_outcome(
    directory: &Path,
    session: &str,
    outcome: &PublicOutcome,
) -> std::io::Result<()> {
    let line = RunOutcomeLine {
        timestamp: now().wall,
        runtime: RUNTIME,
        session,
        user_outcome: outcome,
        user_outcome_normalized: outcome.normalized,
        user_outcome_normalization_policy: outcome.normalization_policy,
    };
    append_line(directory, serde_json::to_value(line)?)
}

/// How often the calls of a run were retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryCounts {
    /// After violations.
    pub guardrail: u32,
    /// For any reason, within a call or by another call.
    pub all: u32,
}

impl RetryCounts {
    /// Counts the retries in a trace. Calls of delegates belong to the call around them. Without a
    /// trace there were no calls.
    pub fn read(directory: &Path) -> Self {
        #[derive(Deserialize)]
        struct CallLine {
            depth: u32,
            generation_attempt: u32,
            guardrail_recovery_attempts: u32,
        }
        let Ok(file) = File::open(directory.join(TRACE_FILE)) else { return Self::default() };
        let (mut guardrail, mut asked) = (0_u32, 0_u32);
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            // Other lines are no calls, or a killed process left them incomplete.
            let Ok(call) = serde_json::from_str::<CallLine>(&line) else { continue };
            if call.depth == 0 {
                guardrail = guardrail.saturating_add(call.guardrail_recovery_attempts);
                asked = asked.saturating_add(call.generation_attempt);
            }
        }
        Self { guardrail, all: asked.saturating_sub(1) }
    }
}

fn append_line(directory: &Path, mut value: Value) -> std::io::Result<()> {
    redact(&mut value);
    let mut text = value.to_string();
    text.push('\n');
    let path = directory.join(TRACE_FILE);
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn redact(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(redacted) = redact_text(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(fields) => fields.values_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
