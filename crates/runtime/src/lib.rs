#![doc = include_str!("../README.md")]

mod adapter_tools;
mod answer;
mod bounded_child;
pub mod definitions;
mod door;
mod extensions;
pub mod facts;
mod gate;
mod git;
pub mod guard_links;
mod inspect;
mod live_session;
mod notify;
pub mod open_questions;
mod other_sessions;
mod redact;
mod reports;
pub mod restore;
mod runtime;
mod session_definition;
mod session_process;
pub mod sessions;
pub mod spill;
mod spool;
pub mod surfaces;
pub mod unrecorded;
pub mod verification;
mod vouched_edits;

pub use adapter_tools::AdapterTools;
pub use answer::{AnswerKind, DeferredWork, HOW_TO_TURN_OFF, RuntimeAnswer};
pub use definitions::{DefinitionError, Definitions, ResolvedDefinition, load_source};
pub use door::panic_text;
pub use extensions::{
    CompletionChecker, Extensions, FeedbackProvider, PolicyDecision, ProviderFeedback, ToolPolicy,
};
pub use facts::FactSource;
pub use gate::{
    ApprovalRequest, CallPermit, CallRefusal, CallResult, CallRuling, Gate, GateAnswer, GuardFault,
    ProposedCall, RefusalCode, SessionRole, StopRuling, WAITS_FOR_PERSON_TEXT, reason_of,
};
pub use git::{BranchDefinition, commit_of};
pub use inspect::{load_session, load_session_from};
pub use notify::{PersonNotification, deliver};
pub use redact::{redact, redact_text};
pub use reports::SAFETY_LOG;
pub use runtime::{EventRequest, OutputBounds, Runtime, RuntimeFault, SessionRunState};
pub use session_process::{LEFT_AFTER_MS, was_left};
pub use sessions::{SelectError, Sessions};
pub use spool::spool_fault;
pub use vouched_edits::{vouch_for, vouch_for_removal};
