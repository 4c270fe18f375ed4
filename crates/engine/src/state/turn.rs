//! A turn: from a person's prompt to an allowed stop.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::verdict::BypassReason;
use crate::words::words;

/// How many characters of the missing requirements are stored.
const MISSING_CHARS_MAX: usize = 200;

/// The current turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TurnState {
    /// The number of the turn, from 1.
    pub(crate) number: u64,
    /// How the turn ended; `None` while it is open.
    pub(crate) result: Option<TurnResult>,
    /// How often a stop was blocked.
    pub(crate) blocks: u32,
    /// How many consecutive blocks had the same text without a change of the workspace in between.
    pub(crate) same_blocks: u32,
    /// The text and epoch of the last block.
    pub(crate) last_block: Option<(u64, u64)>,
    /// How many of these blocks only told that a check can't be run.
    pub(crate) unrunnable_blocks: u32,
    /// How many consecutive blocks had no work before them.
    idle_blocks: u32,
    /// How many calls were proposed before the last block.
    calls_at_block: u64,
    /// The missing requirements when a stop was last blocked.
    pub(crate) missing: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TurnResult {
    /// The completion check passed.
    Complete,
    /// The definition requires nothing, so nothing was checked.
    Unchecked,
    /// The check failed, and the definition only observes.
    Incomplete,
    /// The check was skipped.
    Bypassed(BypassReason),
    /// The check failed too often.
    Capped,
    /// The turn ended during a pause, or the check could not run.
    Unverified,
}

impl TurnResult {
    /// The result without the reason of a bypass.
    pub(crate) fn status(self) -> TurnStatus {
        match self {
            Self::Complete => TurnStatus::Complete,
            Self::Unchecked => TurnStatus::Unchecked,
            Self::Incomplete => TurnStatus::Incomplete,
            Self::Bypassed(_) => TurnStatus::Bypassed,
            Self::Capped => TurnStatus::Capped,
            Self::Unverified => TurnStatus::Unverified,
        }
    }
}

words! {
    /// How a turn ended, as `status` shows it.
    TurnStatus {
        /// The completion check passed.
        Complete = "complete",
        /// The definition asks for nothing, so nothing was checked.
        Unchecked = "unchecked",
        /// The check failed, and the definition only observes.
        Incomplete = "incomplete",
        /// The check was skipped because an allowance ran out.
        Bypassed = "bypassed",
        /// The check failed too often.
        Capped = "capped",
        /// The turn ended during a pause, or the check could not run.
        Unverified = "unverified",
    }
}

impl TurnState {
    /// The turn after this one.
    pub(crate) fn next(&self) -> Self {
        let calls_at_block = self.calls_at_block;
        Self { number: self.number + 1, calls_at_block, ..Self::default() }
    }

    /// Stores the beginning of the message of a blocked stop.
    pub(crate) fn remember_missing(&mut self, text: &str) {
        self.missing = Some(text.chars().take(MISSING_CHARS_MAX).collect());
    }

    /// Resets the counts of blocked stops.
    pub(crate) fn reset_blocks(&mut self) {
        (self.blocks, self.same_blocks, self.last_block) = (0, 0, None);
        (self.idle_blocks, self.unrunnable_blocks) = (0, 0);
    }

    /// Counts a stop that the agent proposed as done, after so many calls. `is_unrunnable`: it was
    /// blocked only because a check can't be run.
    pub(crate) fn count_stop(&mut self, calls: u64, is_unrunnable: bool) {
        self.idle_blocks = self.stops_without_work(calls);
        self.calls_at_block = calls;
        self.unrunnable_blocks =
            if is_unrunnable { self.unrunnable_blocks.saturating_add(1) } else { 0 };
    }

    /// How many consecutive stops have no work before them, with one that is proposed after so many
    /// calls.
    pub(crate) fn stops_without_work(&self, calls: u64) -> u32 {
        if calls == self.calls_at_block { self.idle_blocks.saturating_add(1) } else { 0 }
    }

    /// Records work that was no call.
    pub(crate) fn record_work(&mut self) {
        self.idle_blocks = 0;
    }

    /// Counts a blocked stop, and whether its text is repeated. A stop without a text only waits.
    pub(crate) fn count_block(&mut self, text: Option<u64>, epoch: u64) {
        self.blocks = self.blocks.saturating_add(1);
        let block = text.map(|text| (text, epoch));
        self.same_blocks = match block {
            Some(_) if self.last_block == block => self.same_blocks.saturating_add(1),
            Some(_) => 1,
            None => 0,
        };
        self.last_block = block;
    }
}
