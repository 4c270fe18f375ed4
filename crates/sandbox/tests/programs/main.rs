//! Programs that the real worker runs for a test host.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod answers;
mod attempts;
mod calls;
mod hostile;
mod workers;
mod world;
