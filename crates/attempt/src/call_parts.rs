//! The parts of a call, as traits. A generator may be a model or a script, an executor an
//! interpreter or a worker, and a transaction files or nothing at all.

use jackline_engine::event::Stage;
use serde::Serialize;

use crate::attempt_violation::AttemptViolation;
use crate::feedback::GenerationRequest;
use crate::outcome::ArtifactOutcome;

/// Writes artifacts.
pub trait Generator {
    /// A program or a plan.
    type Artifact;

    /// Writes one artifact.
    fn generate(&mut self, ask: &GenerationRequest) -> Result<Self::Artifact, ProviderError>;
}

/// Validates an artifact before it runs, and judges its outcome.
pub trait Validator<A> {
    /// Returns all violations of an artifact. Runs nothing of it.
    fn validate(&mut self, artifact: &A) -> Vec<AttemptViolation>;

    /// Returns all violations of its outcome.
    fn judge(&mut self, artifact: &A, outcome: &ArtifactOutcome) -> Vec<AttemptViolation>;
}

/// Runs artifacts.
pub trait Executor<A> {
    /// Runs one artifact to its end.
    fn execute(&mut self, artifact: &A) -> Result<ArtifactOutcome, ArtifactFault>;
}

/// Records what an attempt changes, so that it can be undone or committed.
pub trait Transaction {
    /// Starts recording. On an error the attempt is not made. Returns the time taken in
    /// milliseconds.
    fn begin(&mut self, attempt: u32) -> Result<u64, SnapshotError>;

    /// Undoes what the attempt did, and nothing else.
    fn roll_back(&mut self, attempt: u32) -> Result<RollbackResult, RollbackError>;

    /// Keeps what the attempt did.
    fn commit(&mut self, attempt: u32) -> Result<(), RollbackError>;
}

/// Observes the progress of a call. A stage is reported before the next one begins.
pub trait StageObserver {
    /// Called when an attempt reaches a stage. An error ends the call, because a stage that is
    /// not journaled must have no effect.
    fn stage_reached(&mut self, attempt: u32, stage: Stage) -> Result<(), String>;

    /// Why the call has to end now, if it has to.
    fn interruption(&mut self) -> Option<crate::attempt_call::Interruption>;
}

/// Everything that a call needs.
pub struct CallParts<'a, A> {
    /// Writes artifacts.
    pub generator: &'a mut dyn Generator<Artifact = A>,
    /// Validates and judges artifacts.
    pub validator: &'a mut dyn Validator<A>,
    /// Runs artifacts.
    pub executor: &'a mut dyn Executor<A>,
    /// Undoes or commits their changes.
    pub transaction: &'a mut dyn Transaction,
    /// Observes the stages.
    pub stages: &'a mut dyn StageObserver,
}

/// The generator returned no usable artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The error type: `timeout`, `provider`, `invalid_code`, ….
    pub error_type: String,
    /// The error message.
    pub message: String,
    /// Whether asking again can help.
    pub retriable: bool,
}

/// Why an artifact did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactFault {
    /// The guards refused a call of the artifact, and the artifact did not handle the refusal.
    #[error("a call was refused")]
    Refused(Vec<AttemptViolation>),
    /// The artifact failed.
    #[error("{message}")]
    Failed {
        /// The error type: `execution`, `timeout`, `worker_crash`, `non_serializable_result`, ….
        error_type: String,
        /// The error message.
        message: String,
    },
}

/// No snapshot could be taken, so the attempt could not be undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SnapshotError(pub String);

/// An attempt could not be undone. The text describes the current state of the files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RollbackError(pub String);

/// The result of undoing an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RollbackResult {
    /// The time taken in milliseconds.
    pub ms: u64,
    /// Files that were changed by another process in the meantime. They keep their present
    /// contents.
    pub kept: Vec<String>,
    /// Descriptions of what cannot be undone.
    pub not_undoable: Vec<String>,
}
