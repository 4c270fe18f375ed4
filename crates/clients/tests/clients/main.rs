//! A made-up client, driven through the hook server that every client has.

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
