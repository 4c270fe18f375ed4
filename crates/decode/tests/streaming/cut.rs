//! The cutter stops only where the text cannot be repaired.

use std::fs;
use std::path::Path;

use jackline_decode::stream::{StreamCutter, StreamSchema};
use jackline_decode::{DecodeOutcome, Schema, TextEnding, decode};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::random::{KeywordSet, RandomSource};

/// Feeds a text character by character. Returns the bytes read before the cut, the position
/// of the invalid byte, and what was expected.
fn cut_position(schema: &StreamSchema, text: &str) -> Option<(usize, u64, String)> {
    let mut cutter = StreamCutter::new(schema);
    let mut bytes_read = 0;
    for piece in text.split_inclusive(|_: char| true) {
        bytes_read += piece.len();
        if let Err(refusal) = cutter.feed(piece) {
            return Some((bytes_read, refusal.position, refusal.expected));
        }
    }
    None
}

fn is_accepted(text: &str, schema: &Schema) -> bool {
    matches!(decode(text, Some(schema), TextEnding::Finished), DecodeOutcome::Accepted(_))
}

fn write_file() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "mode": { "enum": ["text", "binary"] },
            "limit": { "type": "integer", "minimum": 10 },
            "lines": { "type": "array", "items": { "type": "integer" }, "maxItems": 2 },
            "of": { "type": "object" },
        },
        "required": ["path"],
        "additionalProperties": false,
    })
}

#[test]
fn a_stream_is_cut_where_the_ladder_could_not_repair_it() {
    let schema = write_file();
    let (stream, full) =
        (StreamSchema::compile(&schema).unwrap(), Schema::compile(&schema).unwrap());
    for (text, read, position) in [
        (r#"{"path": 3, "limit": 20}"#, r#"{"path": 3"#, 9),
        (r#"{"file": "a"}"#, r#"{"file":"#, 2),
        (r#"{"path": "a", "path": "b"}"#, r#"{"path": "a", "path":"#, 15),
        (r#"{"path": "a", "mode": "tabular"}"#, r#"{"path": "a", "mode": "ta"#, 24),
        (r#"{"path": "a", "mode": false}"#, r#"{"path": "a", "mode": false}"#, 22),
        (r#"{"limit": 20}"#, r#"{"limit": 20}"#, 12),
        (r#"{"limit": 5, "path": "a"}"#, r#"{"limit": 5, "path":"#, 11),
        (r#"{"limit": 5 , "path": "a"}"#, r#"{"limit": 5 "#, 11),
        (r#"{"lines": [1, 2, 3]}"#, r#"{"lines": [1, 2, 3"#, 15),
        (r#"{"lines": [[1]]}"#, r#"{"lines": [["#, 11),
        (r#"{"of": [1]}"#, r#"{"of": ["#, 7),
    ] {
        let found =
            cut_position(&stream, text).map(|(bytes, position, _)| (&text[..bytes], position));
        assert_eq!(found, Some((read, position)), "{text}");
        assert!(!is_accepted(text, &full) && !is_accepted(read, &full), "{text}");
    }
    let expected = cut_position(&stream, r#"{"file": 1}"#).unwrap().2;
    assert!(expected.starts_with("a key, one of `limit`"), "{expected}");
}

#[test]
fn a_text_that_can_be_repaired_is_read_to_its_end() {
    let schema = write_file();
    let (stream, full) =
        (StreamSchema::compile(&schema).unwrap(), Schema::compile(&schema).unwrap());
    for text in [
        r#"{"path": "a"}"#,
        r#"{"path": "a", "mode": "text", "limit": 10, "lines": [1, 2], "of": {"x": [1]},}"#,
        "```json\n{\"path\": \"a\"}\n```",
        "Sure: {'path': 'a'}",
        r#""{\"path\": \"a\"}""#,
        r#"{"path": "a", "of": "{\"x\": 1}"}"#,
        r#"{"path": "a", "lines": [1, 2,]}"#,
        r#"{"path": "a", "lines": "[1, 2]"}"#,
        r#"{"path": "say "hi" to them"}"#,
        "{path: \"a\"}",
        r#"{"path": "a" // why
        }"#,
    ] {
        assert!(is_accepted(text, &full), "{text}");
        assert_eq!(cut_position(&stream, text), None, "{text}");
    }
}

/// Checks all broken outputs. Those without a schema get one that allows little more than
/// the expected value.
#[test]
fn no_mistake_that_the_ladder_repairs_is_cut() {
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut checked = 0;
    for file in fs::read_dir(broken).unwrap() {
        let corpus = fs::read_to_string(file.unwrap().path()).unwrap();
        for case in corpus.split("--- ").skip(1) {
            let Some((_, case)) = case.split_once('\n') else { continue };
            let Some((text, expected)) = case.rsplit_once("\n==> ") else { continue };
            let (text, given) = match text.split_once("\n@@@ ") {
                Some((text, schema)) => (text, serde_json::from_str(schema).ok()),
                None => (text, None),
            };
            let Ok(expected) = serde_json::from_str::<Value>(expected.trim()) else { continue };
            let schema = given.unwrap_or_else(|| narrow(&expected));
            let full = Schema::compile(&schema).unwrap();
            if is_accepted(text, &full) {
                checked += 1;
                let stream = StreamSchema::compile(&schema).unwrap();
                assert_eq!(cut_position(&stream, text), None, "{schema}\n{text}");
            }
        }
    }
    assert!(checked > 150, "only {checked} texts were checked");
}

/// A schema that allows exactly these keys and types.
fn narrow(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "type": "null" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(_) | Value::String(_) => json!({ "const": value }),
        Value::Array(items) => {
            let all: Vec<Value> = items.iter().map(narrow).collect();
            let count = items.len();
            let mut schema = json!({ "type": "array", "maxItems": count, "minItems": count });
            if count > 0 {
                schema["prefixItems"] = Value::from(all);
            }
            schema
        }
        Value::Object(fields) => {
            let properties: serde_json::Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), narrow(value))).collect();
            let required: Vec<&String> = fields.keys().collect();
            json!({ "type": "object", "properties": properties, "required": required,
                    "additionalProperties": false })
        }
    }
}

/// The text with random mistakes of the kind that models make.
fn with_mistakes(random: &mut RandomSource, text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() + 1);
        let Some((before, after)) = text.split_at_checked(at) else { continue };
        let mistake = random.of(&[
            "", "\"", ",", "}", "]", "{", "[", ":", "'", "\\", "\n", " ", "//", "x", "1", "\",\"",
        ]);
        let skip = usize::from(random.one_in(2));
        let after = after.get(skip..).unwrap_or(after);
        text = format!("{before}{mistake}{after}");
    }
    match random.below(6) {
        0 => format!("```json\n{text}\n```"),
        1 => format!("Here: {text}"),
        2 => json!(text).to_string(),
        _ => text,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_is_never_both_cut_and_accepted(seed in any::<u64>()) {
        let random = &mut RandomSource(seed);
        let witness = random.value(3);
        let schema = if random.one_in(2) {
            narrow(&witness)
        } else {
            random.document_schema(&witness, KeywordSet::All)
        };
        let stream = StreamSchema::compile(&schema).unwrap();
        let full = Schema::compile(&schema).unwrap();
        let written = random.written(&witness);
        if is_accepted(&written, &full) {
            prop_assert_eq!(cut_position(&stream, &written), None, "{} {}", schema, written);
        }
        let other = random.value(3);
        let pretty = serde_json::to_string_pretty(&witness).unwrap();
        for text in [written, random.written(&other), pretty] {
            for _ in 0..6 {
                let text = with_mistakes(random, &text);
                let accepted = is_accepted(&text, &full);
                let cut = cut_position(&stream, &text);
                prop_assert!(!accepted || cut.is_none(), "{}\n{}\n{:?}", schema, text, cut);
                if let Some((bytes, position, _)) = cut {
                    prop_assert!(!is_accepted(&text[..bytes], &full), "{}\n{}", schema, text);
                    prop_assert!(position < bytes as u64);
                }
            }
        }
    }
}
