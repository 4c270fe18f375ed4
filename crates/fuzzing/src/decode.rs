//! What models write where JSON is wanted: the ladder, and the check while it comes.

use std::sync::LazyLock;

use jackline_decode::stream::{Refusal, Stream, StreamSchema};
use jackline_decode::{
    Decoded, ERRORS_MAX, Ending, REQUEST_BYTES_MAX, Schema, check, decode as climb,
};
use serde_json::{Value, json};

use crate::in_time;

/// The first byte chooses a schema and how the text ended; the rest is the text. What
/// is decoded is allowed by its schema, and what is allowed as it was written is let
/// pass while it comes.
pub fn decode(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let (whole, streamed) = schema(usize::from(choice >> 1));
    let ending = if choice & 1 == 1 { Ending::CutOff } else { Ending::Finished };
    let text = String::from_utf8_lossy(bytes);
    let decoded = in_time(|| climb(&text, Some(whole), ending));
    assert_eq!(decoded, climb(&text, Some(whole), ending), "the same text is decoded alike");
    check_decoded(&decoded, whole);
    check_without_schema(&text, ending);
    check_stream(bytes, whole, streamed);
}

fn check_decoded(decoded: &Decoded, schema: &Schema) {
    match decoded {
        Decoded::Accepted(accepted) => {
            assert!(schema.allows(&accepted.value), "the schema refuses {}", accepted.value);
            let again = check(accepted.value.clone(), schema);
            let same = matches!(&again, Decoded::Accepted(again) if again.value == accepted.value);
            assert!(same, "{} is not what it was: {again:?}", accepted.value);
        }
        Decoded::Invalid(invalid) => {
            assert!((1..=ERRORS_MAX).contains(&invalid.errors.len()), "{invalid:?}");
            assert!(invalid.render_request().len() <= REQUEST_BYTES_MAX, "{invalid:?}");
            assert!(invalid.example.as_ref().is_none_or(|example| schema.allows(example)));
        }
        Decoded::CutOff(cut) => assert!(!cut.render_request().is_empty()),
    }
}

/// What was decoded is JSON, and read as such it is the same.
fn check_without_schema(text: &str, ending: Ending) {
    if let Decoded::Accepted(accepted) = climb(text, None, ending) {
        let written = accepted.value.to_string();
        let Decoded::Accepted(again) = climb(&written, None, Ending::Finished) else {
            unreachable!("{written} is not decoded again");
        };
        assert_eq!(again.value, accepted.value, "written as {written}");
        assert!(again.repairs.is_empty(), "{written} needs {:?}", again.repairs);
    }
}

/// Never wrong, however it is cut.
fn check_stream(bytes: &[u8], whole: &Schema, streamed: &StreamSchema) {
    let outcome = in_time(|| fed(streamed, bytes, bytes.len()));
    assert_eq!(fed(streamed, bytes, 1), outcome, "byte by byte");
    assert_eq!(fed(streamed, bytes, 3), outcome, "in pieces of three");
    if let Err(refusal) = &outcome {
        assert!(refusal.position <= bytes.len() as u64, "{refusal:?}");
        assert!(!refusal.expected.is_empty(), "{refusal:?}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return assert!(outcome.is_err(), "what is not UTF-8 is no JSON");
    };
    match climb(text, Some(whole), Ending::Finished) {
        Decoded::Accepted(accepted) if accepted.repairs.is_empty() => {
            assert_eq!(outcome, Ok(()), "{text} is valid");
        }
        // What passes is JSON at least, and what only full validation forbids is valid otherwise.
        _ if outcome.is_ok() => {
            let read = climb(text, None, Ending::Finished);
            let strict = matches!(&read, Decoded::Accepted(read) if read.repairs.is_empty());
            assert!(strict, "{text} passes and is read as {read:?}");
        }
        _ => {}
    }
}

fn fed(schema: &StreamSchema, bytes: &[u8], chunk_bytes: usize) -> Result<(), Refusal> {
    let mut stream = Stream::new(schema);
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

/// Something of every keyword, those included that are left to full validation.
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
