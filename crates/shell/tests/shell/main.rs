//! The one integration-test binary of the crate.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what they counted"
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
