//! Single stories about the byte at which a document can't go on.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

use jackline_decode::stream::{RefusalKind, SchemaError, Stream, StreamSchema};
use serde_json::{Value, json};

/// Where and why, for a document that is fed whole; `None` if it is let pass.
fn refused(schema: &Value, document: &str) -> Option<(u64, String, RefusalKind, String)> {
    let schema = StreamSchema::compile(schema).unwrap();
    let mut stream = Stream::new(&schema);
    let refusal = stream.feed(document.as_bytes()).and_then(|()| stream.finish()).err()?;
    Some((refusal.position, refusal.pointer, refusal.kind, refusal.expected))
}

/// The document up to and with the refused byte, and what was expected.
fn cut<'d>(schema: &Value, document: &'d str) -> (&'d str, String) {
    let (position, _, _, expected) = refused(schema, document).expect("should be refused");
    let end = usize::try_from(position).unwrap();
    (document.get(..=end).unwrap_or(document), expected)
}

#[test]
fn the_first_byte_of_a_value_shows_its_type() {
    let schema = json!({ "properties": { "a": { "type": ["integer", "null"] } } });
    let refusal = refused(&schema, r#"{"a": "1"}"#).unwrap();
    let expected = "a number or `null`".to_owned();
    assert_eq!(refusal, (6, "/a".to_owned(), RefusalKind::Schema, expected));
}

#[test]
fn a_key_is_refused_within_its_name() {
    let schema = json!({
        "properties": { "name": {}, "note": {}, "age": false },
        "additionalProperties": false,
    });
    assert_eq!(
        cut(&schema, r#"{"nam3": 1}"#),
        (r#"{"nam3"#, "a key, one of `name`, `note`".to_owned())
    );
    assert_eq!(cut(&schema, r#"{"a"#).0, r#"{"a"#);
    assert_eq!(
        cut(&schema, r#"{"name": 1, "na"#),
        (r#"{"name": 1, "na"#, "a key, one of `note`".to_owned())
    );
    assert_eq!(cut(&schema, r#"{"name": 1, "note": 2, "#).0, r#"{"name": 1, "note": 2,"#);
}

#[test]
fn a_key_may_be_written_in_escapes() {
    let schema = json!({ "properties": { "née": {}, "😀": {} }, "additionalProperties": false });
    assert_eq!(refused(&schema, r#"{"n\u00e9e":1,"\ud83D\ude00":2}"#), None);
    assert_eq!(cut(&schema, r#"{"n\u01"#).0, r#"{"n\u01"#);
    assert_eq!(cut(&schema, r#"{"\ud83d\ude01"#).0, r#"{"\ud83d\ude01"#);
    assert_eq!(cut(&schema, r#"{"\n"#).0, r#"{"\n"#);
}

#[test]
fn a_second_key_of_the_same_name_is_refused_at_its_end() {
    let refusal = refused(&json!(true), r#"{"a":1,"b":{"a":1},"\u0061":2}"#).unwrap();
    assert_eq!((refusal.0, refusal.1, refusal.2), (26, "/a".to_owned(), RefusalKind::DuplicateKey));
}

#[test]
fn what_is_missing_shows_at_the_closing_brace() {
    let schema = json!({ "items": { "required": ["a", "b"], "minProperties": 3 } });
    let refusal = refused(&schema, r#"[{"a":1,"b":2,"c":3},{"b":1,"d":2,"c":3}]"#).unwrap();
    assert_eq!(refusal.1, "/1");
    assert_eq!(refusal.3, "the required `a`");
    assert_eq!(refusal.0, 39);
}

#[test]
fn a_listed_value_is_refused_where_it_departs() {
    let schema = json!({ "enum": ["alpha", "alps", 12, true, { "a": [1, 2] }, [3]] });
    assert_eq!(cut(&schema, r#""alto""#).0, r#""alt"#);
    assert_eq!(cut(&schema, r#""alp""#).0, r#""alp""#);
    assert_eq!(cut(&schema, "13").0, "13");
    assert_eq!(cut(&schema, "false").0, "f");
    assert_eq!(cut(&schema, r#"{"a":[1,3]}"#).0, r#"{"a":[1,3"#);
    assert_eq!(cut(&schema, r#"{"b""#).0, r#"{"b"#);
    assert_eq!(cut(&schema, "[3,").0, "[3,");
    for same in ["12", "12.0", "1.2e1", "120E-1", "0.12e+2", " { \"a\" : [1.0,2] } "] {
        assert_eq!(refused(&schema, same), None, "{same}");
    }
}

#[test]
fn a_list_beside_other_demands_is_narrowed_by_them() {
    let schema = json!({ "enum": ["a", "bc", 3], "type": "string", "minLength": 2 });
    assert_eq!(cut(&schema, r#""a""#), (r#""a"#, r#"one of `"bc"`"#.to_owned()));
    assert_eq!(cut(&schema, "3").0, "3");
}

#[test]
fn lengths_count_characters() {
    let schema = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
    assert_eq!(refused(&schema, r#""é\u00e9😀""#), None);
    assert_eq!(refused(&schema, r#""\ud83d\ude00x""#), None);
    assert_eq!(cut(&schema, r#""abcd""#).0, r#""abcd"#);
    assert_eq!(cut(&schema, r#""abc\""#).0, r#""abc\"#);
    assert_eq!(cut(&schema, r#""😀""#).0, r#""😀""#);
}

#[test]
fn numbers_are_judged_when_they_end() {
    let schema = json!({ "items": { "type": "integer", "minimum": 1, "multipleOf": 5 } });
    assert_eq!(refused(&schema, "[5, 1.5e1, 50.0]"), None);
    assert_eq!(cut(&schema, "[5, 7]").0, "[5, 7]");
    assert_eq!(cut(&schema, "[-5]").0, "[-");
    assert_eq!(cut(&schema, "[2.5]").0, "[2.5]");
    let refusal = refused(&json!({ "maximum": 3 }), "4").unwrap();
    assert_eq!((refusal.0, refusal.3.as_str()), (1, "a number as demanded: maximum 3"));
}

#[test]
fn one_alternative_is_enough_while_it_lasts() {
    let schema = json!({ "anyOf": [
        { "properties": { "kind": { "const": "a" }, "x": { "type": "string" } }, "required": ["kind"] },
        { "properties": { "kind": { "const": "b" }, "x": { "type": "integer" } } },
    ]});
    assert_eq!(refused(&schema, r#"{"x": 1, "kind": "b"}"#), None);
    assert_eq!(refused(&schema, r#"{"x": "", "kind": "a"}"#), None);
    assert_eq!(cut(&schema, r#"{"x": 1, "kind": "a"}"#).0, r#"{"x": 1, "kind": "a"#);
    assert_eq!(cut(&schema, r#"{"kind": "b", "x": ""}"#).0, r#"{"kind": "b", "x": ""#);
    assert_eq!(cut(&schema, r#"{"kind": "c"}"#).0, r#"{"kind": "c"#);
}

#[test]
fn exactly_one_alternative_is_counted_at_the_end() {
    let schema = json!({ "oneOf": [{ "type": "integer" }, { "minimum": 3 }] });
    assert_eq!(refused(&schema, "2"), None);
    assert_eq!(refused(&schema, "3.5"), None);
    assert_eq!(refused(&schema, "3").unwrap().0, 1);
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
    assert_eq!(refused(&schema, r#"{"left":{"value":1},"value":2}"#), None);
    assert_eq!(cut(&schema, r#"{"left":{"left":{}}}"#).0, r#"{"left":{"left":{}"#);
}

#[test]
fn what_nothing_satisfies_is_refused_before_it_begins() {
    let schema = json!({
        "properties": { "self": { "$ref": "#/$defs/endless" } },
        "prefixItems": [true],
        "items": { "type": "string", "minLength": 2, "maxLength": 1 },
        "$defs": { "endless": {
            "type": "object", "required": ["self"],
            "properties": { "self": { "$ref": "#/$defs/endless" } },
        }},
    });
    assert_eq!(cut(&schema, r#"{"self":"#).0, r#"{"self""#);
    assert_eq!(cut(&schema, "[1,").0, "[1,");
}

#[test]
fn syntax_and_encoding_are_checked_on_the_way() {
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
        let refusal = refused(&any, document).expect(document);
        assert_eq!(refusal.2, kind, "{document}");
    }
    assert_eq!(refused(&any, "1e400").unwrap().2, RefusalKind::Number);
    assert_eq!(refused(&any, &"1".repeat(2_000)).unwrap().2, RefusalKind::Number);
    assert_eq!(refused(&any, "[1").unwrap().2, RefusalKind::Incomplete);
    assert_eq!(refused(&any, "").unwrap().2, RefusalKind::Incomplete);
    assert_eq!(refused(&any, &"[".repeat(100_000)).unwrap().0, 100);
    assert_eq!(refused(&any, &format!("{}{}", "[".repeat(100), "]".repeat(100))), None);
    let schema = StreamSchema::compile(&any).unwrap();
    for (bytes, position) in [(&b"\"\xc0"[..], 1), (b"\"\xed\xa0", 2), (b"\"\xe2\x82\"", 3)] {
        let refusal = Stream::new(&schema).feed(bytes).unwrap_err();
        assert_eq!((refusal.kind, refusal.position), (RefusalKind::Utf8, position));
    }
}

#[test]
fn a_refused_stream_stays_refused() {
    let schema = StreamSchema::compile(&json!({ "type": "null" })).unwrap();
    let mut stream = Stream::new(&schema);
    let first = stream.feed(b" 1").unwrap_err();
    assert_eq!(first.to_string(), "byte 1 at ``: expected `null`");
    assert_eq!(stream.feed(b"null").unwrap_err(), first);
    assert_eq!(stream.finish().unwrap_err(), first);
}

#[test]
fn hostile_schemas_are_typed_errors() {
    let compile = |schema: Value| StreamSchema::compile(&schema).map(|_| ()).unwrap_err();
    assert!(matches!(compile(json!({ "type": 3 })), SchemaError::Invalid { .. }));
    assert!(matches!(compile(json!({ "pattern": "(" })), SchemaError::Invalid { .. }));
    assert!(matches!(compile(json!({ "$ref": "#/$defs/no" })), SchemaError::Invalid { .. }));
    assert!(matches!(compile(json!({ "$ref": "http://a.test/" })), SchemaError::Invalid { .. }));
    assert_eq!(compile(json!({ "$ref": "#" })), SchemaError::Loop);
    assert_eq!(compile(json!({ "anyOf": [{ "allOf": [{ "$ref": "#" }] }] })), SchemaError::Loop);
    let wide: Vec<Value> = (0..2_000).map(|most| json!({ "maximum": most })).collect();
    assert!(matches!(compile(json!({ "anyOf": wide })), SchemaError::TooLarge { .. }));
    let mut deep = json!(true);
    for _ in 0..200 {
        deep = json!({ "items": deep });
    }
    assert!(matches!(compile(deep), SchemaError::TooLarge { .. }));
}

#[test]
fn a_long_chain_of_references_needs_no_deep_stack() {
    let mut schema = json!({ "$ref": "#/$defs/0", "$defs": { "2000": { "type": "null" } } });
    for at in 0..2000 {
        let next = json!({ "$ref": format!("#/$defs/{}", at + 1) });
        schema["$defs"][at.to_string()] = json!({ "items": next, "maxItems": 1 });
    }
    assert_eq!(cut(&schema, "[[1,").0, "[[1,");
}

#[test]
fn older_drafts_mean_what_they_meant() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{ "$ref": "#/definitions/text", "minLength": 9 }],
        "additionalItems": false,
        "definitions": { "text": { "type": "string" } },
    });
    assert_eq!(refused(&schema, r#"["short"]"#), None);
    assert_eq!(cut(&schema, r#"["short","#).0, r#"["short","#);
}

#[test]
fn the_end_of_what_can_be_known_is_a_known_end() {
    // No key is left, or the rest is spoken for.
    let names = json!({ "propertyNames": { "enum": ["a", "bb"] } });
    assert_eq!(cut(&names, r#"{"a":1,"bb":2,"#).0, r#"{"a":1,"bb":2,"#);
    let full = json!({ "required": ["a", "b"], "maxProperties": 2 });
    assert_eq!(cut(&full, r#"{"a":1,"c":"#).0, r#"{"a":1,"c""#);
}

#[test]
fn alternatives_that_double_at_each_level_do_not_multiply() {
    let schema = json!({ "anyOf": [
        { "items": { "$ref": "#" }, "maxItems": 1 },
        { "items": { "$ref": "#" }, "maxItems": 2 },
        { "items": { "$ref": "#" }, "minItems": 9 },
    ]});
    assert_eq!(refused(&schema, &format!("{}{}", "[".repeat(100), "]".repeat(100))), None);
    let mut laughs = json!({ "$ref": "#/$defs/0", "$defs": { "60": { "type": "null" } } });
    for at in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/{}", at + 1) });
        laughs["$defs"][at.to_string()] = json!({ "allOf": [next, next] });
    }
    assert_eq!(cut(&laughs, "1").0, "1");
}
