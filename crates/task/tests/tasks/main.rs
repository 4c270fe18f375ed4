//! Tasks from start to outcome, with a scripted model and the real worker, guards, files and
//! registry.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod boundary;
mod budgets;
mod commands;
mod crashes;
mod leaks;
mod paused_sessions;
mod plans;
mod recovery;
mod registry;
mod task_files;
mod tools;
mod world;
