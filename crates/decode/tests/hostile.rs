//! Hostile schemas and texts give typed errors quickly.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::time::{Duration, Instant};

use jackline_decode::{
    DecodeOutcome, FormatPolicy, InvalidReason, Schema, SchemaError, TEXT_BYTES_MAX, TextEnding,
    decode,
};
use serde_json::{Map, Value, json};

fn reason(text: &str) -> Option<InvalidReason> {
    match decode(text, None, TextEnding::Finished) {
        DecodeOutcome::Invalid(invalid) => Some(invalid.reason),
        _ => None,
    }
}

#[test]
fn depth_and_length_are_typed_errors() {
    assert_eq!(reason(&"[".repeat(100_000)), Some(InvalidReason::TooDeep));
    assert_eq!(reason(&("[".repeat(100_000) + &"]".repeat(100_000))), Some(InvalidReason::TooDeep));
    assert_eq!(reason(&r#"{"a":"#.repeat(100_000)), Some(InvalidReason::TooDeep));
    assert_eq!(
        reason(&format!("Look: {}", "[{\"a\":".repeat(100_000))),
        Some(InvalidReason::TooDeep)
    );
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(reason(&nested(100)), None);
    assert_eq!(reason(&nested(101)), Some(InvalidReason::TooDeep));
    assert_eq!(reason(&format!("\"{}\"", "x".repeat(100_000_000))), Some(InvalidReason::TooLong));
    assert_eq!(
        reason(&format!("[{}0]", "0,".repeat(TEXT_BYTES_MAX / 2 - 10))),
        Some(InvalidReason::TooLong)
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this test measures time")]
fn texts_that_tempt_a_parser_to_backtrack_take_linear_time() {
    for piece in [
        "{",
        "[",
        "{ ",
        "{\"a",
        "{a",
        "\"",
        "'",
        "{'",
        "\\",
        "{\"a\":\"\\",
        "<think>",
        "```json\n",
        "[1] ",
        "[x] ",
        "{x} ",
        "/*",
        "{/*",
        "{\"a\":\"b\" ",
        "{\"a\": \" \" ",
        "\u{feff}",
        "“",
        "[\"a\" ",
        "{\"a\":1,",
        "&quot;",
        "{\\\"",
        " ",
        "\n",
        "\":",
        "{\"a\":`",
        "}",
        "]",
        "# ",
        "// \n",
        "[[1",
        "[{",
        "</think>",
        "[\"\"\"",
        "\" : ",
        "'' ",
        "{a:1}",
        "-",
        "[-",
        "{\"",
        ",",
    ] {
        let elapsed = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            let start = Instant::now();
            decode(&text, None, TextEnding::Finished);
            decode(&format!("{{\"a\": \"{text}"), None, TextEnding::Finished);
            decode(&format!("[{text}"), None, TextEnding::CutOff);
            start.elapsed()
        };
        // Take the best of three runs, because the machine may be busy. The long text has 16
        // times the length; a quadratic reader would take 256 times as long.
        let best = |bytes| (0..3).map(|_| elapsed(bytes)).min().unwrap_or_default();
        let (short, long) = (best(8_000), best(128_000));
        let little = Duration::from_millis(200);
        assert!(long < short * 80 || long < little, "`{piece}`: {short:?}, then {long:?}");
    }
}

#[test]
fn invalid_values_are_typed_errors() {
    assert_eq!(reason(r#"{"a":1,"a":2}"#), Some(InvalidReason::DuplicateKey));
    assert_eq!(reason(r#"Here: {"a":{"b":1,"b":1}}"#), Some(InvalidReason::DuplicateKey));
    assert_eq!(reason(r#"{"a":1,"\u0061":2}"#), Some(InvalidReason::DuplicateKey));
    assert_eq!(reason(r#"{"a":"\ud800"}"#), Some(InvalidReason::LoneSurrogate));
    assert_eq!(reason(r#"{"a":"\udc00\ud800"}"#), Some(InvalidReason::LoneSurrogate));
    assert_eq!(reason(r#"{"a":"\ud83d\ude00"}"#), None);
    assert_eq!(reason("[1e400]"), Some(InvalidReason::NumberOutOfRange));
    assert_eq!(reason("[12345678901234567890123]"), Some(InvalidReason::NumberOutOfRange));
    assert_eq!(reason("[1000000000000000000000]"), None);
    assert_eq!(reason("[18446744073709551615, -9223372036854775808]"), None);
    assert_eq!(reason(""), Some(InvalidReason::NoJson));
    assert_eq!(reason("I can't do that."), Some(InvalidReason::NoJson));
}

/// The reason why a schema does not allow a text. `None` if the text is allowed.
fn reason_under(text: &str, schema: &Schema) -> Option<InvalidReason> {
    match decode(text, Some(schema), TextEnding::Finished) {
        DecodeOutcome::Invalid(invalid) => Some(invalid.reason),
        _ => None,
    }
}

fn compile(schema: &Value) -> Result<Schema, SchemaError> {
    Schema::compile(schema)
}

#[test]
fn invalid_schemas_are_typed_errors() {
    let invalid = |schema: Value| matches!(compile(&schema), Err(SchemaError::Invalid { .. }));
    assert!(invalid(json!(3)));
    assert!(invalid(json!({ "type": "strin" })));
    assert!(invalid(json!({ "minimum": "3" })));
    assert!(invalid(json!({ "pattern": "(" })));
    assert!(invalid(json!({ "pattern": "(((((a{1,1000}){1,1000}){1,1000})" })));
    assert!(invalid(json!({ "pattern": "((((\\p{L}{1,1000}){1,1000}){1,1000}))" })));
    assert!(invalid(json!({ "$ref": "#/$defs/missing" })));
    assert!(invalid(json!({ "$ref": "https://example.com/schema.json" })));
    assert!(invalid(json!({ "$ref": "file:///etc/passwd" })));
    assert!(invalid(json!({ "$schema": "https://example.com/meta" })));
}

#[test]
fn a_schema_that_never_ends_is_refused() {
    let endless = |schema: Value| matches!(compile(&schema), Err(SchemaError::Endless(_)));
    assert!(endless(json!({ "$ref": "#" })));
    assert!(endless(json!({ "allOf": [{ "$ref": "#" }] })));
    assert!(endless(json!({ "not": { "$ref": "#" } })));
    assert!(endless(json!({ "$id": "https://e.com/a", "anyOf": [{ "$ref": "a" }] })));
    assert!(endless(json!({ "$dynamicAnchor": "x", "anyOf": [{ "$dynamicRef": "#x" }] })));
    assert!(endless(json!({
        "$defs": { "a": { "if": { "$ref": "#/$defs/b" } }, "b": { "$ref": "#/$defs/a" } },
        "$ref": "#/$defs/a"
    })));
    assert!(compile(&json!({ "properties": { "next": { "$ref": "#" } } })).is_ok());
}

#[test]
fn large_schemas_are_refused() {
    let too_large = |schema: Value| matches!(compile(&schema), Err(SchemaError::TooLarge(_)));
    let mut deep = json!({});
    for _ in 0..1000 {
        deep = json!({ "not": deep });
    }
    assert!(too_large(deep));
    let many: Map<String, Value> = (0..5000).map(|n| (format!("p{n}"), json!({}))).collect();
    assert!(too_large(json!({ "properties": many })));
    assert!(too_large(json!({ "description": "x".repeat(1_000_000) })));
    assert!(too_large(json!({ "pattern": "x".repeat(10_000) })));
}

/// A chain of references, each to the next.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut defs = Map::new();
    for n in 0..length {
        defs.insert(format!("d{n}"), link(json!({ "$ref": format!("#/$defs/d{}", n + 1) })));
    }
    defs.insert(format!("d{length}"), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

#[test]
fn long_chains_of_references_do_not_overflow_the_stack() {
    let schema = compile(&chain(500, |next| next)).unwrap();
    assert!(schema.allows(&json!(1)));
    assert!(!schema.allows(&json!("1")));
    drop(compile(&chain(1900, |next| next)).unwrap());
    // If the chain is too long to follow, the value is refused.
    for link in [
        (|next| json!({ "allOf": [next] })) as fn(Value) -> Value,
        |next| json!({ "anyOf": [next] }),
    ] {
        let schema = compile(&chain(900, link)).unwrap();
        assert_eq!(reason_under("1", &schema), Some(InvalidReason::TooCostly));
        assert!(!schema.allows(&json!(1)));
    }
    // A value without the members does not follow the chain.
    for link in [
        (|next| json!({ "properties": { "a": next } })) as fn(Value) -> Value,
        |next| json!({ "unevaluatedProperties": next }),
    ] {
        let schema = compile(&chain(900, link)).unwrap();
        assert_eq!(reason_under("1", &schema), None);
        let nested = "{\"a\":".repeat(90) + "1" + &"}".repeat(90);
        assert_eq!(reason_under(&nested, &schema), None);
    }
    let both = |next| json!({ "items": next, "not": { "not": {} } });
    assert!(matches!(compile(&chain(900, both)), Err(SchemaError::TooLarge(_))));
}

#[test]
fn a_validation_with_exponential_cost_is_refused() {
    let twice = |next: Value| json!({ "allOf": [next.clone(), next] });
    let schema = compile(&chain(60, twice)).unwrap();
    let DecodeOutcome::Invalid(invalid) = decode("1", Some(&schema), TextEnding::Finished) else {
        panic!()
    };
    assert_eq!(invalid.reason, InvalidReason::TooCostly);
    let tree = json!({ "anyOf": [
        { "properties": { "c": { "$ref": "#" } } },
        { "properties": { "c": { "$ref": "#" } }, "required": ["c"] },
    ], "type": "object" });
    let schema = compile(&tree).unwrap();
    let text = "{\"c\":".repeat(99) + "{}" + &"}".repeat(99);
    let DecodeOutcome::Invalid(invalid) = decode(&text, Some(&schema), TextEnding::Finished) else {
        panic!()
    };
    assert_eq!(invalid.reason, InvalidReason::TooCostly);
}

#[test]
fn patterns_with_catastrophic_backtracking_end() {
    let schema = compile(&json!({ "type": "string", "pattern": "^(a+)+(?!b)$" })).unwrap();
    let text = format!("\"{}b\"", "a".repeat(100_000));
    assert_eq!(reason_under(&text, &schema), Some(InvalidReason::Schema));
    assert_eq!(reason_under("\"aaa\"", &schema), None);
    let schema = compile(&json!({ "pattern": "^(a|aa)+$" })).unwrap();
    assert_eq!(reason_under(&text, &schema), Some(InvalidReason::Schema));
    assert_eq!(reason_under("\"aaa\"", &schema), None);
}

#[test]
fn extreme_numbers_and_multiples_are_validated_without_hanging() {
    for (multiple, largest, smallest) in [
        (json!(1e-300), None, Some(InvalidReason::Schema)),
        (json!(5e-324), None, None),
        (json!(0.1), None, Some(InvalidReason::Schema)),
        (json!(1e308), Some(InvalidReason::Schema), Some(InvalidReason::Schema)),
    ] {
        let schema =
            Schema::compile_with(&json!({ "multipleOf": multiple }), FormatPolicy::Checked)
                .unwrap();
        let of = |text: &str| reason_under(text, &schema);
        assert_eq!(of("1.7976931348623157e308"), largest, "{multiple}");
        assert_eq!(of("5e-324"), smallest, "{multiple}");
        assert_eq!(of("0"), None, "{multiple}");
    }
}

#[test]
fn many_errors_are_shortened_to_a_few_and_a_count() {
    let schema =
        compile(&json!({ "items": { "anyOf": [{ "type": "string" }, { "type": "null" }] } }))
            .unwrap();
    let text = format!("[{}0]", "0,".repeat(100_000));
    let DecodeOutcome::Invalid(invalid) = decode(&text, Some(&schema), TextEnding::Finished) else {
        panic!()
    };
    assert!(invalid.errors.len() <= 8);
    let long = format!("{{\"{}\": \"{}\"}}", "k".repeat(100_000), "v".repeat(100_000));
    let schema =
        compile(&json!({ "additionalProperties": { "type": "integer" }, "maxProperties": 0 }))
            .unwrap();
    let DecodeOutcome::Invalid(invalid) = decode(&long, Some(&schema), TextEnding::Finished) else {
        panic!()
    };
    assert!(invalid.render_request().len() <= jackline_decode::REQUEST_BYTES_MAX);
}
