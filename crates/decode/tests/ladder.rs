//! The outcomes of decoding and the messages to the model.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use jackline_decode::{
    AcceptedDocument, CutOffDocument, DecodeOutcome, FormatPolicy, InvalidDocument, InvalidReason,
    Schema, TextEnding, TextRepair, decode, plan_schema,
};
use serde_json::{Value, json};

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap_or_else(|error| panic!("{error}"))
}

fn accepted(text: &str, schema: &Value) -> AcceptedDocument {
    match decode(text, Some(&compiled(schema)), TextEnding::Finished) {
        DecodeOutcome::Accepted(accepted) => accepted,
        other => panic!("{other:?}"),
    }
}

fn invalid(text: &str, schema: &Value) -> InvalidDocument {
    match decode(text, Some(&compiled(schema)), TextEnding::Finished) {
        DecodeOutcome::Invalid(invalid) => invalid,
        other => panic!("{other:?}"),
    }
}

fn cut_off(text: &str) -> CutOffDocument {
    match decode(text, None, TextEnding::CutOff) {
        DecodeOutcome::CutOff(cut) => cut,
        other => panic!("{other:?}"),
    }
}

fn error_rows(invalid: &InvalidDocument) -> Vec<[&str; 3]> {
    let errors = invalid.errors.iter();
    errors.map(|error| [&*error.path, &*error.expected, &*error.got]).collect()
}

#[test]
fn repairs_are_listed() {
    let plain = accepted(r#"{"action_type": "STOP", "tool_calls": []}"#, &plan_schema());
    assert!(!plain.is_repaired());
    let repaired = accepted(
        "<think>done</think>\n```json\n{'action_type': 'STOP', tool_calls: [],}\n```",
        &plan_schema(),
    );
    assert!(repaired.is_repaired());
    assert_eq!(
        repaired.repairs,
        [
            TextRepair::Think,
            TextRepair::Quotes,
            TextRepair::BareKey,
            TextRepair::ExtraComma,
            TextRepair::Fence
        ]
    );
    assert_eq!(repaired.value, plain.value);
}

#[test]
fn errors_name_the_path_the_expectation_and_the_value() {
    let text = r#"{"action_type": "FIND", "tool_calls": [{"name": 3}], "extra": 1}"#;
    let invalid = invalid(text, &plan_schema());
    assert_eq!(invalid.reason, InvalidReason::Schema);
    assert_eq!(
        error_rows(&invalid),
        [
            ["", "no other members", r#""extra""#],
            [
                "/action_type",
                r#"one of ["SEARCH","FETCH_SLICE","SYNTHESIZE","ASK_HUMAN","STOP"]"#,
                r#"string "FIND""#
            ],
            ["/tool_calls/0", r#"the member "arguments""#, r#"only "name""#],
            ["/tool_calls/0/name", "string", "integer 3"],
        ]
    );
    assert_eq!(invalid.example, Some(json!({ "action_type": "SEARCH", "tool_calls": [] })));
    assert_eq!(
        invalid.render_request(),
        "The output cannot be used: it does not match the schema.\n\
         - at the top level: expected no other members, got \"extra\"\n\
         - at /action_type: expected one of [\"SEARCH\",\"FETCH_SLICE\",\"SYNTHESIZE\",\"ASK_HUMAN\",\"STOP\"], got string \"FIND\"\n\
         - at /tool_calls/0: expected the member \"arguments\", got only \"name\"\n\
         - at /tool_calls/0/name: expected string, got integer 3\n\
         The smallest valid document (its values only show the structure):\n\
         {\"action_type\":\"SEARCH\",\"tool_calls\":[]}\n\
         Write the whole JSON document again, corrected, and nothing else."
    );
}

#[test]
fn errors_describe_the_alternative_that_the_value_was_meant_for() {
    let schema = json!({ "oneOf": [
        { "type": "object", "required": ["kind", "n"], "properties": { "kind": { "const": "a" }, "n": { "type": "integer" } } },
        { "type": "object", "required": ["kind", "t"], "properties": { "kind": { "const": "b" }, "t": { "type": "string" } } },
    ] });
    assert_eq!(
        error_rows(&invalid(r#"{"kind": "a", "n": "x"}"#, &schema)),
        [["/n", "integer", r#"string "x""#]]
    );
}

#[test]
fn the_error_of_a_broken_text_names_the_position() {
    let error = invalid(r#"{"a": {"b": [1, oops]}}"#, &json!({}));
    assert_eq!(error.reason, InvalidReason::Broken);
    assert_eq!(
        error_rows(&error),
        [["/a/b/1", "a value; text belongs in double quotes", "`oops]}}`"]]
    );
    assert_eq!(
        invalid("Either {\"a\": 1} or {\"a\": 2}", &json!({})).reason,
        InvalidReason::Ambiguous
    );
}

#[test]
fn formats_are_checked_by_default() {
    let schema = json!({ "format": "date" });
    assert!(!compiled(&schema).allows(&json!("soon")));
    let lax = Schema::compile_with(&schema, FormatPolicy::Ignored);
    assert!(lax.is_ok_and(|schema| schema.allows(&json!("soon"))));
}

#[test]
fn a_value_with_only_placeholders_is_flagged() {
    let flagged = |text: &str| accepted(text, &plan_schema()).is_placeholder;
    assert!(flagged(r#"{"action_type": "SEARCH", "rationale": "string", "tool_calls": []}"#));
    assert!(flagged(
        r#"{"action_type": "STOP", "rationale": "...", "stop_condition": "<condition>", "tool_calls": []}"#
    ));
    assert!(!flagged(
        r#"{"action_type": "SEARCH", "rationale": "string search", "tool_calls": []}"#
    ));
    assert!(!flagged(r#"{"action_type": "STOP", "tool_calls": []}"#));
}

#[test]
fn a_cut_off_text_gives_its_path_and_its_complete_part() {
    let cut = cut_off(
        "```json\n{\"name\": \"write\", \"items\": [{\"id\": 1}, {\"id\": 2, \"text\": \"abc",
    );
    assert_eq!(cut.path, "/items/1/text");
    assert_eq!(cut.complete, Some(json!({ "name": "write", "items": [{ "id": 1 }, { "id": 2 }] })));
    assert!(cut.tail.ends_with("\"text\": \"abc"));
    assert!(cut.render_request().contains("inside /items/1/text"));
    assert_eq!(cut_off("<think>so").complete, None);
}

#[test]
fn other_drafts_are_supported() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object", "properties": { "pair": { "items": [{ "type": "string" }, { "type": "integer" }] } }
    });
    assert!(compiled(&schema).allows(&json!({ "pair": ["a", 1] })));
    assert!(!compiled(&schema).allows(&json!({ "pair": [1, "a"] })));
}
