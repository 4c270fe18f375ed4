//! A simple reference detector: it counts consecutive calls that return nothing new.
//!
//! It does not use our rules and levels, so it can't be tuned together with them. It is not always
//! right: running the same test after an edit is useful work.

use std::collections::BTreeSet;

use jackline_engine::digest::Digest128;
use jackline_engine::{
    ActorId, CallStatus, Event, EventKind, Payload, SessionId, ToolFinished, observe,
};
use serde::Deserialize;
use serde_json::Value;

/// This many consecutive calls are a loop, or a long loop.
const LOOP_CALLS: usize = 3;
const LONG_LOOP_CALLS: usize = 5;

/// A recorded run, with the fields that we need.
#[derive(Deserialize)]
pub(super) struct ReferenceRun {
    pub(super) id: String,
    #[serde(default)]
    pub(super) success: bool,
    #[serde(default)]
    user_breaks: Vec<usize>,
    pub(super) steps: Vec<ReferenceStep>,
}

#[derive(Deserialize)]
pub(super) struct ReferenceStep {
    tool: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    result: String,
}

/// Whether a run loops, according to the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReferenceLoop {
    None,
    Short,
    Long,
}

impl ReferenceRun {
    /// Classifies the longest series of calls, since the last message of a person, whose results
    /// had all occurred before.
    pub(super) fn classify(&self) -> ReferenceLoop {
        let mut seen_results = BTreeSet::new();
        let (mut repeats, mut longest) = (0, 0);
        for (number, step) in self.steps.iter().enumerate() {
            if self.user_breaks.contains(&number) {
                seen_results.clear();
                repeats = 0;
            }
            let is_new = seen_results.insert((
                step.tool.as_str(),
                step.args.to_string(),
                step.result_digest(),
            ));
            repeats = if is_new { 0 } else { repeats + 1 };
            longest = longest.max(repeats);
        }
        match longest {
            LONG_LOOP_CALLS.. => ReferenceLoop::Long,
            LOOP_CALLS.. => ReferenceLoop::Short,
            _ => ReferenceLoop::None,
        }
    }
}

impl ReferenceStep {
    /// The digest of the result without parts that change each time, as the engine computes it.
    fn result_digest(&self) -> Option<Digest128> {
        let kind = EventKind::ToolFinished(ToolFinished {
            status: CallStatus::Ok,
            result: Some(Payload::Inline(self.result.clone())),
            ..ToolFinished::default()
        });
        let session = SessionId::parse("reference").ok()?;
        let event = Event { session, id: None, at: None, actor: ActorId::main(), kind, meta: None };
        let result = observe(&event).result?;
        Some(result.scrubbed.unwrap_or(result.digest))
    }
}
