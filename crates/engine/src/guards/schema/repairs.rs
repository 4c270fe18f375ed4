//! How often a model was asked to write data again.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How many pieces of invalid data are stored. More are rarely open at once; a new one replaces the
/// oldest.
const OPEN_REPAIRS_MAX: usize = 16;

/// Requests to write data again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RepairRequests {
    /// The number of all requests.
    pub(crate) asked: u32,
    /// The open data by the hash of its key, and how often each was requested.
    open: Vec<(u64, u32)>,
}

impl RepairRequests {
    /// Returns how often this data was requested again.
    pub(crate) fn count(&self, payload: u64) -> u32 {
        self.open.iter().find(|(key, _)| *key == payload).map_or(0, |(_, asked)| *asked)
    }

    /// Records that data must be written again, or that it is valid now.
    pub(crate) fn record(&mut self, is_invalid: bool, payload: impl FnOnce() -> u64) {
        // Fast path: data is usually valid, and then the key is not needed.
        if !is_invalid && self.open.is_empty() {
            return;
        }
        let payload = payload();
        let asked = self.count(payload).saturating_add(1);
        self.open.retain(|(key, _)| *key != payload);
        if is_invalid {
            if self.open.len() >= OPEN_REPAIRS_MAX {
                self.open.remove(0);
            }
            self.open.push((payload, asked));
        }
    }

    /// Clears all requests.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}
