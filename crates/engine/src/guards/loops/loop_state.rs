//! The memory of the loop guard for one actor.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::blocked_calls::BlockedCalls;
use super::config::StrictLevels;
use super::detector::{CallClass, CompletedCall, LoopDetector, LoopLevel, LoopRule};
use crate::digest::Digest128;
use crate::id::ActorId;
use crate::state::clip_text;
use crate::time::Timestamp;

/// How many bytes of a call people are shown.
const SHOWN_CALL_BYTES_MAX: usize = 80;

/// How many of the latest findings are stored.
const FINDINGS_MAX: usize = 8;

/// The maximum window of the strict profile.
pub const WINDOW_MAX: u16 = 16;

/// The memory of one actor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopState {
    pub(crate) detector: LoopDetector,
    pub(crate) blocked: BlockedCalls,
    pub(crate) window: StrictWindow,
    /// The number of the current batch: the calls proposed before a result arrived.
    pub(crate) batch: u64,
    /// Whether a result arrived since the last proposal.
    pub(crate) answered: bool,
    /// The level of the current loop that was last reported.
    pub(crate) told: Option<ReportedLoop>,
    /// The loop that the last call is a part of.
    pub(crate) found: Option<DetectedLoop>,
    /// Whether an advisor gave the agent an instruction since the last message of a person.
    pub(crate) advised: bool,
}

impl LoopState {
    /// Forgets the loops after a message of a person: repetition may now be intended.
    pub(crate) fn reset(&mut self) {
        self.detector.reset();
        let Self { detector, batch, answered, .. } = core::mem::take(self);
        *self = Self { detector, batch, answered, ..Self::default() };
    }

    /// Continues the counts after an advisor's instruction. An agent that repeats the same call in
    /// spite of the instruction is stopped at once.
    pub(crate) fn continue_after_advice(&mut self) {
        (self.told, self.found) = (None, None);
        self.advised = true;
    }

    /// Returns whether a finding should be reported: a higher level, or twice the count that was
    /// last reported.
    pub(crate) fn should_report(&self, level: LoopLevel, count: u32) -> bool {
        self.told.is_none_or(|told| {
            level > told.level || (level == told.level && count >= told.count.saturating_mul(2))
        })
    }
}

/// The level and the count of the last report about a loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReportedLoop {
    pub(crate) level: LoopLevel,
    pub(crate) count: u32,
}

/// What a loop consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoopCause {
    /// Calls that ran.
    Ran(LoopRule),
    /// A refused call.
    Blocked,
}

impl LoopCause {
    /// The name of the rule in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ran(rule) => rule.as_str(),
            Self::Blocked => super::BLOCKED_RULE,
        }
    }
}

/// A loop, and the call in which it was detected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DetectedLoop {
    pub(crate) level: LoopLevel,
    pub(crate) what: LoopCause,
    pub(crate) count: u32,
    /// The call as people read it.
    pub(crate) shown: String,
}

/// The parts of an open call that its result will be compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenCallSignature {
    pub(crate) call: Digest128,
    pub(crate) coarse: Option<CoarseSubject>,
    pub(crate) class: CallClass,
    pub(crate) batch: u64,
    pub(crate) shown: String,
}

/// The file or program that a call is about: `Bash(pytest tests/*)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CoarseSubject {
    pub(crate) hash: u64,
    /// As people read it, shortened.
    pub(crate) shown: String,
}

/// Shortens a call as people read it, so that it can be stored.
pub(crate) fn shorten_call(shown: String) -> String {
    clip_text(shown, SHOWN_CALL_BYTES_MAX)
}

/// The latest calls, for the strict profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StrictWindow {
    steps: VecDeque<[u8; 4]>,
    /// The batch of the last call.
    batch: u64,
}

impl StrictWindow {
    /// Records a call and returns how often it occurs in the window.
    pub(crate) fn record(&mut self, step: &CompletedCall, strict: StrictLevels) -> u32 {
        if matches!(
            step.class,
            CallClass::Transparent | CallClass::Poll { .. } | CallClass::Wait { .. }
        ) {
            return 0;
        }
        let mut both = [0_u8; 32];
        let bytes = step.call.as_bytes().iter().chain(step.outcome.as_bytes());
        both.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let digest = Digest128::of(&both);
        let this = digest.as_bytes().first_chunk().copied().unwrap_or_default();
        // A second call before the first result arrived is not a repetition yet.
        let is_twin = self.steps.back() == Some(&this) && self.batch == step.batch;
        if !is_twin {
            while self.steps.len() >= usize::from(strict.window.clamp(1, WINDOW_MAX)) {
                self.steps.pop_front();
            }
            self.steps.push_back(this);
            self.batch = step.batch;
        }
        let same = self.steps.iter().filter(|recorded| **recorded == this).count();
        u32::try_from(same).unwrap_or(u32::MAX)
    }
}

/// The latest findings of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedLoops(Vec<RecordedLoop>);

/// A finding with its time and its actor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedLoop {
    pub(crate) at: Timestamp,
    pub(crate) actor: ActorId,
    pub(crate) found: DetectedLoop,
}

impl RecordedLoops {
    pub(crate) fn push(&mut self, noticed: RecordedLoop) {
        if self.0.len() >= FINDINGS_MAX {
            self.0.remove(0);
        }
        self.0.push(noticed);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RecordedLoop> {
        self.0.iter()
    }
}
