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
mod checks;
mod choice;
pub mod definition;
mod digest;
mod event;
pub mod expr;
mod facts;
mod guards;
mod id;
mod io;
pub mod json;
mod lifecycle;
pub mod models;
mod nearest;
mod observe;
mod path;
mod place;
mod proposal;
mod reload;
mod session;
mod state;
mod time;
mod tool;
mod trajectory;
mod understanding;
mod verdict;
pub mod wire;
mod words;

pub use definition::{Definition, Mode};
pub use digest::{Digest, Digest128, Hasher};
pub use event::{
    Action, AdvisorAnswered, Arguments, AttemptEnded, AttemptResult, AttemptStage, AttemptStarted,
    Called, ChangeReason, CompactionFinished, Control, Elided, Event, EventKind, Failure,
    IterationEnded, ModelChanged, OutputProposed, Payload, Payloads, PlanProposed, PromptSource,
    PromptSubmitted, ReportedStage, Seen, SessionEnded, SessionStarted, Stage, Status,
    StopProposed, Tests, ToolFinished, ToolProposed, UsageReported,
};
pub use facts::{
    CallView, CheckFact, DecodedFact, DefinitionFact, DefinitionFile, Fact, Facts, FeedbackFact,
    FeedbackView, FileFact, FileKind, GitFact, Markers, NewDefinition, Now, OffFact, OutputFact,
    PinsFact, PolicyFact, QUERIES_MAX, Queries, Query, ROUNDS_MAX, ReloadFact, Tracked,
    VerificationFact, Wants, WatchedFact, WrongFact,
};
pub use guards::advisor::AdvisorSummary;
pub use guards::completion::UNANSWERED;
pub use guards::completion::verification::COMMANDS_MAX;
pub use guards::custom::{CARRY_BYTES_MAX, CUSTOM_POLICIES_MAX, POLICY_BYTES_MAX};
pub use guards::dirty::{DirtySummary, TestsPassing};
pub use guards::identity::Agent;
pub use guards::limits::{Dimension, LimitKey};
pub use guards::loops::{LoopAt, LoopLevel, LoopNoticed, LoopSummary, LoopsSummary};
pub use guards::progress::{ProgressSummary, TestCounts};
pub use id::{
    ActorId, AttemptId, CallId, ClientId, EventId, ID_BYTES_MAX, IdError, RequestId, SessionId,
    ToolName,
};
pub use nearest::nearest;
pub use observe::{
    BLOB_OVER_BYTES, Blob, BuildOutcome, ErrorClass, Observation, ObservedResult, Runner,
    Summaries, TestSummary, TestVerdict, elide, observe, observe_known, observe_text, summaries,
};
pub use path::{PathError, canonical};
pub use place::Place;
pub use session::{EventReading, Ground, Record, Session, StateError, Understood};
pub use state::{
    ActionEnd, BudgetSummary, ContextSummary, Invocations, LastAction, Order, PauseCause,
    ReportFile, STATE_BYTES_MAX, STATE_FORMAT, SessionPhase, Summary, TurnStatus, TurnSummary,
    UsageTotals, Waiting,
};
pub use time::{Timestamp, TimestampError};
pub use tool::{Kind, PAGE_TURN, path_keys};
pub use trajectory::{Doing, Step, Trajectory};
pub use understanding::{
    Argument, Hidden, How, Points, Runs, SimpleCommand, Touched, Understanding,
};
pub use verdict::{
    Bypass, Class, Completion, Constraint, ConstraintKind, ConstraintScope, ContextGate,
    ContextLevel, Decision, FaultKind, Feedback, GuardName, Mismatch, Observed, Page, Repair,
    SafetyAction, SafetyEvent, SafetyKind, Severity, Stop, StopCode, StopDetail, Verdict,
    Violation, ViolationSubtype, ViolationType, WireFault,
};

/// The version written into every record.
pub const ENGINE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bumped by any change that can alter a verdict, and then marked ★ in the
/// changelog. Replay uses it to tell "differs by version" from "differs by fault".
pub const SEMANTICS: u32 = 9;
