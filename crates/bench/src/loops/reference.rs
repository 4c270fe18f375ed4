//! The plain yardstick: calls in a row of which none brings anything new.
//!
//! It knows nothing of rules and levels, so it can't be tuned along with them. It
//! is no truth either: to run the same test after an edit is work.

use std::collections::BTreeSet;

use jackline_engine::digest::Digest128;
use jackline_engine::{
    ActorId, Event, EventKind, Payload, SessionId, Status, ToolFinished, observe,
};
use serde::Deserialize;
use serde_json::Value;

/// So many in a row are a loop, and so many a long one.
const LOOP: usize = 3;
const LONG: usize = 5;

/// A recorded run, as far as it is wanted.
#[derive(Deserialize)]
pub(super) struct Run {
    pub(super) id: String,
    #[serde(default)]
    pub(super) success: bool,
    #[serde(default)]
    user_breaks: Vec<usize>,
    pub(super) steps: Vec<Step>,
}

#[derive(Deserialize)]
pub(super) struct Step {
    tool: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    result: String,
}

/// Whether a run loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reference {
    None,
    Short,
    Long,
}

impl Run {
    /// The longest row since a person last spoke in which no call had a result
    /// that it had not had before.
    pub(super) fn reference(&self) -> Reference {
        let mut known = BTreeSet::new();
        let (mut row, mut longest) = (0, 0);
        for (number, step) in self.steps.iter().enumerate() {
            if self.user_breaks.contains(&number) {
                known.clear();
                row = 0;
            }
            let is_new = known.insert((step.tool.as_str(), step.args.to_string(), step.scrubbed()));
            row = if is_new { 0 } else { row + 1 };
            longest = longest.max(row);
        }
        match longest {
            LONG.. => Reference::Long,
            LOOP.. => Reference::Short,
            _ => Reference::None,
        }
    }
}

impl Step {
    /// The fingerprint of the result without what changes by itself, as the
    /// engine sees it.
    fn scrubbed(&self) -> Option<Digest128> {
        let kind = EventKind::ToolFinished(ToolFinished {
            status: Status::Ok,
            result: Some(Payload::Inline(self.result.clone())),
            ..ToolFinished::default()
        });
        let session = SessionId::parse("reference").ok()?;
        let event = Event { session, id: None, at: None, actor: ActorId::main(), kind, meta: None };
        let result = observe(&event).result?;
        Some(result.scrubbed.unwrap_or(result.digest))
    }
}
