//! Checks the decoder and the streaming check with texts that models write as JSON.

use std::sync::LazyLock;

use jackline_decode::stream::{Refusal, StreamCheck, StreamSchema};
use jackline_decode::{
    DecodeOutcome, ERRORS_MAX, REQUEST_BYTES_MAX, Schema, TextEnding, check_value, decode as climb,
};
use serde_json::{Value, json};

use crate::run_in_time;

/// The first byte chooses a schema and how the text ended. The rest is the text. The schema must
/// allow every decoded value, and the streaming check must accept every valid text.
pub fn decode(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let (whole, streamed) = schema(usize::from(choice >> 1));
    let ending = if choice & 1 == 1 { TextEnding::CutOff } else { TextEnding::Finished };
    let text = String::from_utf8_lossy(bytes);
    let decoded = run_in_time(|| climb(&text, Some(whole), ending));
    assert_eq!(
        decoded,
        climb(&text, Some(whole), ending),
        "decoding the same text twice gives the same result"
    );
    check_decoded(&decoded, whole);
    check_without_schema(&text, ending);
    check_stream(bytes, whole, streamed);
}

fn check_decoded(decoded: &DecodeOutcome, schema: &Schema) {
    match decoded {
        DecodeOutcome::Accepted(accepted) => {
            assert!(schema.allows(&accepted.value), "the schema refuses {}", accepted.value);
            let checked = check_value(accepted.value.clone(), schema);
            let same = matches!(&checked, DecodeOutcome::Accepted(checked) if checked.value == accepted.value);
            assert!(same, "{} has changed: {checked:?}", accepted.value);
        }
        DecodeOutcome::Invalid(invalid) => {
            assert!((1..=ERRORS_MAX).contains(&invalid.errors.len()), "{invalid:?}");
            assert!(invalid.render_request().len() <= REQUEST_BYTES_MAX, "{invalid:?}");
            assert!(invalid.example.as_ref().is_none_or(|example| schema.allows(example)));
        }
        DecodeOutcome::CutOff(cut) => assert!(!cut.render_request().is_empty()),
    }
}

/// A decoded value, written as JSON and decoded again, is the same value.
fn check_without_schema(text: &str, ending: TextEnding) {
    if let DecodeOutcome::Accepted(accepted) = climb(text, None, ending) {
        let written = accepted.value.to_string();
        let DecodeOutcome::Accepted(decoded) = climb(&written, None, TextEnding::Finished) else {
            unreachable!("{written} can't be decoded");
        };
        assert_eq!(decoded.value, accepted.value, "written as {written}");
        assert!(decoded.repairs.is_empty(), "{written} needs {:?}", decoded.repairs);
    }
}

/// The streaming check gives the same correct result, however the text is split.
fn check_stream(bytes: &[u8], whole: &Schema, streamed: &StreamSchema) {
    let outcome = run_in_time(|| feed_chunks(streamed, bytes, bytes.len()));
    assert_eq!(feed_chunks(streamed, bytes, 1), outcome, "byte by byte");
    assert_eq!(feed_chunks(streamed, bytes, 3), outcome, "in pieces of three");
    if let Err(refusal) = &outcome {
        assert!(refusal.position <= bytes.len() as u64, "{refusal:?}");
        assert!(!refusal.expected.is_empty(), "{refusal:?}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return assert!(outcome.is_err(), "invalid UTF-8 is not JSON");
    };
    match climb(text, Some(whole), TextEnding::Finished) {
        DecodeOutcome::Accepted(accepted) if accepted.repairs.is_empty() => {
            assert_eq!(outcome, Ok(()), "{text} is valid");
        }
        // A text that passes is at least JSON, and breaks only rules that are left to the full
        // validation.
        _ if outcome.is_ok() => {
            let read = climb(text, None, TextEnding::Finished);
            let strict = matches!(&read, DecodeOutcome::Accepted(read) if read.repairs.is_empty());
            assert!(strict, "{text} passes but is decoded as {read:?}");
        }
        _ => {}
    }
}

fn feed_chunks(schema: &StreamSchema, bytes: &[u8], chunk_bytes: usize) -> Result<(), Refusal> {
    let mut stream = StreamCheck::new(schema);
    bytes.chunks(chunk_bytes.max(1)).try_for_each(|chunk| stream.feed(chunk))?;
    stream.finish()
}

fn schema(number: usize) -> &'static (Schema, StreamSchema) {
    let all = &*SCHEMAS;
    all.get(number % all.len()).unwrap()
}

static SCHEMAS: LazyLock<Vec<(Schema, StreamSchema)>> = LazyLock::new(|| {
    let compile =
        |schema: &Value| (Schema::compile(schema).unwrap(), StreamSchema::compile(schema).unwrap());
    sources().iter().map(compile).collect()
});

/// Schemas with every keyword, also those that are left to the full validation.
fn sources() -> Vec<Value> {
    vec![
        json!(true),
        json!({ "type": "object" }),
        json!({
            "type": "object", "required": ["goal", "steps"], "additionalProperties": false,
            "properties": {
                "goal": { "type": "string", "minLength": 1, "maxLength": 20 },
                "steps": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/step" } },
            },
            "$defs": { "step": { "anyOf": [
                { "type": "object", "required": ["tool", "path"], "additionalProperties": false,
                  "properties": { "tool": { "const": "read" }, "path": { "type": "string" }, "limit": { "type": "integer", "minimum": 1 } } },
                { "type": "object", "required": ["tool", "command"],
                  "properties": { "tool": { "const": "shell" }, "command": { "type": "string", "pattern": "^[a-z]" } } },
            ] } },
        }),
        json!({ "enum": ["a", "ab", "\u{e9}\n", 1, 1.5, -0.0, 1e300, null, true, [], [1, "x"], { "k": { "l": null } }, {}] }),
        json!({ "anyOf": [
            { "type": "integer", "minimum": -5, "exclusiveMaximum": 100 },
            { "type": "number", "multipleOf": 0.25, "exclusiveMinimum": 1e3, "maximum": 1e18 },
        ] }),
        json!({
            "type": "object", "minProperties": 1, "maxProperties": 3,
            "patternProperties": { "^x_": { "type": "integer" }, "_y$": { "minimum": 3 } },
            "propertyNames": { "maxLength": 6 },
            "additionalProperties": { "type": ["string", "null"] },
        }),
        json!({
            "type": "array", "prefixItems": [{ "type": "boolean" }, { "enum": ["on", "off"] }],
            "items": { "type": "array", "items": { "$ref": "#" }, "maxItems": 2 }, "maxItems": 4,
        }),
        json!({ "oneOf": [
            { "type": "object", "required": ["a"] },
            { "type": "object", "required": ["b"] },
            { "type": "string", "maxLength": 4 },
            { "type": ["string", "number"] },
        ] }),
        json!({
            "type": "object",
            "allOf": [{ "properties": { "a": { "type": "string" } } }, { "required": ["a"] }],
            "not": { "required": ["z"] },
            "if": { "required": ["b"] }, "then": { "required": ["c"] },
            "dependentRequired": { "d": ["a", "c"] },
            "properties": { "e": { "type": "array", "uniqueItems": true, "contains": { "type": "integer" } } },
            "unevaluatedProperties": { "type": ["array", "string", "integer"] },
        }),
        json!({
            "$ref": "#/$defs/tree",
            "$defs": { "tree": { "type": "object", "required": ["v"], "properties": {
                "v": { "type": ["integer", "string"] },
                "kids": { "type": "array", "items": { "$ref": "#/$defs/tree" } },
            }, "additionalProperties": false } },
        }),
    ]
}
