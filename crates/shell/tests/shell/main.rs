//! The integration tests of the crate, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking, and print how many cases they checked"
)]

mod argv;
mod brush;
mod evasions;
mod grammar;
mod linear;
mod lines;
mod mutations;
mod render;
mod runs;
mod wrapped;
