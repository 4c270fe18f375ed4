//! What the loop guard remembers of one actor.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::blocked::Blocked;
use super::config::Strict;
use super::detector::{Class, Detector, LoopLevel, LoopRule, Step};
use crate::digest::Digest128;
use crate::id::ActorId;
use crate::state::clipped;
use crate::time::Timestamp;

/// How much of a call is shown to people.
const SHOWN_BYTES_MAX: usize = 80;

/// How many of the latest findings are kept.
const FINDINGS_MAX: usize = 8;

/// The most that the window of the strict profile may span.
pub const WINDOW_MAX: u16 = 16;

/// What is remembered of one actor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Looping {
    pub(crate) detector: Detector,
    pub(crate) blocked: Blocked,
    pub(crate) window: Window,
    /// The batch at hand: what was proposed before a result was seen.
    pub(crate) batch: u64,
    /// Whether a result was seen since the last proposal.
    pub(crate) answered: bool,
    /// What was said about the loop that lasts.
    pub(crate) told: Option<Told>,
    /// The loop that the last step is part of.
    pub(crate) found: Option<Found>,
}

impl Looping {
    /// A person has spoken: whatever was repeated may be wanted again.
    pub(crate) fn human(&mut self) {
        self.detector.human();
        let Self { detector, batch, answered, .. } = core::mem::take(self);
        *self = Self { detector, batch, answered, ..Self::default() };
    }

    /// Whether a finding is worth saying: not what was said already, until
    /// there is twice as much of it.
    pub(crate) fn is_news(&self, level: LoopLevel, count: u32) -> bool {
        self.told.is_none_or(|told| {
            level > told.level || (level == told.level && count >= told.count.saturating_mul(2))
        })
    }
}

/// How far a loop had gone when that was said last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) level: LoopLevel,
    pub(crate) count: u32,
}

/// What a loop consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// Calls that ran.
    Ran(LoopRule),
    /// A call that is not let run.
    Blocked,
}

impl What {
    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ran(rule) => rule.word(),
            Self::Blocked => super::BLOCKED,
        }
    }
}

/// A loop, and the call in which it showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) level: LoopLevel,
    pub(crate) what: What,
    pub(crate) count: u32,
    /// The call as people read it.
    pub(crate) shown: String,
}

/// What the result of an open call will be compared by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) call: Digest128,
    pub(crate) coarse: Option<u64>,
    pub(crate) class: Class,
    pub(crate) batch: u64,
    pub(crate) shown: String,
}

/// A call as people read it, short enough to be remembered.
pub(crate) fn short_form(shown: String) -> String {
    clipped(shown, SHOWN_BYTES_MAX)
}

/// The latest steps, for the strict profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Window {
    steps: VecDeque<[u8; 4]>,
    /// The batch of the last one.
    batch: u64,
}

impl Window {
    /// Takes a step; gives back how often it is among the latest.
    pub(crate) fn note(&mut self, step: &Step, strict: Strict) -> u32 {
        if matches!(step.class, Class::Transparent | Class::Poll { .. } | Class::Wait { .. }) {
            return 0;
        }
        let mut both = [0_u8; 32];
        let bytes = step.call.as_bytes().iter().chain(step.outcome.as_bytes());
        both.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let digest = Digest128::of(&both);
        let this = digest.as_bytes().first_chunk().copied().unwrap_or_default();
        // Whoever called twice before it saw a result has repeated nothing yet.
        let twin = self.steps.back() == Some(&this) && self.batch == step.batch;
        if !twin {
            while self.steps.len() >= usize::from(strict.window.clamp(1, WINDOW_MAX)) {
                self.steps.pop_front();
            }
            self.steps.push_back(this);
            self.batch = step.batch;
        }
        let same = self.steps.iter().filter(|known| **known == this).count();
        u32::try_from(same).unwrap_or(u32::MAX)
    }
}

/// The latest findings of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Findings(Vec<Noticed>);

/// A finding, when and of whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Noticed {
    pub(crate) at: Timestamp,
    pub(crate) actor: ActorId,
    pub(crate) found: Found,
}

impl Findings {
    pub(crate) fn push(&mut self, noticed: Noticed) {
        if self.0.len() >= FINDINGS_MAX {
            self.0.remove(0);
        }
        self.0.push(noticed);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Noticed> {
        self.0.iter()
    }
}
