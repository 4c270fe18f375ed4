//! The limits of a program. Every loop that it can run ends at one of these.

use serde::{Deserialize, Serialize};

/// The limits of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLimits {
    /// How long its source may be.
    pub source_bytes_max: usize,
    /// How long it may compute, without the time of its calls.
    pub time_ms: u64,
    /// How long the worker may be silent in total before the host ends it.
    pub deadline_ms: u64,
    /// How much memory it may use.
    pub memory_bytes: usize,
    /// How deep its functions may call each other.
    pub recursion_max: usize,
    /// How many times it may call the host.
    pub calls_max: u32,
    /// How much of its printed output is stored.
    pub printed_bytes_max: usize,
    /// How long one value may be that enters or leaves the program, as JSON.
    pub value_bytes_max: usize,
    /// How deep delegates may be nested.
    pub depth_max: u32,
}

impl Default for ProgramLimits {
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

impl ProgramLimits {
    /// How long a line of the worker may be: a value, the printed output and the context, each in
    /// its longest JSON form.
    pub(crate) fn line_bytes_max(&self) -> usize {
        let text = self.printed_bytes_max.saturating_add(self.source_bytes_max);
        self.value_bytes_max.saturating_mul(3).saturating_add(text.saturating_mul(6)) + (64 << 10)
    }
}
