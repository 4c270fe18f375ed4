//! The pure step before a decision: extracts what a record stores of large payloads.
//!
//! The engine decides only on the contents of the record, so that a raw payload may expire without
//! breaking replay.

mod emptiness;
mod error;
mod refusal;
mod scrub;
mod summary;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use jackline_shell::LINE_BYTES_MAX;

use crate::definition::Definition;
use crate::digest::{Digest, Digest128};
use crate::event::{
    Arguments, Elided, Event, EventKind, Payload, PayloadVisitor, ToolFinished, ToolProposed,
};
use crate::json;
use crate::tool::ToolKind;

pub use error::ErrorClass;
pub use summary::{BuildOutcome, Summaries, TestRunner, TestSummary, TestVerdict, parse_summaries};

/// Texts longer than this are stored in a blob instead of the record.
pub const BLOB_OVER_BYTES: usize = 64 * 1024;

/// Within arguments above [`BLOB_OVER_BYTES`], strings longer than this go to blobs.
const ELIDED_STRING_OVER_BYTES: usize = 4 * 1024;

/// How many bytes of each end of an elided text stay in the record.
const ELIDED_END_BYTES: usize = 512;

/// A payload that is stored outside the record. The record contains only its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The digest, which is its name.
    pub sha256: Digest,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// What was observed in an event's payloads. It is recorded with the event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The fingerprint of the canonical arguments of a proposed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Digest128>,
    /// The observation of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ObservedResult>,
}

/// What was observed in a tool's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedResult {
    /// Its length.
    pub bytes: u64,
    /// Its fingerprint.
    pub digest: Digest128,
    /// The fingerprint without parts that differ on every run: times, durations, process numbers.
    /// `None` if the result has no such parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrubbed: Option<Digest128>,
    /// The class of its error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorClass>,
    /// The test summary in the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestSummary>,
    /// The build outcome in the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildOutcome>,
    /// Whether it says that nothing was found.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub empty: bool,
}

impl ObservedResult {
    /// A digest that is equal for two results with the same content.
    pub(crate) fn content_digest(&self) -> Digest128 {
        self.scrubbed.unwrap_or(self.digest)
    }
}

/// Observes an event's payloads. This must be called before they are elided, because a decision
/// knows nothing else about them.
pub fn observe(event: &Event) -> Observation {
    match &event.kind {
        EventKind::ToolProposed(ToolProposed { args, .. }) => Observation {
            args: Some(match args {
                Arguments::Parsed(value) => json::canonical_digest(value),
                Arguments::Text(payload) => text_digest(payload),
            }),
            result: None,
        },
        EventKind::ToolFinished(ToolFinished { result: Some(result), .. }) => {
            observe_with_result(event, observe_result(result))
        }
        _ => Observation::default(),
    }
}

/// Observes an event with a result that was already observed.
pub fn observe_with_result(event: &Event, observed: ObservedResult) -> Observation {
    let EventKind::ToolFinished(ToolFinished { result: Some(result), status, exit_code, .. }) =
        &event.kind
    else {
        return Observation::default();
    };
    let error = error::classify_error(result.head(), *status, *exit_code);
    Observation { args: None, result: Some(ObservedResult { error, ..observed }) }
}

/// The fingerprint of arguments that came as text. Equal values have equal fingerprints, whatever
/// their formatting is.
fn text_digest(payload: &Payload) -> Digest128 {
    let parsed = match payload {
        Payload::Inline(text) => json::parse_strict(text.as_bytes()).ok(),
        Payload::Elided { .. } => None,
    };
    parsed
        .filter(Value::is_object)
        .map_or_else(|| payload_digest(payload).1, |parsed| json::canonical_digest(&parsed))
}

/// The length and the fingerprint of a payload.
fn payload_digest(payload: &Payload) -> (u64, Digest128) {
    match payload {
        Payload::Inline(text) => (text.len() as u64, Digest128::of(text.as_bytes())),
        Payload::Elided { elided } => (elided.bytes, elided.sha256.half()),
    }
}

/// Observes a result, without regard to the status of its call.
fn observe_result(result: &Payload) -> ObservedResult {
    match result {
        Payload::Inline(text) => observe_text(text),
        Payload::Elided { .. } => {
            let (bytes, digest) = payload_digest(result);
            // The two ends of an elided result are too short for more.
            ObservedResult {
                bytes,
                digest,
                scrubbed: None,
                error: None,
                tests: None,
                build: None,
                empty: false,
            }
        }
    }
}

/// Observes a complete result text.
pub fn observe_text(text: &str) -> ObservedResult {
    let (bytes, digest) = (text.len() as u64, Digest128::of(text.as_bytes()));
    let Summaries { tests, build } = parse_summaries(text);
    ObservedResult {
        bytes,
        digest,
        scrubbed: scrub::scrubbed_digest(text),
        error: None,
        tests,
        build,
        empty: emptiness::is_empty_result(text),
    }
}

/// The longest value that stays in a record although the other arguments are elided.
const RETAINED_VALUE_BYTES_MAX: usize = 8 * 1024;

/// Moves payloads that are too large for a record into blobs. A command line stays in the record up
/// to the length that can be parsed. The declared path arguments of a tool stay too. Decisions
/// depend on both.
pub fn elide(event: &mut Event, definition: &Definition) -> Vec<Blob> {
    let retained = retained_values(event, definition);
    let mut elider = Elider(Vec::new());
    let line = retained.first().filter(|value| value.line).map(|value| value.pointer.clone());
    if let (Some(pointer), Some(args)) = (line, arguments_mut(event))
        && let Some(line) = args.pointer_mut(&pointer)
    {
        // The line is taken out first, so that it does not count as a large value.
        line.take();
    }
    event.visit_payloads(&mut elider);
    if let Some(args) = arguments_mut(event) {
        retained.into_iter().for_each(|value| insert_at_pointer(args, &value.pointer, value.value));
    }
    elider.0
}

/// A value that stays in the record.
struct RetainedValue {
    pointer: String,
    value: Value,
    line: bool,
}

fn arguments_mut(event: &mut Event) -> Option<&mut Value> {
    match &mut event.kind {
        EventKind::ToolProposed(ToolProposed { args: Arguments::Parsed(args), .. }) => Some(args),
        _ => None,
    }
}

/// The arguments of a call that stay in the record, the command line first.
fn retained_values(event: &Event, definition: &Definition) -> Vec<RetainedValue> {
    let EventKind::ToolProposed(ToolProposed { tool, args: Arguments::Parsed(args), .. }) =
        &event.kind
    else {
        return Vec::new();
    };
    if record_size(args) <= BLOB_OVER_BYTES {
        return Vec::new();
    }
    let tool = definition.resolve_tool(tool.as_str());
    let line = (tool.kind == ToolKind::Exec).then(|| tool.command_line_pointer(args).to_string());
    let declared = tool.declared.into_iter();
    let paths = declared.flat_map(|tool| {
        let lines = tool.offset.iter().chain(&tool.limit);
        tool.paths.read.iter().chain(&tool.paths.write).chain(lines)
    });
    let bytes_max = |line: bool| if line { LINE_BYTES_MAX + 2 } else { RETAINED_VALUE_BYTES_MAX };
    let pointers = line.into_iter().map(|pointer| (pointer, true));
    pointers
        .chain(paths.map(|pointer| (pointer.clone(), false)))
        .filter_map(|(pointer, line)| {
            let value = args
                .pointer(&pointer)
                .filter(|value| record_size(value) <= bytes_max(line))?
                .clone();
            Some(RetainedValue { pointer, value, line })
        })
        .collect()
}

/// Inserts a value at a pointer. Objects that were elided on the way are created again.
fn insert_at_pointer(args: &mut Value, pointer: &str, value: Value) {
    let mut at = args;
    for key in pointer.split('/').skip(1) {
        let Value::Object(fields) = at else { return };
        at = fields.entry(key.to_string()).or_insert_with(|| json!({}));
    }
    *at = value;
}

struct Elider(Vec<Blob>);

impl PayloadVisitor for Elider {
    fn visit_text(&mut self, payload: &mut Payload) {
        if let Payload::Inline(text) = payload
            && text.len() > BLOB_OVER_BYTES
        {
            let elided = move_to_blob(core::mem::take(text), &mut self.0);
            *payload = Payload::Elided { elided };
        }
    }

    fn visit_value(&mut self, value: &mut Value) {
        elide_value(value, &mut self.0);
    }
}

/// Elides the long strings inside a large value first, then its largest lists and objects. Short
/// values stay, because decisions depend on them: a path, an amount.
fn elide_value(value: &mut Value, blobs: &mut Vec<Blob>) {
    if record_size(value) <= BLOB_OVER_BYTES {
        return;
    }
    elide_strings(value, blobs);
    if record_size(value) <= BLOB_OVER_BYTES {
        return;
    }
    if let Value::Object(fields) = value {
        let mut sizes: Vec<(usize, String)> = fields
            .iter()
            .filter(|(_, field)| field.is_array() || field.is_object())
            .map(|(name, field)| (record_size(field), name.clone()))
            .collect();
        sizes.sort();
        let mut remaining =
            fields.iter().map(|(name, field)| name.len() + 4 + record_size(field)).sum::<usize>();
        while remaining > BLOB_OVER_BYTES
            && let Some((bytes, name)) = sizes.pop()
            && let Some(field) = fields.get_mut(&name)
        {
            let elided = move_to_blob(field.to_string(), blobs);
            *field = json!({ "$elided": elided });
            remaining = remaining.saturating_sub(bytes) + record_size(field);
        }
        if remaining <= BLOB_OVER_BYTES {
            return;
        }
    }
    let elided = move_to_blob(value.to_string(), blobs);
    *value = json!({ "$elided": elided });
}

fn elide_strings(value: &mut Value, blobs: &mut Vec<Blob>) {
    match value {
        Value::String(text) if text.len() > ELIDED_STRING_OVER_BYTES => {
            let elided = move_to_blob(core::mem::take(text), blobs);
            *value = json!({ "$elided": elided });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| elide_strings(item, blobs)),
        Value::Object(map) => map.values_mut().for_each(|item| elide_strings(item, blobs)),
        _ => {}
    }
}

fn move_to_blob(text: String, blobs: &mut Vec<Blob>) -> Elided {
    let head = text.get(..text.floor_char_boundary(ELIDED_END_BYTES)).unwrap_or("").to_string();
    let tail_from = text.ceil_char_boundary(text.len().saturating_sub(ELIDED_END_BYTES));
    let tail = text.get(tail_from..).unwrap_or("").to_string();
    let sha256 = Digest::of(text.as_bytes());
    let elided = Elided { bytes: text.len() as u64, sha256, head, tail };
    blobs.push(Blob { sha256, bytes: text.into_bytes() });
    elided
}

/// The approximate number of bytes that a value takes in a record.
fn record_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| record_size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, item)| key.len() + 4 + record_size(item)).sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{parse_line, parse_recorded};

    fn proposed(args: &Value) -> Event {
        let line = json!({"session":"s","event":"tool_proposed","call":"c","tool":"t","args":args});
        parse_line(line.to_string().as_bytes(), None).unwrap()
    }

    #[test]
    fn a_long_string_leaves_the_rest_of_the_arguments_readable() {
        let content = "é".repeat(40_000);
        let mut event = proposed(&json!({"path": "a.txt", "content": content}));
        let blobs = elide(&mut event, &Definition::default());
        assert_eq!(blobs.len(), 1);
        assert_eq!(blobs[0].bytes, content.as_bytes());
        let EventKind::ToolProposed(ToolProposed { args: Arguments::Parsed(args), .. }) =
            &event.kind
        else {
            panic!("still a proposal")
        };
        assert_eq!(args["path"], "a.txt");
        assert_eq!(args["content"]["$elided"]["bytes"], 80_000);
        assert_eq!(parse_recorded(serde_json::to_value(&event).unwrap()).unwrap(), event);
    }

    #[test]
    fn many_small_values_are_elided_together() {
        let mut event = proposed(&json!({"n": (0..40_000).collect::<Vec<u32>>()}));
        assert_eq!(elide(&mut event, &Definition::default()).len(), 1);
        assert!(serde_json::to_vec(&event).unwrap().len() < 4_000);
    }

    #[test]
    fn small_arguments_stay_in_the_record() {
        let mut event = proposed(&json!({"content": "x".repeat(60_000)}));
        let before = event.clone();
        assert_eq!(elide(&mut event, &Definition::default()), []);
        assert_eq!(event, before);
    }
}
