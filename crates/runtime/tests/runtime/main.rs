//! The runtime as a library: what is around a decision.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod controls;
mod extensions;
mod fact_sources;
mod faults;
mod gate;
mod given_back;
mod layers;
mod meddling;
mod rebuild;
mod redaction;
mod reload;
mod replay;
mod reports;
mod restore;
mod retention;
mod support;
