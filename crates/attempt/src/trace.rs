//! What a call leaves in the log: everything, for those who repair it.

use jackline_engine::event::Stage;
use serde::Serialize;

use crate::boundary::Normalization;
use crate::feedback::cut;
use crate::lanes::Lanes;
use crate::parts::Restored;

/// How many failures are kept; the last ones count.
pub const FAILURES_MAX: usize = 8;

/// How much of each is kept.
pub const FAILURE_CHARS_MAX: usize = 400;

/// One failure of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptFailure {
    /// Which attempt.
    pub attempt_id: u32,
    /// `provider`, `validation`, `execution` or `outcome_policy`.
    pub stage: &'static str,
    /// What kind of failure.
    pub error_class: String,
    /// What happened.
    pub error_message: String,
}

/// How a call went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the fields that the seeds ask for, each a yes or no"
)]
pub struct Trace {
    /// The last attempt.
    pub attempt_id: u32,
    /// The stage it reached.
    pub attempt_stage: Option<Stage>,
    /// All stages, in order.
    pub stages: Vec<(u32, Stage)>,
    /// What was violated last.
    pub validation_failure_type: Option<String>,
    /// The exact objection.
    pub guardrail_violation_subtype: Option<String>,
    /// Whether an attempt was undone.
    pub rollback_applied: bool,
    /// Whether the generator was told why it was asked again.
    pub retry_feedback_injected: bool,
    /// Retries after objections.
    pub guardrail_recovery_attempts: u32,
    /// Whether there were none left.
    pub guardrail_retry_exhausted: bool,
    /// Retries after faults.
    pub execution_retry_attempts: u32,
    /// Whether there were none left.
    pub execution_retry_exhausted: bool,
    /// Retries after error outcomes.
    pub outcome_repair_attempts: u32,
    /// Whether there was one.
    pub outcome_repair_triggered: bool,
    /// Whether there were none left.
    pub outcome_repair_retry_exhausted: bool,
    /// All lanes.
    pub lanes: Lanes,
    /// The last failures.
    pub attempt_failures: Vec<AttemptFailure>,
    /// How many more there were.
    pub attempt_failures_dropped: u32,
    /// How long the last snapshot took.
    pub snapshot_ms: Option<u64>,
    /// How long undoing took, in all.
    pub rollback_ms: Option<u64>,
    /// Files that somebody else has changed meanwhile.
    pub kept: Vec<String>,
    /// What could not be undone.
    pub not_undoable: Vec<String>,
    /// Whether whoever asked was told something else.
    pub user_outcome_normalized: bool,
    /// By which rule.
    pub user_outcome_normalization_policy: Option<&'static str>,
}

impl Trace {
    pub(crate) fn new(lanes: Lanes) -> Self {
        Self {
            attempt_id: 0,
            attempt_stage: None,
            stages: Vec::new(),
            validation_failure_type: None,
            guardrail_violation_subtype: None,
            rollback_applied: false,
            retry_feedback_injected: false,
            guardrail_recovery_attempts: 0,
            guardrail_retry_exhausted: false,
            execution_retry_attempts: 0,
            execution_retry_exhausted: false,
            outcome_repair_attempts: 0,
            outcome_repair_triggered: false,
            outcome_repair_retry_exhausted: false,
            lanes,
            attempt_failures: Vec::new(),
            attempt_failures_dropped: 0,
            snapshot_ms: None,
            rollback_ms: None,
            kept: Vec::new(),
            not_undoable: Vec::new(),
            user_outcome_normalized: false,
            user_outcome_normalization_policy: None,
        }
    }

    pub(crate) fn reached(&mut self, attempt: u32, stage: Stage) {
        self.attempt_id = attempt;
        self.attempt_stage = Some(stage);
        self.stages.push((attempt, stage));
    }

    pub(crate) fn failed(&mut self, attempt: u32, stage: &'static str, class: &str, message: &str) {
        let (error_class, error_message) = (class.to_owned(), cut(message, FAILURE_CHARS_MAX));
        if self.attempt_failures.len() == FAILURES_MAX {
            self.attempt_failures.remove(0);
            self.attempt_failures_dropped += 1;
        }
        let failure = AttemptFailure { attempt_id: attempt, stage, error_class, error_message };
        self.attempt_failures.push(failure);
    }

    pub(crate) fn restored(&mut self, restored: Restored) {
        self.rollback_applied = true;
        *self.rollback_ms.get_or_insert(0) += restored.ms;
        self.kept.extend(restored.kept);
        self.not_undoable.extend(restored.not_undoable);
    }

    /// Takes over what the lanes have used.
    pub(crate) fn count(&mut self, lanes: &Lanes) {
        self.lanes = *lanes;
        self.guardrail_recovery_attempts = lanes.guardrail.used;
        self.execution_retry_attempts = lanes.execution.used;
        self.outcome_repair_attempts = lanes.outcome.used;
    }

    /// Notes what whoever asked was told.
    pub fn told(&mut self, normalization: Option<&Normalization>) {
        self.user_outcome_normalized = normalization.is_some();
        self.user_outcome_normalization_policy = normalization.map(|it| it.normalization_policy);
    }
}
