//! What a call is made of. Each part may be anything: a model or a script, an
//! interpreter or a worker, files or nothing at all.

use jackline_engine::event::Stage;
use serde::Serialize;

use crate::feedback::Ask;
use crate::outcome::Outcome;
use crate::violation::Violation;

/// Writes artifacts.
pub trait Generator {
    /// A program, or a plan.
    type Artifact;

    /// Writes one.
    fn generate(&mut self, ask: &Ask) -> Result<Self::Artifact, ProviderError>;
}

/// Looks at an artifact before it runs, and at what came of it.
pub trait Validator<A> {
    /// Everything that is wrong with an artifact. Runs nothing of it.
    fn validate(&mut self, artifact: &A) -> Vec<Violation>;

    /// Everything that is wrong with its answer.
    fn judge(&mut self, artifact: &A, outcome: &Outcome) -> Vec<Violation>;
}

/// Runs artifacts.
pub trait Executor<A> {
    /// Runs one to its end.
    fn execute(&mut self, artifact: &A) -> Result<Outcome, Fault>;
}

/// Holds what an attempt changes, until it is known whether that stays.
pub trait Transaction {
    /// Begins: from here on everything can be undone, or the attempt is not made.
    fn begin(&mut self, attempt: u32) -> Result<u64, SnapshotError>;

    /// Undoes what the attempt did, and nothing else.
    fn roll_back(&mut self, attempt: u32) -> Result<Restored, RollbackError>;

    /// What the attempt did stays.
    fn commit(&mut self, attempt: u32) -> Result<(), RollbackError>;
}

/// Hears how a call goes on. A stage is told before the next one begins.
pub trait Stages {
    /// An attempt reached a stage. An error holds the call: what can't be written down
    /// is not done.
    fn reached(&mut self, attempt: u32, stage: Stage) -> Result<(), String>;

    /// Whether the call has to end now, and why.
    fn ended(&mut self) -> Option<crate::call::Ended>;
}

/// Everything that a call needs.
pub struct Parts<'a, A> {
    /// Writes artifacts.
    pub generator: &'a mut dyn Generator<Artifact = A>,
    /// Looks at them.
    pub validator: &'a mut dyn Validator<A>,
    /// Runs them.
    pub executor: &'a mut dyn Executor<A>,
    /// Undoes what they did.
    pub transaction: &'a mut dyn Transaction,
    /// Hears how it goes on.
    pub stages: &'a mut dyn Stages,
}

/// The generator gave nothing usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// A word for it: `timeout`, `provider`, `invalid_code`, ….
    pub error_type: String,
    /// What happened.
    pub message: String,
    /// Whether asking again can help.
    pub retriable: bool,
}

/// Why an artifact did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The guards refused a call of it, and it had nothing to say to that.
    #[error("a call was refused")]
    Refused(Vec<Violation>),
    /// It failed.
    #[error("{message}")]
    Failed {
        /// A word for it: `execution`, `timeout`, `worker_crash`, `non_serializable_result`, ….
        error_type: String,
        /// What happened.
        message: String,
    },
}

/// An attempt can't be made so that it can be undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SnapshotError(pub String);

/// An attempt could not be undone, and this is how things are now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RollbackError(pub String);

/// What undoing an attempt came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// How long it took.
    pub ms: u64,
    /// Files that somebody else has changed meanwhile, and that were left as they are.
    pub kept: Vec<String>,
    /// What can't be undone, in words.
    pub not_undoable: Vec<String>,
}
