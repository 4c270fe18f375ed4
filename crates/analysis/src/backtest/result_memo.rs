//! A cache for the observations of results. Agents get the same results many times, and two runs of
//! one task have many results in common.

use std::sync::{Mutex, PoisonError};

use jackline_engine::definition::Redact;
use jackline_engine::observe::{ObservedResult, observe_text};
use jackline_engine::{Definition, Event, EventKind, Payload, ToolFinished};

use jackline_runtime::{redact, redact_text};

/// The number of slots.
const SLOTS: usize = 4096;

/// The longest result that is cached. Longer ones rarely occur twice.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// A cache of result observations, shared by all threads. It changes no result, only the speed.
#[derive(Debug)]
pub struct ResultMemo {
    /// The slots. A new entry replaces the old one in its slot.
    slots: Vec<Mutex<Option<MemoEntry>>>,
}

impl Default for ResultMemo {
    fn default() -> Self {
        Self { slots: std::iter::repeat_with(Mutex::default).take(SLOTS).collect() }
    }
}

#[derive(Debug)]
struct MemoEntry {
    text: String,
    redacts: bool,
    observed: ObservedText,
}

#[derive(Debug, Clone)]
struct ObservedText {
    /// The text without its secrets, if it has any.
    redacted: Option<String>,
    observation: ObservedResult,
}

impl ObservedText {
    fn of(text: &str, redacts: bool) -> Self {
        let redacted = if redacts { redact_text(text) } else { None };
        let seen = observe_text(redacted.as_deref().unwrap_or(text));
        Self { redacted, observation: seen }
    }
}

impl ResultMemo {
    /// Redacts an event, and returns the observation of its result.
    pub(super) fn redact(
        &self,
        event: &mut Event,
        definition: &Definition,
    ) -> Option<ObservedResult> {
        let redacts = definition.journal.redact == Redact::BuiltIn;
        let payload = match &mut event.kind {
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
        let Some(Payload::Inline(mut text)) = payload else { return None };
        let ObservedText { redacted, observation: seen } = self.observe(&text, redacts);
        if let Some(redacted) = redacted {
            text = redacted;
        }
        *result = Some(Payload::Inline(text));
        Some(seen)
    }

    fn observe(&self, text: &str, redacts: bool) -> ObservedText {
        let place = self.slots.get(slot_of(text) % SLOTS);
        let Some(place) = place.filter(|_| text.len() <= TEXT_BYTES_MAX) else {
            return ObservedText::of(text, redacts);
        };
        let is_same = |entry: &&MemoEntry| entry.redacts == redacts && entry.text == text;
        let entry = || place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = entry().as_ref().filter(is_same) {
            return cached.observed.clone();
        }
        // The slot is not locked meanwhile, so other threads can use it.
        let said = ObservedText::of(text, redacts);
        *entry() = Some(MemoEntry { text: text.to_owned(), redacts, observed: said.clone() });
        said
    }
}

/// The slot of a text, from its length and some of its bytes. Texts in the same slot are compared
/// in full.
fn slot_of(text: &str) -> usize {
    const SAMPLES: usize = 32;
    let step = (text.len() / SAMPLES).max(1);
    let sampled = text.bytes().step_by(step).chain(text.bytes().rev().take(16));
    sampled.fold(text.len(), |hash, byte| {
        (hash ^ usize::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(5)
    })
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::JournalSettings;
    use jackline_engine::observe;
    use jackline_engine::observe::observe_with_result;
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
        fn a_cached_observation_equals_a_new_one(
            picks in prop::collection::vec((0_usize..6, any::<bool>()), 1..40)
        ) {
            let key = format!("ghp_{}", "a1".repeat(18));
            let texts = ["", "a", "2 failed, 40 passed in 0.12s", "at 12:30:01 all was well",
                &format!("push with {key}"), &"x".repeat(TEXT_BYTES_MAX + 1)];
            let memo = ResultMemo::default();
            for (pick, redacts) in picks {
                let (mut event, mut plain) = (finished(texts[pick]), finished(texts[pick]));
                let redact = if redacts { Redact::BuiltIn } else { Redact::Off };
                let journal = JournalSettings { redact, ..JournalSettings::default() };
                let definition = Definition { journal, ..Definition::default() };
                let says = memo.redact(&mut event, &definition).unwrap();
                if redacts {
                    super::redact(&mut plain, &definition);
                }
                prop_assert_eq!(observe_with_result(&event, says), observe(&plain));
                prop_assert_eq!(event, plain);
            }
        }
    }
}
