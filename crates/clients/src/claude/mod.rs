//! Claude Code: its hooks, its settings, its transcripts.
//!
//! The client starts one process an event and takes almost every failure of
//! it for consent. So the door here ([`answer`]) always has an answer, and the
//! program around it a deadline below the client's.

mod answer;
mod codes;
mod hook;
mod lines;
mod output;
mod payload;
mod reload;
mod results;
pub mod servers;
pub mod settings;
mod surroundings;
pub mod transcript;
mod translate;
mod undo;
pub mod usage;

pub use answer::Reply;
pub use codes::Typed;
pub use hook::{Answered, Heard, answer, timed_out, unreadable};
pub use payload::{Hook, Payload, PayloadError};
pub use surroundings::{RUN, Surroundings};
pub use translate::{Asking, Translated, translate};
pub use undo::Writes;
