//! What results say, remembered: agents hear the same things again and again, and of
//! two runs of one task most of it is the same.

use std::sync::{Mutex, PoisonError};

use jackline_engine::definition::Redact;
use jackline_engine::observe::{ObservedResult, observe_text};
use jackline_engine::{Definition, Event, EventKind, Payload, ToolFinished};

use jackline_runtime::{redact, redact_text};

/// How many results are remembered.
const PLACES: usize = 4096;

/// A longer result is not remembered: it is rarely heard twice.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What results say, for all who decide at the same time. It changes no answer, only how
/// soon it is there.
#[derive(Debug)]
pub struct Memo {
    /// Each by a place of its own; the last one that came to it stays.
    places: Vec<Mutex<Option<Entry>>>,
}

impl Default for Memo {
    fn default() -> Self {
        Self { places: std::iter::repeat_with(Mutex::default).take(PLACES).collect() }
    }
}

#[derive(Debug)]
struct Entry {
    text: String,
    redacts: bool,
    said: Said,
}

#[derive(Debug, Clone)]
struct Said {
    /// The text without its secrets, where it has any.
    redacted: Option<String>,
    seen: ObservedResult,
}

impl Said {
    fn of(text: &str, redacts: bool) -> Self {
        let redacted = if redacts { redact_text(text) } else { None };
        let seen = observe_text(redacted.as_deref().unwrap_or(text));
        Self { redacted, seen }
    }
}

impl Memo {
    /// Takes the secrets out of an event; says what is to be seen of a result.
    pub(super) fn redact(
        &self,
        event: &mut Event,
        definition: &Definition,
    ) -> Option<ObservedResult> {
        let redacts = definition.journal.redact == Redact::BuiltIn;
        let said = match &mut event.kind {
            EventKind::ToolFinished(ToolFinished {
                result: result @ Some(Payload::Inline(_)),
                ..
            }) => result.take(),
            _ => None,
        };
        if redacts {
            redact(event, definition);
        }
        let EventKind::ToolFinished(ToolFinished { result, .. }) = &mut event.kind else {
            return None;
        };
        let Some(Payload::Inline(mut text)) = said else { return None };
        let Said { redacted, seen } = self.said(&text, redacts);
        if let Some(redacted) = redacted {
            text = redacted;
        }
        *result = Some(Payload::Inline(text));
        Some(seen)
    }

    fn said(&self, text: &str, redacts: bool) -> Said {
        let place = self.places.get(place_of(text) % PLACES);
        let Some(place) = place.filter(|_| text.len() <= TEXT_BYTES_MAX) else {
            return Said::of(text, redacts);
        };
        let known = |entry: &&Entry| entry.redacts == redacts && entry.text == text;
        let entry = || place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = entry().as_ref().filter(known) {
            return known.said.clone();
        }
        // Others may look meanwhile.
        let said = Said::of(text, redacts);
        *entry() = Some(Entry { text: text.to_owned(), redacts, said: said.clone() });
        said
    }
}

/// Where a text is remembered: by its length and a few of its bytes. Two texts with one
/// place are told apart when they meet.
fn place_of(text: &str) -> usize {
    const SAMPLES: usize = 32;
    let step = (text.len() / SAMPLES).max(1);
    let sampled = text.bytes().step_by(step).chain(text.bytes().rev().take(16));
    sampled.fold(text.len(), |hash, byte| {
        (hash ^ usize::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(5)
    })
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::Journal;
    use jackline_engine::observe;
    use jackline_engine::observe::observe_known;
    use jackline_engine::wire::parse_line;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn finished(text: &str) -> Event {
        let line = json!({"session": "s", "event": "tool_finished", "call": "c", "status": "error",
            "result": text});
        parse_line(line.to_string().as_bytes(), None).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn what_is_remembered_is_what_would_be_seen(
            picks in prop::collection::vec((0_usize..6, any::<bool>()), 1..40)
        ) {
            let key = format!("ghp_{}", "a1".repeat(18));
            let texts = ["", "a", "2 failed, 40 passed in 0.12s", "at 12:30:01 all was well",
                &format!("push with {key}"), &"x".repeat(TEXT_BYTES_MAX + 1)];
            let memo = Memo::default();
            for (pick, redacts) in picks {
                let (mut event, mut plain) = (finished(texts[pick]), finished(texts[pick]));
                let redact = if redacts { Redact::BuiltIn } else { Redact::Off };
                let journal = Journal { redact, ..Journal::default() };
                let definition = Definition { journal, ..Definition::default() };
                let says = memo.redact(&mut event, &definition).unwrap();
                if redacts {
                    super::redact(&mut plain, &definition);
                }
                prop_assert_eq!(observe_known(&event, says), observe(&plain));
                prop_assert_eq!(event, plain);
            }
        }
    }
}
