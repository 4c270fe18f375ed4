//! Tests of the runtime as a library: everything around a decision.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod controls;
mod disturbed_store;
mod extensions;
mod fact_sources;
mod faults;
mod gate;
mod layers;
mod protected_files;
mod rebuild;
mod redaction;
mod reload;
mod replay;
mod reports;
mod restore;
mod retention;
mod support;
