//! Claude Code.

mod lines;
pub mod transcript;
pub mod usage;
