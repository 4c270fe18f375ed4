//! Checks the wire format with lines of adapters.

use jackline_engine::json::parse_strict;
use jackline_engine::observe::{TestVerdict, elide, parse_summaries};
use jackline_engine::wire::{WireError, parse_line, parse_recorded};
use jackline_engine::{Definition, Event, SessionId, observe};

use crate::run_in_time;

/// The longest error message for a line.
const MESSAGE_BYTES_MAX: usize = 1024;

/// A line is either an event that the journal can store and read back, or an error with a short
/// message.
pub fn wire(bytes: &[u8]) {
    check_summaries(bytes);
    let session = SessionId::parse("s").ok();
    match run_in_time(|| parse_line(bytes, session.as_ref())) {
        Ok(mut event) => {
            check_recorded(&event);
            elide(&mut event, &Definition::default());
            check_recorded(&event);
            assert_eq!(observe(&event), observe(&event));
        }
        Err(error) => check_mistake(&error),
    }
    // Without a session the line may be invalid, but it must not panic.
    let _ = parse_line(bytes, None);
}

/// The output of a tool may be read as a test summary. A summary with failures never counts as
/// passed.
fn check_summaries(bytes: &[u8]) {
    let read = run_in_time(|| parse_summaries(&String::from_utf8_lossy(bytes)));
    if let Some(tests) = read.tests
        && tests.failed > 0
    {
        assert_eq!(tests.verdict(), TestVerdict::Failing);
    }
}

/// The journal stores an event as one line and reads the same event back.
fn check_recorded(event: &Event) {
    let json_text = serde_json::to_string(event).unwrap();
    assert!(!json_text.contains('\n'), "a record is one line: {json_text}");
    let value = parse_strict(json_text.as_bytes()).unwrap();
    assert_eq!(&parse_recorded(value).unwrap(), event, "stored as {json_text}");
}

/// People and models see the message: it is short, on one line, and without control characters.
fn check_mistake(error: &WireError) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.len() <= MESSAGE_BYTES_MAX, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
    assert!(!error.kind().as_str().is_empty());
}
