//! The inside of the worker: looks at programs, and runs them.
//!
//! A program that is made to may end the process: nothing else is in it. What a program
//! may do is what its host answers.

mod check;
mod confine;
mod run;
mod serve;
mod values;

pub use check::check;
pub use confine::{confine, confine_thread};
pub use serve::serve;
