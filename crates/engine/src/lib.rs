//! The decision core of Jackline: it turns events and facts into verdicts.
//!
//! A [`Session`] has three operations. [`Session::needs`] returns the facts that a decision needs,
//! [`Session::decide`] answers an event, and [`Session::apply`] applies a recorded verdict to the
//! state. Nothing in this crate can read a clock, a file, the environment or a random number: the
//! crate is `no_std`, forbids `unsafe`, and has no dependency that does I/O.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod attempt_limits;
pub mod bounds;
pub mod call_description;
mod checks;
pub mod definition;
pub mod digest;
pub mod event;
pub mod expr;
pub mod facts;
mod guards;
pub mod id;
pub mod json;
mod lifecycle;
mod model_choice;
pub mod models;
mod nearest;
pub mod observe;
mod output_limits;
pub mod output_page;
pub mod path;
mod proposal;
mod reload;
mod run_limits;
pub mod session;
mod session_location;
mod state;
pub mod summary;
pub mod time;
pub mod tool;
pub mod trajectory;
pub mod verdict;
pub mod wire;
mod words;

pub use definition::{Definition, Mode};
pub use digest::Digest;
pub use event::{
    Arguments, CallStatus, ControlAction, Event, EventKind, Payload, PromptSubmitted, SessionEnded,
    SessionStarted, StopProposed, ToolFinished, ToolProposed,
};
pub use facts::{Fact, Facts, Now, Queries, Query};
pub use id::{ActorId, CallId, ClientId, EventId, SessionId, ToolName};
pub use nearest::nearest_name;
pub use observe::observe;
pub use session::{Record, Session};
pub use session_location::SessionLocation;
pub use state::{SessionPhase, SessionSummary};
pub use time::Timestamp;
pub use tool::ToolKind;
pub use verdict::{Decision, FaultKind, StopCode, Verdict, Violation};

/// The version written into every record.
pub const ENGINE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Increased by any change that can alter a verdict; the changelog marks such a change with ★.
/// Replay uses it to distinguish a difference between versions from a fault.
pub const SEMANTICS: u32 = 12;
