//! Runs what a model wrote as a transaction.
//!
//! An artifact (a program or a plan) is generated, validated and executed, and its outcome is
//! judged. Where a step fails, the transaction undoes everything the attempt did. The generator
//! then gets feedback and tries again, within budgets. The end of a call is typed and has two
//! views: an internal one with all details, and a public one without internal text.
//!
//! The crate reads no clock, file or network. All parts are traits, and with the same answers a
//! call always takes the same path.

mod attempt_call;
mod attempt_violation;
mod boundary;
mod call_parts;
mod call_pressure;
mod call_trace;
mod failure;
mod feedback;
mod lanes;
mod outcome;
mod tool_health;

pub use attempt_call::{AttemptCall, Interruption};
pub use attempt_violation::{AttemptViolation, SourceLocation, Subtype, ValidationResult};
pub use boundary::{
    GuardrailCause, InternalOutcome, NORMALIZATION_POLICY, PublicOutcome, PublicStatus,
    RULE_SUBTYPE, egress, not_started_outcome,
};
pub use call_parts::{
    ArtifactFault, CallParts, Executor, Generator, ProviderError, RollbackError, RollbackResult,
    SnapshotError, StageObserver, Transaction, Validator,
};
pub use call_pressure::{CallAuthor, CallPressure};
pub use call_trace::{AttemptFailure, CallTrace, FAILURE_CHARS_MAX, FAILURES_MAX};
pub use failure::{FailureClass, is_extrinsic, is_storage_failure};
pub use feedback::{GenerationFeedback, GenerationRequest};
pub use jackline_engine::event::Stage;
pub use lanes::{AttemptBudgets, Lane, LaneCounter, RetryLanes};
pub use outcome::{AnswerSource, ArtifactOutcome, OutcomeError};
pub use tool_health::{HealthLimits, SAMPLES_MAX, ToolHealth, ToolState, UseResult};
