//! Single cases of the byte at which a document cannot become valid any more.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

use jackline_decode::stream::{RefusalKind, StreamCheck, StreamSchema, StreamSchemaError};
use serde_json::{Value, json};

/// The refusal of a document that is fed at once. `None` if it passes.
fn refusal_of(schema: &Value, document: &str) -> Option<(u64, String, RefusalKind, String)> {
    let schema = StreamSchema::compile(schema).unwrap();
    let mut stream = StreamCheck::new(&schema);
    let refusal = stream.feed(document.as_bytes()).and_then(|()| stream.finish()).err()?;
    Some((refusal.position, refusal.pointer, refusal.kind, refusal.expected))
}

/// The document up to and including the refused byte, and what was expected.
fn cut_at<'d>(schema: &Value, document: &'d str) -> (&'d str, String) {
    let (position, _, _, expected) =
        refusal_of(schema, document).expect("the document must be refused");
    let end = usize::try_from(position).unwrap();
    (document.get(..=end).unwrap_or(document), expected)
}

#[test]
fn the_first_byte_of_a_value_shows_its_type() {
    let schema = json!({ "properties": { "a": { "type": ["integer", "null"] } } });
    let refusal = refusal_of(&schema, r#"{"a": "1"}"#).unwrap();
    let expected = "a number or `null`".to_owned();
    assert_eq!(refusal, (6, "/a".to_owned(), RefusalKind::Schema, expected));
}

#[test]
fn a_key_is_refused_inside_its_name() {
    let schema = json!({
        "properties": { "name": {}, "note": {}, "age": false },
        "additionalProperties": false,
    });
    assert_eq!(
        cut_at(&schema, r#"{"nam3": 1}"#),
        (r#"{"nam3"#, "a key, one of `name`, `note`".to_owned())
    );
    assert_eq!(cut_at(&schema, r#"{"a"#).0, r#"{"a"#);
    assert_eq!(
        cut_at(&schema, r#"{"name": 1, "na"#),
        (r#"{"name": 1, "na"#, "a key, one of `note`".to_owned())
    );
    assert_eq!(cut_at(&schema, r#"{"name": 1, "note": 2, "#).0, r#"{"name": 1, "note": 2,"#);
}

#[test]
fn a_key_may_be_written_in_escapes() {
    let schema = json!({ "properties": { "née": {}, "😀": {} }, "additionalProperties": false });
    assert_eq!(refusal_of(&schema, r#"{"n\u00e9e":1,"\ud83D\ude00":2}"#), None);
    assert_eq!(cut_at(&schema, r#"{"n\u01"#).0, r#"{"n\u01"#);
    assert_eq!(cut_at(&schema, r#"{"\ud83d\ude01"#).0, r#"{"\ud83d\ude01"#);
    assert_eq!(cut_at(&schema, r#"{"\n"#).0, r#"{"\n"#);
}

#[test]
fn a_second_key_of_the_same_name_is_refused_at_its_end() {
    let refusal = refusal_of(&json!(true), r#"{"a":1,"b":{"a":1},"\u0061":2}"#).unwrap();
    assert_eq!((refusal.0, refusal.1, refusal.2), (26, "/a".to_owned(), RefusalKind::DuplicateKey));
}

#[test]
fn a_missing_key_is_refused_at_the_closing_brace() {
    let schema = json!({ "items": { "required": ["a", "b"], "minProperties": 3 } });
    let refusal = refusal_of(&schema, r#"[{"a":1,"b":2,"c":3},{"b":1,"d":2,"c":3}]"#).unwrap();
    assert_eq!(refusal.1, "/1");
    assert_eq!(refusal.3, "the required `a`");
    assert_eq!(refusal.0, 39);
}

#[test]
fn a_value_is_refused_where_it_differs_from_the_listed_values() {
    let schema = json!({ "enum": ["alpha", "alps", 12, true, { "a": [1, 2] }, [3]] });
    assert_eq!(cut_at(&schema, r#""alto""#).0, r#""alt"#);
    assert_eq!(cut_at(&schema, r#""alp""#).0, r#""alp""#);
    assert_eq!(cut_at(&schema, "13").0, "13");
    assert_eq!(cut_at(&schema, "false").0, "f");
    assert_eq!(cut_at(&schema, r#"{"a":[1,3]}"#).0, r#"{"a":[1,3"#);
    assert_eq!(cut_at(&schema, r#"{"b""#).0, r#"{"b"#);
    assert_eq!(cut_at(&schema, "[3,").0, "[3,");
    for same in ["12", "12.0", "1.2e1", "120E-1", "0.12e+2", " { \"a\" : [1.0,2] } "] {
        assert_eq!(refusal_of(&schema, same), None, "{same}");
    }
}

#[test]
fn other_keywords_remove_values_from_a_list() {
    let schema = json!({ "enum": ["a", "bc", 3], "type": "string", "minLength": 2 });
    assert_eq!(cut_at(&schema, r#""a""#), (r#""a"#, r#"one of `"bc"`"#.to_owned()));
    assert_eq!(cut_at(&schema, "3").0, "3");
}

#[test]
fn lengths_count_characters() {
    let schema = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
    assert_eq!(refusal_of(&schema, r#""é\u00e9😀""#), None);
    assert_eq!(refusal_of(&schema, r#""\ud83d\ude00x""#), None);
    assert_eq!(cut_at(&schema, r#""abcd""#).0, r#""abcd"#);
    assert_eq!(cut_at(&schema, r#""abc\""#).0, r#""abc\"#);
    assert_eq!(cut_at(&schema, r#""😀""#).0, r#""😀""#);
}

#[test]
fn numbers_are_checked_when_they_end() {
    let schema = json!({ "items": { "type": "integer", "minimum": 1, "multipleOf": 5 } });
    assert_eq!(refusal_of(&schema, "[5, 1.5e1, 50.0]"), None);
    assert_eq!(cut_at(&schema, "[5, 7]").0, "[5, 7]");
    assert_eq!(cut_at(&schema, "[-5]").0, "[-");
    assert_eq!(cut_at(&schema, "[2.5]").0, "[2.5]");
    let refusal = refusal_of(&json!({ "maximum": 3 }), "4").unwrap();
    assert_eq!((refusal.0, refusal.3.as_str()), (1, "a number that satisfies: maximum 3"));
}

#[test]
fn one_remaining_alternative_is_enough() {
    let schema = json!({ "anyOf": [
        { "properties": { "kind": { "const": "a" }, "x": { "type": "string" } }, "required": ["kind"] },
        { "properties": { "kind": { "const": "b" }, "x": { "type": "integer" } } },
    ]});
    assert_eq!(refusal_of(&schema, r#"{"x": 1, "kind": "b"}"#), None);
    assert_eq!(refusal_of(&schema, r#"{"x": "", "kind": "a"}"#), None);
    assert_eq!(cut_at(&schema, r#"{"x": 1, "kind": "a"}"#).0, r#"{"x": 1, "kind": "a"#);
    assert_eq!(cut_at(&schema, r#"{"kind": "b", "x": ""}"#).0, r#"{"kind": "b", "x": ""#);
    assert_eq!(cut_at(&schema, r#"{"kind": "c"}"#).0, r#"{"kind": "c"#);
}

#[test]
fn exactly_one_alternative_is_counted_at_the_end() {
    let schema = json!({ "oneOf": [{ "type": "integer" }, { "minimum": 3 }] });
    assert_eq!(refusal_of(&schema, "2"), None);
    assert_eq!(refusal_of(&schema, "3.5"), None);
    assert_eq!(refusal_of(&schema, "3").unwrap().0, 1);
}

#[test]
fn references_may_be_recursive() {
    let schema = json!({
        "$ref": "#/$defs/tree",
        "$defs": { "tree": {
            "type": "object",
            "properties": { "left": { "$ref": "#/$defs/tree" }, "value": { "type": "number" } },
            "required": ["value"],
        }},
    });
    assert_eq!(refusal_of(&schema, r#"{"left":{"value":1},"value":2}"#), None);
    assert_eq!(cut_at(&schema, r#"{"left":{"left":{}}}"#).0, r#"{"left":{"left":{}"#);
}

#[test]
fn an_unsatisfiable_value_is_refused_before_it_starts() {
    let schema = json!({
        "properties": { "self": { "$ref": "#/$defs/endless" } },
        "prefixItems": [true],
        "items": { "type": "string", "minLength": 2, "maxLength": 1 },
        "$defs": { "endless": {
            "type": "object", "required": ["self"],
            "properties": { "self": { "$ref": "#/$defs/endless" } },
        }},
    });
    assert_eq!(cut_at(&schema, r#"{"self":"#).0, r#"{"self""#);
    assert_eq!(cut_at(&schema, "[1,").0, "[1,");
}

#[test]
fn syntax_and_encoding_are_checked_byte_by_byte() {
    let any = json!(true);
    for (document, kind) in [
        ("{\"a\" 1", RefusalKind::Syntax),
        ("[1,]", RefusalKind::Syntax),
        ("01", RefusalKind::Syntax),
        ("1.e", RefusalKind::Syntax),
        ("trve", RefusalKind::Syntax),
        ("\"\\x", RefusalKind::Syntax),
        ("\"\\udc", RefusalKind::Syntax),
        ("\"\\ud800x", RefusalKind::Syntax),
        ("\"\n", RefusalKind::Syntax),
        ("{} x", RefusalKind::Syntax),
        ("\u{feff}", RefusalKind::Syntax),
    ] {
        let refusal = refusal_of(&any, document).expect(document);
        assert_eq!(refusal.2, kind, "{document}");
    }
    assert_eq!(refusal_of(&any, "1e400").unwrap().2, RefusalKind::Number);
    assert_eq!(refusal_of(&any, &"1".repeat(2_000)).unwrap().2, RefusalKind::Number);
    assert_eq!(refusal_of(&any, "[1").unwrap().2, RefusalKind::Incomplete);
    assert_eq!(refusal_of(&any, "").unwrap().2, RefusalKind::Incomplete);
    assert_eq!(refusal_of(&any, &"[".repeat(100_000)).unwrap().0, 100);
    assert_eq!(refusal_of(&any, &format!("{}{}", "[".repeat(100), "]".repeat(100))), None);
    let schema = StreamSchema::compile(&any).unwrap();
    for (bytes, position) in [(&b"\"\xc0"[..], 1), (b"\"\xed\xa0", 2), (b"\"\xe2\x82\"", 3)] {
        let refusal = StreamCheck::new(&schema).feed(bytes).unwrap_err();
        assert_eq!((refusal.kind, refusal.position), (RefusalKind::Utf8, position));
    }
}

#[test]
fn a_refused_stream_stays_refused() {
    let schema = StreamSchema::compile(&json!({ "type": "null" })).unwrap();
    let mut stream = StreamCheck::new(&schema);
    let first = stream.feed(b" 1").unwrap_err();
    assert_eq!(first.to_string(), "byte 1 at ``: expected `null`");
    assert_eq!(stream.feed(b"null").unwrap_err(), first);
    assert_eq!(stream.finish().unwrap_err(), first);
}

#[test]
fn hostile_schemas_are_typed_errors() {
    let compile = |schema: Value| StreamSchema::compile(&schema).map(|_| ()).unwrap_err();
    assert!(matches!(compile(json!({ "type": 3 })), StreamSchemaError::Invalid { .. }));
    assert!(matches!(compile(json!({ "pattern": "(" })), StreamSchemaError::Invalid { .. }));
    assert!(matches!(compile(json!({ "$ref": "#/$defs/no" })), StreamSchemaError::Invalid { .. }));
    assert!(matches!(
        compile(json!({ "$ref": "http://a.test/" })),
        StreamSchemaError::Invalid { .. }
    ));
    assert_eq!(compile(json!({ "$ref": "#" })), StreamSchemaError::SelfReference);
    assert_eq!(
        compile(json!({ "anyOf": [{ "allOf": [{ "$ref": "#" }] }] })),
        StreamSchemaError::SelfReference
    );
    let wide: Vec<Value> = (0..2_000).map(|most| json!({ "maximum": most })).collect();
    assert!(matches!(compile(json!({ "anyOf": wide })), StreamSchemaError::TooLarge { .. }));
    let mut deep = json!(true);
    for _ in 0..200 {
        deep = json!({ "items": deep });
    }
    assert!(matches!(compile(deep), StreamSchemaError::TooLarge { .. }));
}

#[test]
fn a_long_chain_of_references_needs_no_deep_stack() {
    let mut schema = json!({ "$ref": "#/$defs/0", "$defs": { "2000": { "type": "null" } } });
    for at in 0..2000 {
        let next = json!({ "$ref": format!("#/$defs/{}", at + 1) });
        schema["$defs"][at.to_string()] = json!({ "items": next, "maxItems": 1 });
    }
    assert_eq!(cut_at(&schema, "[[1,").0, "[[1,");
}

#[test]
fn older_drafts_have_their_own_meaning() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{ "$ref": "#/definitions/text", "minLength": 9 }],
        "additionalItems": false,
        "definitions": { "text": { "type": "string" } },
    });
    assert_eq!(refusal_of(&schema, r#"["short"]"#), None);
    assert_eq!(cut_at(&schema, r#"["short","#).0, r#"["short","#);
}

#[test]
fn a_further_key_is_refused_if_none_is_possible() {
    // No key is left, or the required keys need the remaining ones.
    let names = json!({ "propertyNames": { "enum": ["a", "bb"] } });
    assert_eq!(cut_at(&names, r#"{"a":1,"bb":2,"#).0, r#"{"a":1,"bb":2,"#);
    let full = json!({ "required": ["a", "b"], "maxProperties": 2 });
    assert_eq!(cut_at(&full, r#"{"a":1,"c":"#).0, r#"{"a":1,"c""#);
}

#[test]
fn alternatives_that_double_at_each_level_do_not_grow_exponentially() {
    let schema = json!({ "anyOf": [
        { "items": { "$ref": "#" }, "maxItems": 1 },
        { "items": { "$ref": "#" }, "maxItems": 2 },
        { "items": { "$ref": "#" }, "minItems": 9 },
    ]});
    assert_eq!(refusal_of(&schema, &format!("{}{}", "[".repeat(100), "]".repeat(100))), None);
    let mut laughs = json!({ "$ref": "#/$defs/0", "$defs": { "60": { "type": "null" } } });
    for at in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/{}", at + 1) });
        laughs["$defs"][at.to_string()] = json!({ "allOf": [next, next] });
    }
    assert_eq!(cut_at(&laughs, "1").0, "1");
}
