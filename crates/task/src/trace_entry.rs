//! The trace file of a session: one line per call with all details, for engineers.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jackline_attempt::{CallTrace, InternalOutcome, PublicOutcome};
use jackline_engine::Timestamp;
use jackline_runtime::redact_text;
use serde::Serialize;
use serde_json::{Map, Value};

/// The name of the trace file in the session directory.
pub const TRACE_FILE: &str = "attempts.jsonl";

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
    /// The outcome that the caller got, if this is the call of the task.
    pub(crate) user_outcome: Option<&'a PublicOutcome>,
}

/// Appends a call to the trace, without secrets.
pub(crate) fn append_entry(directory: &Path, line: &TraceEntry<'_>) -> std::io::Result<()> {
    let mut value = serde_json::to_value(line)?;
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
