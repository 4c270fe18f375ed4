//! Calls with scripted parts: exact counts, exact shapes, and no changes left behind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod boundary;
mod budgets;
mod properties;
mod stories;
mod world;
