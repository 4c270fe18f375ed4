//! Reads what the client sends: one JSON object, with tolerance.
//!
//! Clients may be newer than this program. A field that is missing, null or of another type counts
//! as absent, and fields that we do not recognise are recorded. Only a missing field that a gate
//! needs is an error.

use jackline_engine::json::parse_strict;
use serde_json::{Map, Value, json};

use crate::dialect::PayloadError;

/// How many bytes of an unrecognised field are recorded.
const UNRECOGNISED_BYTES_MAX: usize = 512;

/// How many unrecognised fields are recorded.
const UNRECOGNISED_FIELDS_MAX: usize = 16;

/// The length of a JSON escape such as `\u00e9`.
const ESCAPE_BYTES: usize = 6;

/// The escape of the Unicode replacement character.
const REPLACEMENT_ESCAPE: &[u8; ESCAPE_BYTES] = br"\ufffd";

/// The fields of a payload. Callers take them out one by one, so the rest are unrecognised.
#[derive(Debug, Clone, PartialEq)]
pub struct PayloadFields {
    map: Map<String, Value>,
}

impl PayloadFields {
    /// Reads a payload.
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadError> {
        let value = parse_strict(bytes)
            .or_else(|error| fix_surrogates(bytes).map_or(Err(error), |fixed| parse_strict(&fixed)))
            .map_err(|error| PayloadError::Json(short_printable(&error.to_string())))?;
        match value {
            Value::Object(map) => Ok(Self { map }),
            _ => Err(PayloadError::NotAnObject),
        }
    }

    /// Takes a text that is not empty.
    pub fn take_text(&mut self, field: &str) -> Option<String> {
        match self.map.get(field) {
            Some(Value::String(text)) if !text.is_empty() => match self.map.remove(field) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reads a text without taking it.
    pub fn peek_text(&self, field: &str) -> Option<&str> {
        self.map.get(field).and_then(Value::as_str)
    }

    /// Reads any value without taking it.
    pub fn peek_any(&self, field: &str) -> Option<&Value> {
        self.map.get(field)
    }

    /// Takes any value except null.
    pub fn take_any(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Takes an object.
    pub fn take_object(&mut self, field: &str) -> Option<Value> {
        let is_object = self.map.get(field).is_some_and(Value::is_object);
        is_object.then(|| self.map.remove(field)).flatten()
    }

    /// Reads a flag. Any value other than `true` counts as false.
    pub fn flag(&self, field: &str) -> bool {
        self.map.get(field) == Some(&Value::Bool(true))
    }

    /// Reads a list. Any other value counts as an empty list.
    pub fn list(&self, field: &str) -> &[Value] {
        self.map.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The metadata that is recorded with the event: the hook, the client's permission mode, and
    /// the fields that no event uses. `ignored` lists fields that we recognise and that affect no
    /// decision.
    pub fn into_meta(self, hook: &str, mode: Option<&str>, ignored: &[&str]) -> Value {
        let mut meta = Map::new();
        if !hook.is_empty() {
            meta.insert("hook".to_owned(), json!(hook));
        }
        if let Some(mode) = mode {
            meta.insert("mode".to_owned(), json!(mode));
        }
        let unknown = |(name, _): &(String, Value)| !ignored.contains(&name.as_str());
        let odd: Map<String, Value> = self
            .map
            .into_iter()
            .filter(unknown)
            .take(UNRECOGNISED_FIELDS_MAX)
            .map(|(name, value)| (shorten_name(&name), shorten_value(value)))
            .collect();
        if !odd.is_empty() {
            meta.insert("odd".to_owned(), Value::Object(odd));
        }
        Value::Object(meta)
    }
}

/// Replaces unpaired surrogate escapes, because the client may cut a text in the middle of a
/// character. The tool then gets a replacement character too. Returns nothing if there is nothing
/// to fix.
fn fix_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut fixed = bytes.to_vec();
    let (mut at, mut is_changed) = (0, false);
    while let Some(next) = fixed.get(at..).and_then(|rest| rest.iter().position(|b| *b == b'\\')) {
        at += next;
        let half = |at: usize| parse_surrogate(bytes.get(at..)?);
        at += match half(at) {
            Some(SurrogateKind::High) if half(at + ESCAPE_BYTES) == Some(SurrogateKind::Low) => {
                2 * ESCAPE_BYTES
            }
            Some(_) => {
                fixed.get_mut(at..at + ESCAPE_BYTES)?.copy_from_slice(REPLACEMENT_ESCAPE);
                is_changed = true;
                ESCAPE_BYTES
            }
            // The character after a backslash never begins an escape.
            None => 2,
        };
    }
    is_changed.then_some(fixed)
}

/// One half of a character that needs two escapes.
#[derive(PartialEq, Eq)]
enum SurrogateKind {
    High,
    Low,
}

fn parse_surrogate(escape: &[u8]) -> Option<SurrogateKind> {
    let digits = escape.strip_prefix(br"\u")?.get(..4)?;
    let number = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match number {
        0xd800..=0xdbff => Some(SurrogateKind::High),
        0xdc00..=0xdfff => Some(SurrogateKind::Low),
        _ => None,
    }
}

/// An error text, cut and without control characters, because it may quote the payload.
fn short_printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

fn shorten_name(name: &str) -> String {
    name.chars().take(64).collect()
}

/// An unrecognised value, or only its size if it is large.
fn shorten_value(value: Value) -> Value {
    let bytes = serde_json::to_string(&value).map_or(usize::MAX, |text| text.len());
    if bytes <= UNRECOGNISED_BYTES_MAX {
        return value;
    }
    json!({ "bytes": bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_another_type_are_absent_and_recorded() {
        let text = br#"{"session_id":7,"cwd":null,"new":[1],"effort":2}"#;
        let mut fields = PayloadFields::parse(text).unwrap();
        assert_eq!(fields.take_text("session_id"), None);
        assert_eq!(fields.take_text("cwd"), None);
        let expected = json!({"hook": "Stop", "odd": {"session_id": 7, "cwd": null, "new": [1]}});
        assert_eq!(fields.into_meta("Stop", None, &["effort"]), expected);
    }

    #[test]
    fn a_payload_that_is_not_an_object_is_an_error() {
        assert!(matches!(PayloadFields::parse(b"{not json"), Err(PayloadError::Json(_))));
        assert_eq!(PayloadFields::parse(b"[]"), Err(PayloadError::NotAnObject));
    }

    #[test]
    fn half_a_character_is_replaced() {
        let prompt = |text: &str| {
            let text = format!(r#"{{"hook_event_name":"Stop","prompt":"{text}"}}"#);
            PayloadFields::parse(text.as_bytes())
                .map(|mut fields| fields.take_text("prompt").unwrap())
        };
        for (text, expected) in [
            (r"a\ud83d", "a\u{fffd}"),
            (r"\uDE00b", "\u{fffd}b"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ud83d\n\\\ude00", "\u{fffd}\n\\\u{fffd}"),
            (r"\\ud83d \ud83d\ude00", "\\ud83d \u{1f600}"),
        ] {
            assert_eq!(prompt(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [r"\ud83", r"\ud83\ud83d", r"\ud83d\x", "\\"] {
            assert!(matches!(prompt(text), Err(PayloadError::Json(_))), "{text}");
        }
    }

    #[test]
    fn the_error_is_short_and_printable() {
        let key = format!("{}\\u0007", "k".repeat(10_000));
        let text = format!(r#"{{"{key}":1,"{key}":2}}"#);
        let error = PayloadFields::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.len() < 300 && !error.contains(char::is_control), "{error:?}");
    }
}
