//! The ladder: strictly, then cleaned up, then validated.

use serde_json::Value;

use crate::decoded::{Accepted, CutOff, Decoded, Invalid, Mismatch, Reason, Repair};
use crate::escaped;
use crate::extract::{self, Extracted};
use crate::limits::{ERRORS_MAX, TEXT_BYTES_MAX};
use crate::placeholder::is_placeholder;
use crate::read::{Manner, Read, Reader, Split, Stop};
use crate::schema::{Schema, bounded};

/// How the writing of a text came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model stopped by itself.
    Finished,
    /// It ran into a limit of length.
    CutOff,
}

/// Decodes what a model wrote.
///
/// A value is never guessed. Slips that leave one reading are mended and noted; where
/// there are two readings, the answer is [`Decoded::Invalid`] with an error that says what
/// to write instead.
///
/// ```
/// use jackline_decode::{Decoded, Ending, Repair, Schema, decode};
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({
///     "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } }
/// }))?;
///
/// let text = "Here you go:\n```json\n{'n': 3,}\n```";
/// let Decoded::Accepted(accepted) = decode(text, Some(&schema), Ending::Finished) else { panic!() };
/// assert_eq!(accepted.value, json!({ "n": 3 }));
/// assert!(accepted.repairs.contains(&Repair::ExtraComma));
///
/// let Decoded::Invalid(invalid) = decode(r#"{"n": "3"}"#, Some(&schema), Ending::Finished) else { panic!() };
/// assert_eq!(invalid.errors[0].path, "/n");
/// assert_eq!(invalid.errors[0].expected, "integer");
/// assert!(invalid.render_request().contains("/n: expected integer"));
///
/// let cut = decode(r#"{"n": 3, "why": "becau"#, Some(&schema), Ending::CutOff);
/// assert!(matches!(cut, Decoded::CutOff(cut) if cut.path == "/why"));
/// # Ok::<(), jackline_decode::SchemaError>(())
/// ```
pub fn decode(text: &str, schema: Option<&Schema>, ending: Ending) -> Decoded {
    if text.len() > TEXT_BYTES_MAX {
        let got = format!("{} bytes", text.len());
        let stop = stop(Reason::TooLong, "at most 4 MiB of text", got);
        return invalid(stop.reason, vec![mismatch(&stop)], schema);
    }
    let cut = ending == Ending::CutOff;
    match strictly(text) {
        // The rest of a number may have been cut off.
        Ok(Value::Number(_)) if cut => {}
        Ok(value) => return judge(Read::plain(value), schema),
        Err(stop) if stop.reason != Reason::Broken && !cut => {
            return invalid(stop.reason, vec![mismatch(&stop)], schema);
        }
        Err(_) => {}
    }
    let manner = if cut { Manner::Cut } else { Manner::Lenient };
    match clean_up(text, manner) {
        Ok(read) => judge(read, schema),
        Err((_, begins)) if cut => cut_off(text, begins),
        Err((stop, _)) => invalid(stop.reason, vec![mismatch(&stop)], schema),
    }
}

/// Validates what is JSON already.
pub fn check(value: Value, schema: &Schema) -> Decoded {
    judge(Read::plain(value), Some(schema))
}

/// Validates what is JSON already, and mends nothing: not even a document that came as
/// a text.
pub fn check_as_is(value: Value, schema: &Schema) -> Decoded {
    match schema.check(&value) {
        Ok(()) => accept(value, Vec::new(), Some(schema)),
        Err((reason, errors)) => invalid(reason, told(errors), Some(schema)),
    }
}

/// Reads a text that is JSON and nothing else.
pub(crate) fn strictly(text: &str) -> Result<Value, Stop> {
    let mut reader = Reader::new(text, 0, Manner::Strict);
    let read = reader.read()?;
    if text
        .get(read.end..)
        .is_some_and(|rest| rest.trim_start_matches([' ', '\t', '\n', '\r']).is_empty())
    {
        return Ok(read.value);
    }
    Err(stop(Reason::Broken, "the end of the text", "more text".to_owned()))
}

/// Reads the one document in a text that is not JSON as it is. An error comes with the place
/// where the document begins, counted in bytes from the end of the text.
fn clean_up(text: &str, manner: Manner) -> Result<Read, (Stop, Option<usize>)> {
    let mut repairs = Vec::new();
    let bare = text.trim_start_matches('\u{feff}');
    if bare.len() < text.len() {
        repairs.push(Repair::Space);
    }
    let Some((rest, thoughts)) = extract::after_thoughts(bare) else {
        return Err((
            stop(
                Reason::NoJson,
                "an answer after the thoughts",
                "thoughts without an end".to_owned(),
            ),
            None,
        ));
    };
    if thoughts {
        repairs.push(Repair::Think);
    }
    let inside = extract::unfenced(rest);
    let plain = inside.unwrap_or(rest);
    let mut read = if let Ok(value) = strictly(plain)
        && (manner != Manner::Cut || inside.is_some() || !value.is_number())
    {
        if inside.is_some() {
            repairs.push(Repair::Fence);
        }
        Read::plain(value)
    } else if let Some(unescaped) = escaped::unescaped(plain) {
        repairs.push(Repair::Unwrapped);
        extracted(&unescaped, manner)?
    } else {
        extracted(rest, manner)?
    };
    if manner == Manner::Cut && read.repairs.contains(&Repair::Prose) {
        // What follows the document was cut off, and may have been another one.
        return Err((stop(Reason::Ambiguous, "one document", String::new()), None));
    }
    repairs.append(&mut read.repairs);
    read.repairs = repairs;
    Ok(read)
}

fn extracted(text: &str, manner: Manner) -> Result<Read, (Stop, Option<usize>)> {
    match extract::extract(text, manner) {
        Extracted::One(read) => Ok(*read),
        Extracted::Stopped(stop, start) => Err((stop, start.map(|start| text.len() - start))),
    }
}

/// Validates what was read.
fn judge(read: Read, schema: Option<&Schema>) -> Decoded {
    let Read { value, mut repairs, splits, .. } = read;
    let Some(schema) = schema else {
        if splits.is_empty() {
            return accept(value, repairs, None);
        }
        return invalid(Reason::Ambiguous, vec![missing_bracket()], None);
    };
    let (reason, errors) = match schema.check(&value) {
        Ok(()) => {
            let other =
                |split: &Split| split.apply(&value).is_some_and(|other| schema.allows(&other));
            if Split::too_many(&splits) || splits.iter().any(other) {
                return invalid(Reason::Ambiguous, vec![missing_bracket()], Some(schema));
            }
            return accept(value, repairs, Some(schema));
        }
        Err(wrong) => wrong,
    };
    if splits.is_empty()
        && let Some(unwrapped) = unwrapped(&value, &errors)
    {
        repairs.push(Repair::Unwrapped);
        return match schema.check(&unwrapped) {
            Ok(()) => accept(unwrapped, repairs, Some(schema)),
            Err((reason, errors)) => invalid(reason, told(errors), Some(schema)),
        };
    }
    invalid(reason, told(errors), Some(schema))
}

/// The same value with documents for the texts that hold them, if that is all that is wrong.
fn unwrapped(value: &Value, errors: &[crate::schema::Found]) -> Option<Value> {
    let mut value = value.clone();
    for error in errors {
        let place = value.pointer_mut(error.wrapped.as_ref()?)?;
        let inner = strictly(place.as_str()?).ok()?;
        if !(inner.is_object() || inner.is_array()) {
            return None;
        }
        *place = inner;
    }
    Some(value)
}

fn accept(value: Value, repairs: Vec<Repair>, schema: Option<&Schema>) -> Decoded {
    let placeholders = is_placeholder(&value, schema);
    Decoded::Accepted(Accepted { value, repairs, placeholders })
}

fn invalid(reason: Reason, mut errors: Vec<Mismatch>, schema: Option<&Schema>) -> Decoded {
    let more = errors.len().saturating_sub(ERRORS_MAX);
    errors.truncate(ERRORS_MAX);
    let example = schema.and_then(Schema::example).cloned();
    Decoded::Invalid(Invalid { reason, errors, more, example })
}

fn cut_off(text: &str, begins: Option<usize>) -> Decoded {
    let partial = begins.map(|from_end| {
        let start = text.len().saturating_sub(from_end);
        let mut reader = Reader::new(text, start, Manner::Cut);
        let read = if text.get(start..).is_some_and(|rest| rest.starts_with('"')) {
            reader.read_members()
        } else {
            reader.read()
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
    Decoded::CutOff(CutOff { bytes: text.len(), path: bounded(&path), tail, complete })
}

fn told(errors: Vec<crate::schema::Found>) -> Vec<Mismatch> {
    errors.into_iter().map(|found| found.mismatch).collect()
}

fn missing_bracket() -> Mismatch {
    mismatch(&stop(
        Reason::Ambiguous,
        "every bracket closed",
        "a closing bracket is missing, and it could stand in several places".to_owned(),
    ))
}

fn stop(reason: Reason, expected: &'static str, got: String) -> Stop {
    Stop { reason, at: 0, path: String::new(), expected, got, committed: true }
}

fn mismatch(stop: &Stop) -> Mismatch {
    Mismatch {
        path: bounded(&stop.path),
        expected: bounded(stop.expected),
        got: bounded(&stop.got),
    }
}
