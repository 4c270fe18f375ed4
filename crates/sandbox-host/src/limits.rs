//! What a program may use up. Every loop that it can drive ends at one of these.

use serde::{Deserialize, Serialize};

/// What a program may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long its text may be.
    pub source_bytes_max: usize,
    /// How long it may compute, without the time that its calls take.
    pub time_ms: u64,
    /// How long the worker may be silent over it in all, before it is ended from outside.
    pub deadline_ms: u64,
    /// How much memory it may hold.
    pub memory_bytes: usize,
    /// How deep its functions may call each other.
    pub recursion_max: usize,
    /// How often it may call the host.
    pub calls_max: u32,
    /// How much of what it prints is kept.
    pub printed_bytes_max: usize,
    /// How long one value may be that goes in or out, as JSON.
    pub value_bytes_max: usize,
    /// How deep delegates may have delegates.
    pub depth_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes_max: 64 << 10,
            time_ms: 5_000,
            deadline_ms: 10_000,
            memory_bytes: 64 << 20,
            recursion_max: 500,
            calls_max: 100,
            printed_bytes_max: 64 << 10,
            value_bytes_max: 4 << 20,
            depth_max: 4,
        }
    }
}

impl Limits {
    /// How long a line of the worker may be: a value, everything printed, and what the
    /// program remembers, each at worst as long as JSON makes it.
    pub(crate) fn line_bytes_max(&self) -> usize {
        let text = self.printed_bytes_max.saturating_add(self.source_bytes_max);
        self.value_bytes_max.saturating_mul(3).saturating_add(text.saturating_mul(6)) + (64 << 10)
    }
}
