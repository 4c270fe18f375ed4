//! Calls played with scripted parts: exact counts, exact shapes, and nothing left behind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect"
)]

mod boundary;
mod budgets;
mod properties;
mod stories;
mod world;
