//! Lines on the wire, as adapters send them.

use jackline_engine::json::parse_strict;
use jackline_engine::observe::{TestVerdict, elide, summaries};
use jackline_engine::wire::{WireError, parse_line, parse_recorded};
use jackline_engine::{Definition, Event, SessionId, observe};

use crate::in_time;

/// The longest message that a line may be answered with.
const MESSAGE_BYTES_MAX: usize = 1024;

/// A line is an event that a journal gives back, or a mistake in short words.
pub fn wire(bytes: &[u8]) {
    check_summaries(bytes);
    let session = SessionId::parse("s").ok();
    match in_time(|| parse_line(bytes, session.as_ref())) {
        Ok(mut event) => {
            check_recorded(&event);
            elide(&mut event, &Definition::default());
            check_recorded(&event);
            assert_eq!(observe(&event), observe(&event));
        }
        Err(error) => check_mistake(&error),
    }
    // Without a session to stand in, a line may be wrong, and nothing else.
    let _ = parse_line(bytes, None);
}

/// Whatever a tool returns may be read for test runs: one with failures never passes.
fn check_summaries(bytes: &[u8]) {
    let read = in_time(|| summaries(&String::from_utf8_lossy(bytes)));
    if let Some(tests) = read.tests
        && tests.failed > 0
    {
        assert_eq!(tests.verdict(), TestVerdict::Failing);
    }
}

/// The journal keeps an event as one line and reads the same event back.
fn check_recorded(event: &Event) {
    let kept = serde_json::to_string(event).unwrap();
    assert!(!kept.contains('\n'), "a record is one line: {kept}");
    let value = parse_strict(kept.as_bytes()).unwrap();
    assert_eq!(&parse_recorded(value).unwrap(), event, "kept as {kept}");
}

/// A message is shown to people and to the model: short, on one line, and
/// nothing that a terminal would act on.
fn check_mistake(error: &WireError) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.len() <= MESSAGE_BYTES_MAX, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
    assert!(!error.kind().word().is_empty());
}
