//! Loops: an agent that does the same again, and learns nothing from it.

mod config;
#[cfg_attr(not(test), expect(dead_code, reason = "the loop guard drives it"))]
mod detector;
#[cfg_attr(not(test), expect(dead_code, reason = "the loop guard drives it"))]
mod step;

pub use config::{Cycle, Errors, Graded, Loops, Profile, Strict};
