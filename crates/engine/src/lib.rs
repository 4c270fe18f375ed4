//! The pure heart of Jackline: events and facts in, verdicts out.
//!
//! A [`Session`] has three operations. [`Session::needs`] says which facts a
//! decision needs, [`Session::decide`] answers an event, and
//! [`Session::apply`] folds a recorded answer into the state. Nothing here can
//! read a clock, a file, the environment or a random number: the crate is
//! `no_std`, forbids `unsafe`, and has no dependency that does I/O.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod attempts;
pub mod bounds;
mod checks;
mod choice;
pub mod definition;
pub mod digest;
pub mod event;
pub mod expr;
pub mod facts;
mod guards;
pub mod id;
mod io;
pub mod json;
mod lifecycle;
pub mod models;
mod nearest;
pub mod observe;
pub mod path;
mod place;
mod proposal;
mod reload;
pub mod session;
mod state;
pub mod summary;
pub mod time;
pub mod tool;
pub mod trajectory;
pub mod understanding;
pub mod verdict;
pub mod wire;
mod words;

pub use definition::{Definition, Mode};
pub use digest::Digest;
pub use event::{
    Action, Arguments, Event, EventKind, Payload, PromptSubmitted, SessionEnded, SessionStarted,
    Status, StopProposed, ToolFinished, ToolProposed,
};
pub use facts::{Fact, Facts, Now, Queries, Query};
pub use id::{ActorId, CallId, ClientId, EventId, SessionId, ToolName};
pub use nearest::nearest;
pub use observe::observe;
pub use place::Place;
pub use session::{Record, Session};
pub use state::{SessionPhase, Summary};
pub use time::Timestamp;
pub use tool::Kind;
pub use verdict::{Decision, FaultKind, StopCode, Verdict, Violation};

/// The version written into every record.
pub const ENGINE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bumped by any change that can alter a verdict, and then marked ★ in the
/// changelog. Replay uses it to tell "differs by version" from "differs by fault".
pub const SEMANTICS: u32 = 9;
