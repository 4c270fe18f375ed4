//! The inside of the worker: looks at programs, and runs them.
//!
//! Everything here may end the process, by a program that is made to: nothing else is in
//! it. What a program may do is what [`run`] answers, and the host decides that.

mod check;
mod confine;
mod run;
mod serve;
mod values;

pub use check::check;
pub use confine::{confine, confine_thread};
pub use serve::serve;
