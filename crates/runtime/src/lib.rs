//! The only caller of the engine.
//!
//! The runtime gathers the facts an engine asks for, lets it decide, makes the
//! record durable, and only then answers. What goes wrong on the way becomes a
//! denial that says the guard is broken, not the call.

mod child;
mod clock;
mod definitions;
mod door;
mod explain;
mod extensions;
mod facts;
mod git;
mod home;
mod inspect;
mod live;
mod notify;
mod redact;
mod replay;
pub mod restore;
mod runtime;
mod sessions;
mod trust;
mod verification;

pub use clock::{boot_number, now};
pub use definitions::{
    DefinitionError, Definitions, Effective, Resolved, find_file, load_file, load_source,
};
pub use door::{Answer, Outcome};
pub use explain::{Explained, Explainer, Instead, Proposed, Reason, Supposed};
pub use extensions::{
    CompletionChecker, Extensions, FeedbackProvider, PolicyDecision, Said, ToolPolicy,
};
pub use home::{HomeError, LayerFiles, home, person, state_home};
pub use inspect::inspect;
pub use live::Saved;
pub use notify::{Notice, deliver};
pub use redact::redact_text;
pub use replay::{Difference, Replay, ReplayReport};
pub use runtime::{Fault, Runtime};
pub use sessions::{Found, SelectError, Sessions};
pub use trust::{Grant, Trust};
pub use verification::supervise;
