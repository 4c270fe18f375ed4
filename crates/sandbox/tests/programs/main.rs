//! Programs, run by the real worker for a host that is made up.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect"
)]

mod answers;
mod attempts;
mod calls;
mod hostile;
mod workers;
mod world;
