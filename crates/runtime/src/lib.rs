#![doc = include_str!("../README.md")]

mod answer;
mod asks;
mod child;
mod defined;
mod definitions;
mod door;
mod edits;
mod extensions;
mod facts;
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
mod sessions;
pub mod spill;
mod spool;
mod unrecorded;
mod verification;

pub use answer::{Answer, Deferred, Outcome, WAY_OUT};
pub use asks::{AskError, Asked, Asking, ask_code, find_ask, parse_ask_code, pending, still_asks};
pub use definitions::{
    DefinitionError, Definitions, Effective, Resolved, find_file, load_file, load_source,
};

pub use door::panic_text;
pub use edits::vouch_for;
pub use extensions::{
    CompletionChecker, Extensions, FeedbackProvider, PolicyDecision, Said, ToolPolicy,
};
pub use facts::{Deadline, FactError, FactSource, Recording, Scene};
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
pub use sessions::{SelectError, Sessions, arranged};
pub use spool::keep_fault;
pub use unrecorded::{NamedDefinition, decide_unrecorded};
pub use verification::{end_checks, is_checking, supervise};
