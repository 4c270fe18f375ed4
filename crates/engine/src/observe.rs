//! The pure step before a decision: what a record keeps of large payloads.
//!
//! The engine decides on what the record holds and on nothing else, so that a
//! raw payload may expire without breaking replay.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use jackline_shell::LINE_BYTES_MAX;

use crate::definition::Definition;
use crate::digest::{Digest, Digest128};
use crate::event::{Arguments, Elided, Event, EventKind, Payload, Payloads};
use crate::json;
use crate::tool::Kind;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedResult {
    /// Its length.
    pub bytes: u64,
    /// Its fingerprint.
    pub digest: Digest128,
}

/// Looks at an event's payloads. Call it on the elided event.
pub fn observe(event: &Event) -> Observation {
    match &event.kind {
        EventKind::ToolProposed { args, .. } => Observation {
            args: Some(match args {
                Arguments::Parsed(value) => json::digest(value),
                Arguments::Text(payload) => payload_digest(payload).digest,
            }),
            result: None,
        },
        EventKind::ToolFinished { result: Some(result), .. } => {
            Observation { args: None, result: Some(payload_digest(result)) }
        }
        _ => Observation::default(),
    }
}

fn payload_digest(payload: &Payload) -> ObservedResult {
    match payload {
        Payload::Inline(text) => {
            ObservedResult { bytes: text.len() as u64, digest: Digest128::of(text.as_bytes()) }
        }
        Payload::Elided { elided } => {
            ObservedResult { bytes: elided.bytes, digest: elided.sha256.half() }
        }
    }
}

/// Moves what is too large for a record into blobs. A command line stays, as
/// far as it can be understood: it is what a decision rests on.
pub fn elide(event: &mut Event, definition: &Definition) -> Vec<Blob> {
    let pointer = line_pointer(event, definition);
    let line = pointer.as_deref().and_then(|pointer| take_line(event, pointer));
    let mut elider = Elider(Vec::new());
    event.visit(&mut elider);
    if let (Some(pointer), Some(line)) = (pointer, line) {
        put_line(event, &pointer, line);
    }
    elider.0
}

/// Where the command line of a proposed call is.
fn line_pointer(event: &Event, definition: &Definition) -> Option<String> {
    let EventKind::ToolProposed { tool, args: Arguments::Parsed(args), .. } = &event.kind else {
        return None;
    };
    let tool = definition.resolve(tool.as_str());
    (tool.kind == Kind::Exec).then(|| tool.line_pointer(args).to_string())
}

fn take_line(event: &mut Event, pointer: &str) -> Option<Value> {
    let EventKind::ToolProposed { args: Arguments::Parsed(args), .. } = &mut event.kind else {
        return None;
    };
    let line = args.pointer_mut(pointer)?;
    let fits = line.as_str().is_some_and(|text| text.len() <= LINE_BYTES_MAX);
    fits.then(|| line.take())
}

fn put_line(event: &mut Event, pointer: &str, line: Value) {
    let EventKind::ToolProposed { args: Arguments::Parsed(args), .. } = &mut event.kind else {
        return;
    };
    if let Some(place) = args.pointer_mut(pointer) {
        *place = line;
    } else if let (Value::Object(fields), Some(key)) = (args, pointer.strip_prefix('/')) {
        // The rest was too large as a whole; the line still is to be seen.
        fields.insert(key.to_string(), line);
    }
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

/// First the long strings inside a large value, then, if that was not enough,
/// the whole of it.
fn elide_value(value: &mut Value, blobs: &mut Vec<Blob>) {
    if size(value) <= BLOB_OVER_BYTES {
        return;
    }
    let before = blobs.len();
    elide_strings(value, blobs);
    if size(value) > BLOB_OVER_BYTES {
        let whole = value.to_string();
        blobs.truncate(before);
        let elided = to_blob(whole, blobs);
        *value = json!({ "$elided": elided });
    }
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
        let EventKind::ToolProposed { args: Arguments::Parsed(args), .. } = &event.kind else {
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
