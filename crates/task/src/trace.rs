//! The trace of a session: a line a call, with everything, for those who repair it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jackline_attempt::{InternalOutcome, Normalization, Trace};
use jackline_engine::Timestamp;
use jackline_runtime::redact_text;
use serde::Serialize;
use serde_json::{Map, Value};

/// The name of the trace in the directory of its session.
pub const TRACE_FILE: &str = "attempts.jsonl";

/// One call that has ended.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    pub(crate) timestamp: Timestamp,
    pub(crate) runtime: &'static str,
    pub(crate) session: &'a str,
    pub(crate) call_id: &'a str,
    pub(crate) parent_call_id: Option<&'a str>,
    pub(crate) depth: u32,
    pub(crate) name: &'a str,
    pub(crate) model: String,
    pub(crate) arguments: &'a Map<String, Value>,
    /// What was written last.
    pub(crate) code: &'a str,
    /// How often the model was asked.
    pub(crate) generation_attempt: u32,
    pub(crate) duration_ms: u64,
    pub(crate) outcome_status: &'static str,
    /// The outcome as it is, raw.
    pub(crate) outcome: &'a InternalOutcome,
    #[serde(flatten)]
    pub(crate) trace: &'a Trace,
    pub(crate) latest_failure_stage: Option<&'a str>,
    pub(crate) latest_failure_class: Option<&'a str>,
    pub(crate) latest_failure_message: Option<&'a str>,
    /// How often each objection was raised in this call.
    pub(crate) guardrail_violation_subtypes: &'a BTreeMap<String, u32>,
    /// What whoever asked was told instead.
    pub(crate) normalization: Option<&'a Normalization>,
}

/// Adds a call to the trace; secrets are left out.
pub(crate) fn append(directory: &Path, line: &Line<'_>) -> std::io::Result<()> {
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
