//! The worker side of the sandbox: checks programs and runs them.
//!
//! A hostile program may end the process, which contains nothing else. A program can do only what
//! its host allows.

mod check;
mod confine;
mod run;
mod serve;
mod values;

pub use check::check;
pub use confine::{confine, confine_thread};
pub use serve::serve;
