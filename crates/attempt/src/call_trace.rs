//! The log entry of a call: all details, for engineers.

use jackline_engine::event::Stage;
use serde::Serialize;

use crate::boundary::PublicOutcome;
use crate::call_parts::RollbackResult;
use crate::feedback::shortened;
use crate::lanes::RetryLanes;

/// The number of failures that are kept; newer ones replace the oldest.
pub const FAILURES_MAX: usize = 8;

/// The longest message of a failure, in characters.
pub const FAILURE_CHARS_MAX: usize = 400;

/// One failure of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptFailure {
    /// The attempt that failed.
    pub attempt_id: u32,
    /// `provider`, `validation`, `execution` or `outcome_policy`.
    pub stage: &'static str,
    /// The error type or violation subtype.
    pub error_class: String,
    /// The message, shortened.
    pub error_message: String,
}

/// The course of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the documented trace fields, each a yes or no")]
pub struct CallTrace {
    /// The number of the last attempt.
    pub attempt_id: u32,
    /// The last stage of that attempt.
    pub attempt_stage: Option<Stage>,
    /// All stages of all attempts, in order.
    pub stages: Vec<(u32, Stage)>,
    /// The type of the last violation.
    pub validation_failure_type: Option<String>,
    /// The exact subtype of the last violation.
    pub guardrail_violation_subtype: Option<String>,
    /// Whether at least one attempt was undone.
    pub rollback_applied: bool,
    /// Whether the generator got feedback with a retry.
    pub retry_feedback_injected: bool,
    /// Retries after violations.
    pub guardrail_recovery_attempts: u32,
    /// Whether no retry was left after violations.
    pub guardrail_retry_exhausted: bool,
    /// Retries after execution failures.
    pub execution_retry_attempts: u32,
    /// Whether no retry was left after execution failures.
    pub execution_retry_exhausted: bool,
    /// Retries after error outcomes.
    pub outcome_repair_attempts: u32,
    /// Whether at least one error outcome was retried.
    pub outcome_repair_triggered: bool,
    /// Whether no retry was left after error outcomes.
    pub outcome_repair_retry_exhausted: bool,
    /// Whether earlier calls that used all their retries have reduced the retries of this call.
    pub under_pressure: bool,
    /// The counters of all lanes.
    pub lanes: RetryLanes,
    /// The last failures.
    pub attempt_failures: Vec<AttemptFailure>,
    /// The number of older failures that were dropped.
    pub attempt_failures_dropped: u32,
    /// The time of the last snapshot, in milliseconds.
    pub snapshot_ms: Option<u64>,
    /// The time of all rollbacks, in milliseconds.
    pub rollback_ms: Option<u64>,
    /// Files that another process changed in the meantime. They kept their present contents.
    pub kept: Vec<String>,
    /// Descriptions of what could not be undone.
    pub not_undoable: Vec<String>,
    /// Whether the public outcome is a general one.
    pub user_outcome_normalized: bool,
    /// The rule that made it general.
    pub user_outcome_normalization_policy: Option<&'static str>,
}

impl CallTrace {
    pub(crate) fn new(lanes: RetryLanes) -> Self {
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
            under_pressure: false,
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

    pub(crate) fn record_stage(&mut self, attempt: u32, stage: Stage) {
        self.attempt_id = attempt;
        self.attempt_stage = Some(stage);
        self.stages.push((attempt, stage));
    }

    pub(crate) fn record_failure(
        &mut self,
        attempt: u32,
        stage: &'static str,
        class: &str,
        message: &str,
    ) {
        let (error_class, error_message) =
            (class.to_owned(), shortened(message, FAILURE_CHARS_MAX));
        if self.attempt_failures.len() == FAILURES_MAX {
            self.attempt_failures.remove(0);
            self.attempt_failures_dropped += 1;
        }
        let failure = AttemptFailure { attempt_id: attempt, stage, error_class, error_message };
        self.attempt_failures.push(failure);
    }

    pub(crate) fn record_rollback(&mut self, restored: RollbackResult) {
        self.rollback_applied = true;
        *self.rollback_ms.get_or_insert(0) += restored.ms;
        self.kept.extend(restored.kept);
        self.not_undoable.extend(restored.not_undoable);
    }

    /// Copies the counters of the lanes.
    pub(crate) fn copy_counters(&mut self, lanes: &RetryLanes) {
        self.lanes = *lanes;
        self.guardrail_recovery_attempts = lanes.guardrail.used;
        self.execution_retry_attempts = lanes.execution.used;
        self.outcome_repair_attempts = lanes.outcome.used;
    }

    /// Records whether the public outcome is a general one.
    pub fn record_public_outcome(&mut self, public: &PublicOutcome) {
        self.user_outcome_normalized = public.normalized;
        self.user_outcome_normalization_policy = public.normalization_policy;
    }
}
