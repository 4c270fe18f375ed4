//! From a human prompt to an allowed stop.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::verdict::Bypass;
use crate::words::words;

/// How much is kept of what was missing.
const MISSING_CHARS_MAX: usize = 200;

/// The turn at hand.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// Counts from 1.
    pub(crate) number: u64,
    /// How the turn ended; none while it is open.
    pub(crate) result: Option<TurnResult>,
    /// How often a stop was blocked.
    pub(crate) blocks: u32,
    /// How often in a row with the same text and no change of the workspace.
    pub(crate) same: u32,
    /// The text and epoch of the last block.
    pub(crate) last_block: Option<(u64, u64)>,
    /// What was missing when a stop was last blocked.
    pub(crate) missing: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TurnResult {
    /// The completion check passed.
    Complete,
    /// Nothing was asked for, so nothing was checked.
    Free,
    /// Not done; the definition only observes.
    Incomplete,
    /// Not checked.
    Bypassed(Bypass),
    /// Blocked too often.
    Capped,
    /// Ended while a person had paused it, or unchecked.
    Unverified,
}

impl TurnResult {
    /// The same, without what a bypass ran out of.
    pub(crate) fn status(self) -> TurnStatus {
        match self {
            Self::Complete => TurnStatus::Complete,
            Self::Free => TurnStatus::Unchecked,
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

impl Turn {
    /// The turn after this one.
    pub(crate) fn next(&self) -> Self {
        Self { number: self.number + 1, ..Self::default() }
    }

    /// Keeps what a blocked stop was told, in short.
    pub(crate) fn remember_missing(&mut self, text: &str) {
        self.missing = Some(text.chars().take(MISSING_CHARS_MAX).collect());
    }

    /// Counts blocked stops anew.
    pub(crate) fn forget_blocks(&mut self) {
        (self.blocks, self.same, self.last_block) = (0, 0, None);
    }

    /// Counts a blocked stop, and whether it says the same again; one without a
    /// text only waits.
    pub(crate) fn block(&mut self, text: Option<u64>, epoch: u64) {
        self.blocks = self.blocks.saturating_add(1);
        let block = text.map(|text| (text, epoch));
        self.same = match block {
            Some(_) if self.last_block == block => self.same.saturating_add(1),
            Some(_) => 1,
            None => 0,
        };
        self.last_block = block;
    }
}
