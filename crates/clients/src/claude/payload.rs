//! What the client sends: one JSON object, read tolerantly.
//!
//! Clients are newer than we are. A field that is not there, is null or is of
//! another type is as good as absent, and what we don't know is written down.
//! Only what a gate can't do without is an error.

use jackline_engine::json::parse_strict;
use serde_json::{Map, Value, json};

/// How much of an unknown field is written down.
const ODD_BYTES_MAX: usize = 512;

/// How many unknown fields are written down.
const ODD_MAX: usize = 16;

/// A character by its number, as JSON writes it.
const ESCAPE_BYTES: usize = 6;

/// What stands for a character that nobody can know.
const REPLACEMENT: &[u8; ESCAPE_BYTES] = br"\ufffd";

/// Fields that are known and mean nothing to a decision.
const PASSED_OVER: [&str; 15] = [
    "prompt_id",
    "effort",
    "duration_ms",
    "session_crons",
    "permission_suggestions",
    "session_title",
    "agent_type",
    "agent_transcript_path",
    "is_interrupt",
    "stop_hook_active",
    "background_tasks",
    "mcp_server",
    "context_tokens",
    "trigger",
    "custom_instructions",
];

/// Why a payload can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// It is not JSON.
    #[error("what the client sent is not JSON: {0}")]
    Json(String),
    /// It is JSON, and no object.
    #[error("what the client sent is no JSON object")]
    NotAnObject,
    /// A field is missing that a gate can't do without.
    #[error("what the client sent has no usable `{0}`")]
    Missing(&'static str),
    /// It can't be told as an event.
    #[error("what the client sent can't be told as an event: {0}")]
    Event(#[from] jackline_engine::wire::WireError),
}

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What happened, in the client's words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Hook {
            $($(#[$doc])* $name,)*
            /// Something that we know nothing about.
            Other,
        }

        impl Hook {
            /// Every event that is known.
            pub const ALL: &'static [Hook] = &[$(Hook::$name,)*];

            /// The name in the client's words.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self::Other => "",
                }
            }
        }
    };
}

hooks! {
    /// A session begins, comes back, or goes on after a compaction.
    SessionStart,
    /// A person, or the client itself, says something to the agent.
    UserPromptSubmit,
    /// A tool is about to run. The gate.
    PreToolUse,
    /// A tool has run.
    PostToolUse,
    /// A tool has failed.
    PostToolUseFailure,
    /// All calls of one answer of the model are over.
    PostToolBatch,
    /// The client itself refused a call.
    PermissionDenied,
    /// The agent wants to end its turn.
    Stop,
    /// A sub-agent begins.
    SubagentStart,
    /// A sub-agent wants to end.
    SubagentStop,
    /// The context is about to be compacted.
    PreCompact,
    /// The context was compacted.
    PostCompact,
    /// The session is over.
    SessionEnd,
    /// The settings have changed, and are about to be read again.
    ConfigChange,
}

impl Hook {
    /// The event with this number in [`Hook::ALL`].
    pub fn numbered(number: usize) -> Self {
        Self::ALL.get(number).copied().unwrap_or(Self::Other)
    }

    /// Whether an objection keeps something from happening here.
    pub(crate) fn is_gate(self) -> bool {
        matches!(self, Self::PreToolUse | Self::UserPromptSubmit | Self::Stop | Self::SubagentStop)
    }

    /// The number of the event in [`Hook::ALL`].
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|known| *known == self).unwrap_or(Self::ALL.len())
    }
}

/// A payload whose fields are taken out one by one; what is left is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// What happened.
    pub hook: Hook,
    map: Map<String, Value>,
}

impl Payload {
    /// Reads a payload.
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadError> {
        let value = parse_strict(bytes)
            .or_else(|error| mend(bytes).map_or(Err(error), |mended| parse_strict(&mended)))
            .map_err(|error| PayloadError::Json(brief(&error.to_string())))?;
        let Value::Object(mut map) = value else { return Err(PayloadError::NotAnObject) };
        let Some(Value::String(name)) = map.remove("hook_event_name") else {
            return Err(PayloadError::Missing("hook_event_name"));
        };
        let known = Hook::ALL.iter().copied().find(|hook| hook.name() == name);
        if known.is_none() {
            map.insert("hook_event_name".to_owned(), Value::String(name));
        }
        Ok(Self { hook: known.unwrap_or(Hook::Other), map })
    }

    /// Takes a text that says something.
    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
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
    pub(crate) fn peek_any(&self, field: &str) -> Option<&Value> {
        self.map.get(field)
    }

    /// Takes anything but null.
    pub(crate) fn any(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Takes an object.
    pub(crate) fn object(&mut self, field: &str) -> Option<Value> {
        let is_object = self.map.get(field).is_some_and(Value::is_object);
        is_object.then(|| self.map.remove(field)).flatten()
    }

    /// Looks at a flag; anything but `true` is none.
    pub(crate) fn flag(&self, field: &str) -> bool {
        self.map.get(field) == Some(&Value::Bool(true))
    }

    /// Looks at a list; anything else is an empty one.
    pub(crate) fn list(&self, field: &str) -> &[Value] {
        self.map.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What is written down beside the event: the hook, and what nobody knows.
    pub(crate) fn into_meta(self, mode: Option<&str>) -> Value {
        let mut meta = Map::new();
        if self.hook != Hook::Other {
            meta.insert("hook".to_owned(), json!(self.hook.name()));
        }
        if let Some(mode) = mode {
            meta.insert("mode".to_owned(), json!(mode));
        }
        let unknown = |(name, _): &(String, Value)| !PASSED_OVER.contains(&name.as_str());
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
        let text = br#"{"hook_event_name":"Stop","session_id":7,"cwd":null,"new":[1]}"#;
        let mut payload = Payload::parse(text).unwrap();
        assert_eq!(payload.hook, Hook::Stop);
        assert_eq!(payload.text("session_id"), None);
        assert_eq!(payload.text("cwd"), None);
        let expected = json!({"hook": "Stop", "odd": {"session_id": 7, "cwd": null, "new": [1]}});
        assert_eq!(payload.into_meta(None), expected);
    }

    #[test]
    fn an_event_without_a_name_is_an_error_and_an_unknown_one_is_not() {
        for text in ["{}", r#"{"hook_event_name":null}"#, r#"{"hook_event_name":["Stop"]}"#] {
            let error = Payload::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error, PayloadError::Missing("hook_event_name"));
        }
        let payload = Payload::parse(br#"{"hook_event_name":"Tomorrow"}"#).unwrap();
        assert_eq!(payload.hook, Hook::Other);
        assert_eq!(payload.into_meta(None), json!({"odd": {"hook_event_name": "Tomorrow"}}));
        assert!(matches!(Payload::parse(b"{not json"), Err(PayloadError::Json(_))));
        assert_eq!(Payload::parse(b"[]"), Err(PayloadError::NotAnObject));
    }

    #[test]
    fn half_a_character_is_no_reason_not_to_listen() {
        let prompt = |text: &str| {
            let text = format!(r#"{{"hook_event_name":"Stop","prompt":"{text}"}}"#);
            Payload::parse(text.as_bytes()).map(|mut payload| payload.text("prompt").unwrap())
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
    fn what_is_wrong_is_said_in_a_few_printable_words() {
        let key = format!("{}\\u0007", "k".repeat(10_000));
        let text = format!(r#"{{"{key}":1,"{key}":2}}"#);
        let error = Payload::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.len() < 300 && !error.contains(char::is_control), "{error:?}");
    }

    #[test]
    fn a_hook_keeps_its_number() {
        for hook in Hook::ALL {
            assert_eq!(Hook::numbered(hook.number()), *hook);
        }
        assert_eq!(Hook::numbered(Hook::Other.number()), Hook::Other);
    }
}
