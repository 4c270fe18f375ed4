//! Tasks from their beginning to their outcome: a scripted model, the real worker, the real
//! guards, files and registry.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect"
)]

mod boundary;
mod budgets;
mod commands;
mod crashes;
mod held;
mod leaks;
mod plans;
mod recovery;
mod registry;
mod task_files;
mod tools;
mod world;
