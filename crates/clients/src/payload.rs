//! What the client sends: one JSON object, read tolerantly.
//!
//! Clients are newer than we are. A field that is not there, is null or is of
//! another type is as good as absent, and what we don't know is written down.
//! Only what a gate can't do without is an error.

use jackline_engine::json::parse_strict;
use serde_json::{Map, Value, json};

use crate::dialect::Malformed;

/// How much of an unknown field is written down.
const ODD_BYTES_MAX: usize = 512;

/// How many unknown fields are written down.
const ODD_MAX: usize = 16;

/// A character by its number, as JSON writes it.
const ESCAPE_BYTES: usize = 6;

/// Stands for a character that is not known.
const REPLACEMENT: &[u8; ESCAPE_BYTES] = br"\ufffd";

/// The fields of a payload. They are taken out one by one; what is left is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct PayloadFields {
    map: Map<String, Value>,
}

impl PayloadFields {
    /// Reads a payload.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let value = parse_strict(bytes)
            .or_else(|error| mend(bytes).map_or(Err(error), |mended| parse_strict(&mended)))
            .map_err(|error| Malformed::Json(brief(&error.to_string())))?;
        match value {
            Value::Object(map) => Ok(Self { map }),
            _ => Err(Malformed::NotAnObject),
        }
    }

    /// Takes a text that says something.
    pub fn text(&mut self, field: &str) -> Option<String> {
        match self.map.get(field) {
            Some(Value::String(text)) if !text.is_empty() => match self.map.remove(field) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Looks at a text.
    pub fn peek(&self, field: &str) -> Option<&str> {
        self.map.get(field).and_then(Value::as_str)
    }

    /// Looks at anything.
    pub fn peek_any(&self, field: &str) -> Option<&Value> {
        self.map.get(field)
    }

    /// Takes anything but null.
    pub fn any(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Takes an object.
    pub fn object(&mut self, field: &str) -> Option<Value> {
        let is_object = self.map.get(field).is_some_and(Value::is_object);
        is_object.then(|| self.map.remove(field)).flatten()
    }

    /// Looks at a flag; anything but `true` is none.
    pub fn flag(&self, field: &str) -> bool {
        self.map.get(field) == Some(&Value::Bool(true))
    }

    /// Looks at a list; anything else is an empty one.
    pub fn list(&self, field: &str) -> &[Value] {
        self.map.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What is written down beside the event: the hook, the client's permission mode, and the
    /// fields that no event took. `ignored` names fields that are known and change no decision.
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
            .take(ODD_MAX)
            .map(|(name, value)| (shorten(&name), shown(value)))
            .collect();
        if !odd.is_empty() {
            meta.insert("odd".to_owned(), Value::Object(odd));
        }
        Value::Object(meta)
    }
}

/// The client cuts texts between the halves of a character, and sends one half.
/// What it runs then has a replacement character there, and so has this; none
/// where nothing is to be mended.
fn mend(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut mended = bytes.to_vec();
    let (mut at, mut is_mended) = (0, false);
    while let Some(next) = mended.get(at..).and_then(|rest| rest.iter().position(|b| *b == b'\\')) {
        at += next;
        let half = |at: usize| surrogate(bytes.get(at..)?);
        at += match half(at) {
            Some(Half::High) if half(at + ESCAPE_BYTES) == Some(Half::Low) => 2 * ESCAPE_BYTES,
            Some(_) => {
                mended.get_mut(at..at + ESCAPE_BYTES)?.copy_from_slice(REPLACEMENT);
                is_mended = true;
                ESCAPE_BYTES
            }
            // The letter after a backslash never begins an escape.
            None => 2,
        };
    }
    is_mended.then_some(mended)
}

/// Half of a character that takes two.
#[derive(PartialEq, Eq)]
enum Half {
    High,
    Low,
}

fn surrogate(escape: &[u8]) -> Option<Half> {
    let digits = escape.strip_prefix(br"\u")?.get(..4)?;
    let number = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match number {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

/// What is wrong, short and printable: it may quote what the client sent.
fn brief(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

fn shorten(name: &str) -> String {
    name.chars().take(64).collect()
}

/// An unknown value where it is small, else what it is.
fn shown(value: Value) -> Value {
    let bytes = serde_json::to_string(&value).map_or(usize::MAX, |text| text.len());
    if bytes <= ODD_BYTES_MAX {
        return value;
    }
    json!({ "bytes": bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_another_type_are_absent_and_written_down() {
        let text = br#"{"session_id":7,"cwd":null,"new":[1],"effort":2}"#;
        let mut fields = PayloadFields::parse(text).unwrap();
        assert_eq!(fields.text("session_id"), None);
        assert_eq!(fields.text("cwd"), None);
        let expected = json!({"hook": "Stop", "odd": {"session_id": 7, "cwd": null, "new": [1]}});
        assert_eq!(fields.into_meta("Stop", None, &["effort"]), expected);
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        assert!(matches!(PayloadFields::parse(b"{not json"), Err(Malformed::Json(_))));
        assert_eq!(PayloadFields::parse(b"[]"), Err(Malformed::NotAnObject));
    }

    #[test]
    fn half_a_character_is_no_reason_not_to_listen() {
        let prompt = |text: &str| {
            let text = format!(r#"{{"hook_event_name":"Stop","prompt":"{text}"}}"#);
            PayloadFields::parse(text.as_bytes()).map(|mut fields| fields.text("prompt").unwrap())
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
            assert!(matches!(prompt(text), Err(Malformed::Json(_))), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_a_few_printable_words() {
        let key = format!("{}\\u0007", "k".repeat(10_000));
        let text = format!(r#"{{"{key}":1,"{key}":2}}"#);
        let error = PayloadFields::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.len() < 300 && !error.contains(char::is_control), "{error:?}");
    }
}
