//! How often a model was asked to write something again.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How many payloads are remembered that are not right yet; more are not at
/// work at once, and the oldest is forgotten.
const OPEN_MAX: usize = 16;

/// What was asked for again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repairs {
    /// All in all.
    pub(crate) asked: u32,
    /// Payloads by a short name, and how often each was asked for.
    open: Vec<(u64, u32)>,
}

impl Repairs {
    /// How often a payload was asked for.
    pub(crate) fn of(&self, payload: u64) -> u32 {
        self.open.iter().find(|(known, _)| *known == payload).map_or(0, |(_, asked)| *asked)
    }

    /// A payload has to be written again, or is right now.
    pub(crate) fn note(&mut self, again: bool, payload: impl FnOnce() -> u64) {
        // Mostly all is right, and nothing has to be looked up.
        if !again && self.open.is_empty() {
            return;
        }
        let payload = payload();
        let asked = self.of(payload).saturating_add(1);
        self.open.retain(|(known, _)| *known != payload);
        if again {
            if self.open.len() >= OPEN_MAX {
                self.open.remove(0);
            }
            self.open.push((payload, asked));
        }
    }

    /// Nothing was ever asked for.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}
