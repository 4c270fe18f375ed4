//! Properties of decoding that hold for every value and every text.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use jackline_decode::{DecodeOutcome, Schema, TextEnding, decode};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any value, with texts that contain the signs to which the reader reacts.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,12}",
        "[\\\\\"'`{}\\[\\],:/#*<>a-c \n\t]{0,16}",
        Just("```json".to_owned()),
        Just("<think>x</think>".to_owned()),
        Just("a // b".to_owned()),
        Just("{\"a\": 1}".to_owned()),
        Just("“x”".to_owned()),
        Just("True, None".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A document: an object with content.
fn document() -> impl Strategy<Value = Value> {
    value().prop_map(|value| json!({ "document": value }))
}

fn written(value: &Value, pretty: bool) -> String {
    if pretty { serde_json::to_string_pretty(value).unwrap() } else { value.to_string() }
}

/// The value as text, with a comma after every last member.
fn with_commas(value: &Value) -> String {
    match value {
        Value::Array(items) if !items.is_empty() => {
            format!("[{},]", items.iter().map(with_commas).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) if !map.is_empty() => {
            let member =
                |(key, value): (&String, &Value)| format!("{}: {}", json!(key), with_commas(value));
            format!("{{{},}}", map.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// The value in Python syntax, with single quotes and `None`, `True`, `False`.
fn as_python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(as_python).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", as_python(&json!(key)), as_python(value))
            };
            format!("{{{}}}", map.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => {
            let json = json!(text).to_string();
            let inside = json[1..json.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
            format!("'{inside}'")
        }
        number => number.to_string(),
    }
}

fn accepted(text: &str) -> Option<(Value, bool)> {
    match decode(text, None, TextEnding::Finished) {
        DecodeOutcome::Accepted(accepted) => {
            let repaired = accepted.is_repaired();
            Some((accepted.value, repaired))
        }
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_json_is_decoded_without_repairs(value in value(), pretty: bool) {
        let text = written(&value, pretty);
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(accepted(&text), Some((read, false)));
    }

    #[test]
    fn text_around_a_document_does_not_change_it(value in document(), pretty: bool, which in 0..8usize) {
        let text = written(&value, pretty);
        let around = [
            format!("```json\n{text}\n```"),
            format!("```\n{text}\n```\nThat's it."),
            format!("Sure, here it is:\n\n{text}"),
            format!("{text}\n\nI hope this helps!"),
            format!("<think>maybe {{\"a\": 1}}</think>\n{text}"),
            format!("\u{feff}{text}"),
            format!("<answer>{text}</answer>"),
            format!("const x = {text};"),
        ];
        prop_assert_eq!(accepted(&around[which]), Some((value, true)));
    }

    #[test]
    fn mistakes_do_not_change_a_document(value in document()) {
        for text in [with_commas(&value), as_python(&value)] {
            if let Some((read, _)) = accepted(&text) {
                prop_assert_eq!(&read, &value, "{}", text);
            }
        }
        prop_assert_eq!(accepted(&with_commas(&value)), Some((value, true)));
    }

    #[test]
    fn a_cut_off_document_is_never_accepted(value in document(), at in 0..400usize) {
        let text = written(&value, false);
        let mut at = at % text.len();
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let cut = decode(&text[..at], None, TextEnding::CutOff);
        prop_assert!(matches!(cut, DecodeOutcome::CutOff(_)), "{} {:?}", &text[..at], cut);
    }

    #[test]
    fn a_document_without_one_of_its_signs_is_the_same_or_refused(
        value in document(), pretty: bool, at in 0..400usize,
    ) {
        let text = written(&value, pretty);
        // An escaped quote belongs to a text. Without it the text is a different one.
        let signs: Vec<(usize, char)> = text
            .char_indices()
            .filter(|(at, sign)| "{}[]\",:".contains(*sign) && !text[..*at].ends_with('\\'))
            .collect();
        let (at, sign) = signs[at % signs.len()];
        let less = format!("{}{}", &text[..at], &text[at + sign.len_utf8()..]);
        if serde_json::from_str::<Value>(&less).is_err()
            && let Some((read, _)) = accepted(&less)
        {
            prop_assert_eq!(read, value, "{}", less);
        }
    }

    #[test]
    fn no_text_causes_a_panic(text in "[\\\\\"'`{}\\[\\],:/#*<>a-cuTN01.+e“”‘’\n\t -]{0,60}|.{0,60}") {
        let schema = Schema::compile(&json!({ "type": "object", "properties": { "a": { "type": "array" } } })).unwrap();
        for ending in [TextEnding::Finished, TextEnding::CutOff] {
            for schema in [None, Some(&schema)] {
                match decode(&text, schema, ending) {
                    DecodeOutcome::Invalid(invalid) => {
                        prop_assert!(!invalid.errors.is_empty());
                        prop_assert!(invalid.render_request().len() <= jackline_decode::REQUEST_BYTES_MAX);
                    }
                    DecodeOutcome::CutOff(cut) => prop_assert!(!cut.render_request().is_empty()),
                    DecodeOutcome::Accepted(_) => {}
                }
            }
        }
    }

    #[test]
    fn an_example_is_allowed(names in prop::collection::btree_set("[a-c]{1,2}", 1..4), least in 0..3u64) {
        let names: Vec<_> = names.into_iter().collect();
        let schema = Schema::compile(&json!({
            "type": "object", "required": names,
            "additionalProperties": { "type": "array", "minItems": least, "items": { "type": "string" } }
        })).unwrap();
        prop_assert!(schema.example().is_some_and(|example| schema.allows(example)));
    }
}
