#![doc = include_str!("../README.md")]

mod answer;
pub mod asks;
mod child;
mod defined;
pub mod definitions;
mod door;
mod edits;
mod extensions;
pub mod facts;
mod gate;
mod git;
mod inspect;
mod live;
mod neighbours;
mod notify;
mod redact;
mod reports;
pub mod restore;
mod runtime;
pub mod sessions;
pub mod spill;
mod spool;
pub mod unrecorded;
pub mod verification;

pub use answer::{Answer, Deferred, Outcome, WAY_OUT};
pub use definitions::{Definitions, load_source};
pub use door::panic_text;
pub use edits::vouch_for;
pub use extensions::{
    CompletionChecker, Extensions, FeedbackProvider, PolicyDecision, Said, ToolPolicy,
};
pub use facts::FactSource;
pub use gate::{
    CallPermit, CallRefusal, CallResult, CallRuling, Gate, GateAnswer, GuardFault, PendingAsk,
    ProposedCall, RefusalCode, SessionRole, StopRuling, WAITS_FOR_PERSON, reason_of,
};
pub use git::commit_of;
pub use inspect::{inspect, session_of};
pub use notify::{Notice, deliver};
pub use redact::{redact, redact_text};
pub use reports::SAFETY_LOG;
pub use runtime::{Bounds, Fault, Request, Runtime, Standing};
pub use sessions::{SelectError, Sessions};
pub use spool::keep_fault;
