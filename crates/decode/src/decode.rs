//! The decoding ladder: parse strictly, then repair, then validate.

use serde_json::Value;

use crate::extract::{self, ExtractionResult};
use crate::limits::{ERRORS_MAX, TEXT_BYTES_MAX};
use crate::outcome::{
    AcceptedDocument, CutOffDocument, DecodeMismatch, DecodeOutcome, InvalidDocument,
    InvalidReason, TextRepair,
};
use crate::placeholder::is_placeholder;
use crate::read::{BracketAlternative, JsonReadFailure, JsonReadMode, JsonReader, ReadDocument};
use crate::schema::{Schema, shorten_error_text};
use crate::unescape;

/// Why a text ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEnding {
    /// The model completed its text.
    Finished,
    /// The model reached a length limit.
    CutOff,
}

/// Decodes text that a model wrote.
///
/// This never guesses a value. It repairs a mistake if only one reading is possible, and
/// lists the repair. If two readings are possible, it returns
/// [`DecodeOutcome::Invalid`] with an error that says what to write instead.
///
/// ```
/// use jackline_decode::{DecodeOutcome, Schema, TextEnding, TextRepair, decode};
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({
///     "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } }
/// }))?;
///
/// let text = "Here you go:\n```json\n{'n': 3,}\n```";
/// let DecodeOutcome::Accepted(accepted) = decode(text, Some(&schema), TextEnding::Finished)
/// else {
///     panic!()
/// };
/// assert_eq!(accepted.value, json!({ "n": 3 }));
/// assert!(accepted.repairs.contains(&TextRepair::ExtraComma));
///
/// let outcome = decode(r#"{"n": "3"}"#, Some(&schema), TextEnding::Finished);
/// let DecodeOutcome::Invalid(invalid) = outcome else { panic!() };
/// assert_eq!(invalid.errors[0].path, "/n");
/// assert_eq!(invalid.errors[0].expected, "integer");
/// assert!(invalid.render_request().contains("/n: expected integer"));
///
/// let cut = decode(r#"{"n": 3, "why": "becau"#, Some(&schema), TextEnding::CutOff);
/// assert!(matches!(cut, DecodeOutcome::CutOff(cut) if cut.path == "/why"));
/// # Ok::<(), jackline_decode::SchemaError>(())
/// ```
pub fn decode(text: &str, schema: Option<&Schema>, ending: TextEnding) -> DecodeOutcome {
    if text.len() > TEXT_BYTES_MAX {
        let got = format!("{} bytes", text.len());
        let stop = new_failure(InvalidReason::TooLong, "at most 4 MiB of text", got);
        return reject_text(stop.reason, vec![new_mismatch(&stop)], schema);
    }
    let cut = ending == TextEnding::CutOff;
    match parse_exactly(text) {
        // The text may end in the middle of a number.
        Ok(Value::Number(_)) if cut => {}
        Ok(value) => return validate_document(ReadDocument::unrepaired(value), schema),
        Err(stop) if stop.reason != InvalidReason::Broken && !cut => {
            return reject_text(stop.reason, vec![new_mismatch(&stop)], schema);
        }
        Err(_) => {}
    }
    let manner = if cut { JsonReadMode::CutOff } else { JsonReadMode::Lenient };
    match read_leniently(text, manner) {
        Ok(read) => validate_document(read, schema),
        Err((_, begins)) if cut => cut_off(text, begins),
        Err((stop, _)) => reject_text(stop.reason, vec![new_mismatch(&stop)], schema),
    }
}

/// Validates a value that is already JSON.
pub fn check_value(value: Value, schema: &Schema) -> DecodeOutcome {
    validate_document(ReadDocument::unrepaired(value), Some(schema))
}

/// Validates a value that is already JSON and repairs nothing, not even a document
/// inside a string.
pub fn check_value_unchanged(value: Value, schema: &Schema) -> DecodeOutcome {
    match schema.check(&value) {
        Ok(()) => accept_value(value, Vec::new(), Some(schema)),
        Err((reason, errors)) => reject_text(reason, into_mismatches(errors), Some(schema)),
    }
}

/// Reads a text that is JSON and nothing else.
pub(crate) fn parse_exactly(text: &str) -> Result<Value, JsonReadFailure> {
    let mut reader = JsonReader::new(text, 0, JsonReadMode::Strict);
    let read = reader.read_document()?;
    if text
        .get(read.end..)
        .is_some_and(|rest| rest.trim_start_matches([' ', '\t', '\n', '\r']).is_empty())
    {
        return Ok(read.value);
    }
    Err(new_failure(
        InvalidReason::Broken,
        "the end of the text",
        "more text behind the document".to_owned(),
    ))
}

/// Reads the one document in a text that is not valid JSON as a whole. An error contains
/// the start of the document, as a number of bytes before the end of the text.
fn read_leniently(
    text: &str,
    manner: JsonReadMode,
) -> Result<ReadDocument, (JsonReadFailure, Option<usize>)> {
    let mut repairs = Vec::new();
    let bare = text.trim_start_matches('\u{feff}');
    if bare.len() < text.len() {
        repairs.push(TextRepair::Space);
    }
    let Some((rest, thoughts)) = extract::skip_reasoning(bare) else {
        return Err((
            new_failure(
                InvalidReason::NoJson,
                "an answer after the reasoning",
                "reasoning that never ends".to_owned(),
            ),
            None,
        ));
    };
    if thoughts {
        repairs.push(TextRepair::Think);
    }
    let inside = extract::fence_content(rest);
    let plain = inside.unwrap_or(rest);
    let mut read = if let Ok(value) = parse_exactly(plain)
        && (manner != JsonReadMode::CutOff || inside.is_some() || !value.is_number())
    {
        if inside.is_some() {
            repairs.push(TextRepair::Fence);
        }
        ReadDocument::unrepaired(value)
    } else if let Some(unescaped) = unescape::unescape_document(plain) {
        repairs.push(TextRepair::Unwrapped);
        extract_document(&unescaped, manner)?
    } else {
        extract_document(rest, manner)?
    };
    if manner == JsonReadMode::CutOff && read.repairs.contains(&TextRepair::Prose) {
        // The text behind the document was cut off. It may contain another document.
        return Err((new_failure(InvalidReason::Ambiguous, "one document", String::new()), None));
    }
    repairs.append(&mut read.repairs);
    read.repairs = repairs;
    Ok(read)
}

fn extract_document(
    text: &str,
    manner: JsonReadMode,
) -> Result<ReadDocument, (JsonReadFailure, Option<usize>)> {
    match extract::extract(text, manner) {
        ExtractionResult::Document(read) => Ok(*read),
        ExtractionResult::Failed(stop, start) => Err((stop, start.map(|start| text.len() - start))),
    }
}

/// Validates a document that was read.
fn validate_document(read: ReadDocument, schema: Option<&Schema>) -> DecodeOutcome {
    let ReadDocument { value, mut repairs, bracket_alternatives: splits, .. } = read;
    let Some(schema) = schema else {
        if splits.is_empty() {
            return accept_value(value, repairs, None);
        }
        return reject_text(InvalidReason::Ambiguous, vec![missing_bracket_error()], None);
    };
    let (reason, errors) = match schema.check(&value) {
        Ok(()) => {
            let other = |split: &BracketAlternative| {
                split.other_reading(&value).is_some_and(|other| schema.allows(&other))
            };
            if BracketAlternative::are_too_many(&splits) || splits.iter().any(other) {
                return reject_text(
                    InvalidReason::Ambiguous,
                    vec![missing_bracket_error()],
                    Some(schema),
                );
            }
            return accept_value(value, repairs, Some(schema));
        }
        Err(mismatches) => mismatches,
    };
    if splits.is_empty()
        && let Some(unwrapped) = unwrap_documents(&value, &errors)
    {
        repairs.push(TextRepair::Unwrapped);
        return match schema.check(&unwrapped) {
            Ok(()) => accept_value(unwrapped, repairs, Some(schema)),
            Err((reason, errors)) => reject_text(reason, into_mismatches(errors), Some(schema)),
        };
    }
    reject_text(reason, into_mismatches(errors), Some(schema))
}

/// The value with documents in place of the strings that contain them. `None` if the value
/// has any other error.
fn unwrap_documents(value: &Value, errors: &[crate::schema::ValidationMismatch]) -> Option<Value> {
    let mut value = value.clone();
    for error in errors {
        let target = value.pointer_mut(error.wrapped_pointer.as_ref()?)?;
        let inner = parse_exactly(target.as_str()?).ok()?;
        if !(inner.is_object() || inner.is_array()) {
            return None;
        }
        *target = inner;
    }
    Some(value)
}

fn accept_value(value: Value, repairs: Vec<TextRepair>, schema: Option<&Schema>) -> DecodeOutcome {
    let placeholders = is_placeholder(&value, schema);
    DecodeOutcome::Accepted(AcceptedDocument { value, repairs, is_placeholder: placeholders })
}

fn reject_text(
    reason: InvalidReason,
    mut errors: Vec<DecodeMismatch>,
    schema: Option<&Schema>,
) -> DecodeOutcome {
    let more = errors.len().saturating_sub(ERRORS_MAX);
    errors.truncate(ERRORS_MAX);
    let example = schema.and_then(Schema::example).cloned();
    DecodeOutcome::Invalid(InvalidDocument { reason, errors, errors_omitted: more, example })
}

fn cut_off(text: &str, begins: Option<usize>) -> DecodeOutcome {
    let partial = begins.map(|from_end| {
        let start = text.len().saturating_sub(from_end);
        let mut reader = JsonReader::new(text, start, JsonReadMode::CutOff);
        let read = if text.get(start..).is_some_and(|rest| rest.starts_with('"')) {
            reader.read_members()
        } else {
            reader.read_document()
        };
        match read {
            Ok(read) => (String::new(), Some(read.value)),
            Err(_) => reader.into_partial(),
        }
    });
    let (path, complete) = partial.unwrap_or_default();
    let mut tail: Vec<char> = text.chars().rev().take(60).collect();
    tail.reverse();
    let tail = tail.into_iter().collect();
    DecodeOutcome::CutOff(CutOffDocument {
        bytes: text.len(),
        path: shorten_error_text(&path),
        tail,
        complete,
    })
}

fn into_mismatches(errors: Vec<crate::schema::ValidationMismatch>) -> Vec<DecodeMismatch> {
    errors.into_iter().map(|found| found.mismatch).collect()
}

fn missing_bracket_error() -> DecodeMismatch {
    new_mismatch(&new_failure(
        InvalidReason::Ambiguous,
        "every bracket closed",
        "a missing closing bracket that could be at several positions".to_owned(),
    ))
}

fn new_failure(reason: InvalidReason, expected: &'static str, got: String) -> JsonReadFailure {
    JsonReadFailure { reason, at: 0, path: String::new(), expected, got, is_document: true }
}

fn new_mismatch(stop: &JsonReadFailure) -> DecodeMismatch {
    DecodeMismatch {
        path: shorten_error_text(&stop.path),
        expected: shorten_error_text(stop.expected),
        got: shorten_error_text(&stop.got),
    }
}
