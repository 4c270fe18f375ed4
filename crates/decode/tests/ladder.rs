//! What comes out of the ladder, and what the model is told.

#![expect(clippy::panic, reason = "a test fails by it")]

use jackline_decode::{
    Accepted, CutOff, Decoded, Ending, Formats, Invalid, Reason, Repair, Schema, decode,
    plan_schema,
};
use serde_json::{Value, json};

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap_or_else(|error| panic!("{error}"))
}

fn accepted(text: &str, schema: &Value) -> Accepted {
    match decode(text, Some(&compiled(schema)), Ending::Finished) {
        Decoded::Accepted(accepted) => accepted,
        other => panic!("{other:?}"),
    }
}

fn invalid(text: &str, schema: &Value) -> Invalid {
    match decode(text, Some(&compiled(schema)), Ending::Finished) {
        Decoded::Invalid(invalid) => invalid,
        other => panic!("{other:?}"),
    }
}

fn cut_off(text: &str) -> CutOff {
    match decode(text, None, Ending::CutOff) {
        Decoded::CutOff(cut) => cut,
        other => panic!("{other:?}"),
    }
}

fn told(invalid: &Invalid) -> Vec<[&str; 3]> {
    let errors = invalid.errors.iter();
    errors.map(|error| [&*error.path, &*error.expected, &*error.got]).collect()
}

#[test]
fn repairs_are_named() {
    let plain = accepted(r#"{"action_type": "STOP", "tool_calls": []}"#, &plan_schema());
    assert!(!plain.after_repair());
    let mended = accepted(
        "<think>done</think>\n```json\n{'action_type': 'STOP', tool_calls: [],}\n```",
        &plan_schema(),
    );
    assert!(mended.after_repair());
    assert_eq!(
        mended.repairs,
        [Repair::Think, Repair::Quotes, Repair::BareKey, Repair::ExtraComma, Repair::Fence]
    );
    assert_eq!(mended.value, plain.value);
}

#[test]
fn errors_say_where_what_and_what_instead() {
    let text = r#"{"action_type": "FIND", "tool_calls": [{"name": 3}], "extra": 1}"#;
    let invalid = invalid(text, &plan_schema());
    assert_eq!(invalid.reason, Reason::Schema);
    assert_eq!(
        told(&invalid),
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
        "The output can't be used: it does not match the schema.\n\
         - at the whole: expected no other members, got \"extra\"\n\
         - at /action_type: expected one of [\"SEARCH\",\"FETCH_SLICE\",\"SYNTHESIZE\",\"ASK_HUMAN\",\"STOP\"], got string \"FIND\"\n\
         - at /tool_calls/0: expected the member \"arguments\", got only \"name\"\n\
         - at /tool_calls/0/name: expected string, got integer 3\n\
         The smallest valid document, whose values only show the shape:\n\
         {\"action_type\":\"SEARCH\",\"tool_calls\":[]}\n\
         Write the whole JSON document again, corrected, and nothing else."
    );
}

#[test]
fn the_alternative_that_was_meant_is_the_one_that_errors_are_about() {
    let schema = json!({ "oneOf": [
        { "type": "object", "required": ["kind", "n"], "properties": { "kind": { "const": "a" }, "n": { "type": "integer" } } },
        { "type": "object", "required": ["kind", "t"], "properties": { "kind": { "const": "b" }, "t": { "type": "string" } } },
    ] });
    assert_eq!(
        told(&invalid(r#"{"kind": "a", "n": "x"}"#, &schema)),
        [["/n", "integer", r#"string "x""#]]
    );
}

#[test]
fn a_broken_text_is_told_where_it_broke() {
    let error = invalid(r#"{"a": {"b": [1, oops]}}"#, &json!({}));
    assert_eq!(error.reason, Reason::Broken);
    assert_eq!(told(&error), [["/a/b/1", "a value; text belongs in double quotes", "`oops]}}`"]]);
    assert_eq!(invalid("Either {\"a\": 1} or {\"a\": 2}", &json!({})).reason, Reason::Ambiguous);
}

#[test]
fn formats_are_checked_unless_somebody_says_otherwise() {
    let schema = json!({ "format": "date" });
    assert!(!compiled(&schema).allows(&json!("soon")));
    let lax = Schema::compile_with(&schema, Formats::Ignored);
    assert!(lax.is_ok_and(|schema| schema.allows(&json!("soon"))));
}

#[test]
fn a_form_that_nobody_filled_in_is_flagged() {
    let flagged = |text: &str| accepted(text, &plan_schema()).placeholders;
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
fn what_was_cut_off_says_how_far_it_came() {
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
fn other_drafts_that_tools_name_are_understood() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object", "properties": { "pair": { "items": [{ "type": "string" }, { "type": "integer" }] } }
    });
    assert!(compiled(&schema).allows(&json!({ "pair": ["a", 1] })));
    assert!(!compiled(&schema).allows(&json!({ "pair": [1, "a"] })));
}
