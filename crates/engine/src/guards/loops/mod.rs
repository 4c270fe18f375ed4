//! Loops: an agent that does the same again, and learns nothing from it.

mod config;

pub use config::{Cycle, Errors, Graded, Loops, Profile, Strict};
