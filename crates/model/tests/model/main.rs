//! The providers and the scripted model, end to end over the loopback address.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect"
)]

mod answers;
mod failures;
mod in_process;
mod provider_data;
mod requests;
mod scripted;
mod world;
