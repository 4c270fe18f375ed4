//! The pure step before a decision: what a record keeps of large payloads.
//!
//! The engine decides on what the record holds and on nothing else, so that a
//! raw payload may expire without breaking replay.

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
    Arguments, Elided, Event, EventKind, Payload, Payloads, ToolFinished, ToolProposed,
};
use crate::json;
use crate::tool::Kind;

pub use error::ErrorClass;
pub use summary::{BuildOutcome, Runner, Summaries, TestSummary, TestVerdict, summaries};

/// Texts longer than this are kept in a blob instead of the record.
pub const BLOB_OVER_BYTES: usize = 64 * 1024;

/// Within arguments above [`BLOB_OVER_BYTES`], strings longer than this go to blobs.
const ARGUMENT_OVER_BYTES: usize = 4 * 1024;

/// How much of either end of an elided text stays in the record.
const ENDS_BYTES: usize = 512;

/// A payload that the record only points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Its name.
    pub sha256: Digest,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// What was seen of an event's payloads, recorded with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Fingerprint of the canonical arguments of a proposed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Digest128>,
    /// Length and fingerprint of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ObservedResult>,
}

/// What was seen of a tool's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedResult {
    /// Its length.
    pub bytes: u64,
    /// Its fingerprint.
    pub digest: Digest128,
    /// The same without what changes by itself: times, durations, process
    /// numbers. Left out where there is no such thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrubbed: Option<Digest128>,
    /// Which error it is, where the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorClass>,
    /// What it says of tests that were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestSummary>,
    /// What it says of a build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildOutcome>,
}

impl ObservedResult {
    /// What two results have in common that say the same.
    pub(crate) fn says(&self) -> Digest128 {
        self.scrubbed.unwrap_or(self.digest)
    }
}

/// Looks at an event's payloads. Call it before they are elided: what it sees
/// is all that a decision will know of them.
pub fn observe(event: &Event) -> Observation {
    match &event.kind {
        EventKind::ToolProposed(ToolProposed { args, .. }) => Observation {
            args: Some(match args {
                Arguments::Parsed(value) => json::digest(value),
                Arguments::Text(payload) => text_digest(payload),
            }),
            result: None,
        },
        EventKind::ToolFinished(ToolFinished { result: Some(result), .. }) => {
            observe_known(event, observe_result(result))
        }
        _ => Observation::default(),
    }
}

/// The same for an event with a result of which is known what it says.
pub fn observe_known(event: &Event, says: ObservedResult) -> Observation {
    let EventKind::ToolFinished(ToolFinished { result: Some(result), status, exit_code, .. }) =
        &event.kind
    else {
        return Observation::default();
    };
    let error = error::classify(result.head(), *status, *exit_code);
    Observation { args: None, result: Some(ObservedResult { error, ..says }) }
}

/// The fingerprint of arguments that came as text: what they say counts, not how
/// it is written.
fn text_digest(payload: &Payload) -> Digest128 {
    let said = match payload {
        Payload::Inline(text) => json::parse_strict(text.as_bytes()).ok(),
        Payload::Elided { .. } => None,
    };
    said.filter(Value::is_object)
        .map_or_else(|| payload_digest(payload).1, |said| json::digest(&said))
}

/// Length and fingerprint.
fn payload_digest(payload: &Payload) -> (u64, Digest128) {
    match payload {
        Payload::Inline(text) => (text.len() as u64, Digest128::of(text.as_bytes())),
        Payload::Elided { elided } => (elided.bytes, elided.sha256.half()),
    }
}

/// What a result says, whatever became of its call.
fn observe_result(result: &Payload) -> ObservedResult {
    match result {
        Payload::Inline(text) => observe_text(text),
        Payload::Elided { .. } => {
            let (bytes, digest) = payload_digest(result);
            // Its two ends are too short to tell more.
            ObservedResult { bytes, digest, scrubbed: None, error: None, tests: None, build: None }
        }
    }
}

/// The same for a result that is all there.
pub fn observe_text(text: &str) -> ObservedResult {
    let (bytes, digest) = (text.len() as u64, Digest128::of(text.as_bytes()));
    let Summaries { tests, build } = summaries(text);
    ObservedResult { bytes, digest, scrubbed: scrub::scrub(text), error: None, tests, build }
}

/// How long a value may be that stays although the rest of the arguments goes.
const STAYS_BYTES_MAX: usize = 8 * 1024;

/// Moves what is too large for a record into blobs. A command line stays, as
/// far as it can be understood, and so do the paths that a tool is declared to
/// take: they are what a decision rests on.
pub fn elide(event: &mut Event, definition: &Definition) -> Vec<Blob> {
    let staying = staying(event, definition);
    let mut elider = Elider(Vec::new());
    let line = staying.first().filter(|stays| stays.line).map(|stays| stays.pointer.clone());
    if let (Some(pointer), Some(args)) = (line, arguments(event))
        && let Some(line) = args.pointer_mut(&pointer)
    {
        // Out of the way, so that it does not count.
        line.take();
    }
    event.visit(&mut elider);
    if let Some(args) = arguments(event) {
        staying.into_iter().for_each(|stays| put(args, &stays.pointer, stays.value));
    }
    elider.0
}

/// A value that stays in the record.
struct Stays {
    pointer: String,
    value: Value,
    line: bool,
}

fn arguments(event: &mut Event) -> Option<&mut Value> {
    match &mut event.kind {
        EventKind::ToolProposed(ToolProposed { args: Arguments::Parsed(args), .. }) => Some(args),
        _ => None,
    }
}

/// What stays of the arguments of a call, the command line first.
fn staying(event: &Event, definition: &Definition) -> Vec<Stays> {
    let EventKind::ToolProposed(ToolProposed { tool, args: Arguments::Parsed(args), .. }) =
        &event.kind
    else {
        return Vec::new();
    };
    if size(args) <= BLOB_OVER_BYTES {
        return Vec::new();
    }
    let tool = definition.resolve(tool.as_str());
    let line = (tool.kind == Kind::Exec).then(|| tool.line_pointer(args).to_string());
    let declared = tool.declared.into_iter();
    let paths = declared.flat_map(|tool| {
        let lines = tool.offset.iter().chain(&tool.limit);
        tool.paths.read.iter().chain(&tool.paths.write).chain(lines)
    });
    let most = |line: bool| if line { LINE_BYTES_MAX + 2 } else { STAYS_BYTES_MAX };
    let pointers = line.into_iter().map(|pointer| (pointer, true));
    pointers
        .chain(paths.map(|pointer| (pointer.clone(), false)))
        .filter_map(|(pointer, line)| {
            let value = args.pointer(&pointer).filter(|value| size(value) <= most(line))?.clone();
            Some(Stays { pointer, value, line })
        })
        .collect()
}

/// Puts a value where a pointer leads, through what was taken away.
fn put(args: &mut Value, pointer: &str, value: Value) {
    let mut at = args;
    for key in pointer.split('/').skip(1) {
        let Value::Object(fields) = at else { return };
        at = fields.entry(key.to_string()).or_insert_with(|| json!({}));
    }
    *at = value;
}

struct Elider(Vec<Blob>);

impl Payloads for Elider {
    fn text(&mut self, payload: &mut Payload) {
        if let Payload::Inline(text) = payload
            && text.len() > BLOB_OVER_BYTES
        {
            let elided = to_blob(core::mem::take(text), &mut self.0);
            *payload = Payload::Elided { elided };
        }
    }

    fn value(&mut self, value: &mut Value) {
        elide_value(value, &mut self.0);
    }
}

/// First the long strings inside a large value, then its largest lists and
/// mappings. What is short stays, because decisions hang on it: a path, an amount.
fn elide_value(value: &mut Value, blobs: &mut Vec<Blob>) {
    if size(value) <= BLOB_OVER_BYTES {
        return;
    }
    elide_strings(value, blobs);
    if size(value) <= BLOB_OVER_BYTES {
        return;
    }
    if let Value::Object(fields) = value {
        let mut sizes: Vec<(usize, String)> = fields
            .iter()
            .filter(|(_, field)| field.is_array() || field.is_object())
            .map(|(name, field)| (size(field), name.clone()))
            .collect();
        sizes.sort();
        let mut left =
            fields.iter().map(|(name, field)| name.len() + 4 + size(field)).sum::<usize>();
        while left > BLOB_OVER_BYTES
            && let Some((bytes, name)) = sizes.pop()
            && let Some(field) = fields.get_mut(&name)
        {
            let elided = to_blob(field.to_string(), blobs);
            *field = json!({ "$elided": elided });
            left = left.saturating_sub(bytes) + size(field);
        }
        if left <= BLOB_OVER_BYTES {
            return;
        }
    }
    let elided = to_blob(value.to_string(), blobs);
    *value = json!({ "$elided": elided });
}

fn elide_strings(value: &mut Value, blobs: &mut Vec<Blob>) {
    match value {
        Value::String(text) if text.len() > ARGUMENT_OVER_BYTES => {
            let elided = to_blob(core::mem::take(text), blobs);
            *value = json!({ "$elided": elided });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| elide_strings(item, blobs)),
        Value::Object(map) => map.values_mut().for_each(|item| elide_strings(item, blobs)),
        _ => {}
    }
}

fn to_blob(text: String, blobs: &mut Vec<Blob>) -> Elided {
    let head = text.get(..text.floor_char_boundary(ENDS_BYTES)).unwrap_or("").to_string();
    let tail_from = text.ceil_char_boundary(text.len().saturating_sub(ENDS_BYTES));
    let tail = text.get(tail_from..).unwrap_or("").to_string();
    let sha256 = Digest::of(text.as_bytes());
    let elided = Elided { bytes: text.len() as u64, sha256, head, tail };
    blobs.push(Blob { sha256, bytes: text.into_bytes() });
    elided
}

/// About how many bytes a value takes in a record.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, item)| key.len() + 4 + size(item)).sum::<usize>() + 2
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
    fn many_small_values_are_elided_as_a_whole() {
        let mut event = proposed(&json!({"n": (0..40_000).collect::<Vec<u32>>()}));
        assert_eq!(elide(&mut event, &Definition::default()).len(), 1);
        assert!(serde_json::to_vec(&event).unwrap().len() < 4_000);
    }

    #[test]
    fn what_is_small_stays() {
        let mut event = proposed(&json!({"content": "x".repeat(60_000)}));
        let before = event.clone();
        assert_eq!(elide(&mut event, &Definition::default()), []);
        assert_eq!(event, before);
    }
}
