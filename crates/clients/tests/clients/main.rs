//! Tests with a made-up client, through the hook server of all clients.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod hooks;
mod installing;
mod toy;
mod world;
