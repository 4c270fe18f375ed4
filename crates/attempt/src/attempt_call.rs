//! One call: a bounded number of attempts, and one final outcome.

use jackline_engine::event::Stage;
use jackline_engine::verdict::ViolationClass;

use crate::attempt_violation::AttemptViolation;
use crate::boundary::{GuardrailCause, InternalOutcome};
use crate::call_parts::{ArtifactFault, CallParts};
use crate::call_trace::CallTrace;
use crate::failure::{
    CANCELLED, DEADLINE, EXECUTION_EXHAUSTED, FailureClass, GUARDRAIL_EXHAUSTED, NOT_JOURNALLED,
    OUTCOME_EXHAUSTED, ROLLBACK_FAILED, SNAPSHOT_FAILED, is_internal_error_type, is_retriable,
};
use crate::feedback::{GenerationFeedback, GenerationRequest, add_corrections};
use crate::lanes::{AttemptBudgets, Lane, NoRetry, RetryLanes};
use crate::outcome::{ArtifactOutcome, OutcomeError};

/// Why a call ends before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// A person or the caller cancelled it.
    Cancelled,
    /// Its deadline has passed.
    Deadline,
}

/// What a call is named and how often it may be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptCall {
    /// The name used in messages, such as `movies.find`.
    pub name: String,
    /// The retry budgets.
    pub budgets: AttemptBudgets,
}

/// How one attempt failed.
enum FailedAttempt {
    /// A guardrail raised violations.
    Guardrail(Vec<AttemptViolation>),
    /// The artifact did not run to its end.
    Execution { error_type: String, message: String },
    /// The artifact returned an error.
    Outcome(OutcomeError),
    /// The artifact returned the failure of a delegate unchanged.
    Child(Box<InternalOutcome>),
}

/// How the whole call ends. Boxed because it is large and used once per call.
struct CallEnd(Box<InternalOutcome>);

impl From<InternalOutcome> for CallEnd {
    fn from(outcome: InternalOutcome) -> Self {
        Self(Box::new(outcome))
    }
}

/// The state of a call while its attempts run.
struct CallProgress<'a, 'p, A> {
    call: &'a AttemptCall,
    parts: &'a mut CallParts<'p, A>,
    lanes: RetryLanes,
    trace: CallTrace,
    attempt: u32,
    ask: GenerationRequest,
}

impl AttemptCall {
    /// Makes attempts until one succeeds or no retry remains.
    pub fn run<A>(&self, parts: &mut CallParts<'_, A>) -> (InternalOutcome, CallTrace) {
        let lanes = RetryLanes::new(&self.budgets);
        let ask = GenerationRequest { attempt: 1, feedback: None, corrections: Vec::new() };
        let trace = CallTrace::new(lanes);
        let mut progress = CallProgress { call: self, parts, lanes, trace, attempt: 0, ask };
        let outcome = loop {
            if let Some(outcome) = progress.attempt() {
                break outcome;
            }
        };
        progress.trace.copy_counters(&progress.lanes);
        (*outcome.0, progress.trace)
    }
}

impl<A> CallProgress<'_, '_, A> {
    /// Makes one attempt. Returns the final outcome, or `None` where another attempt follows.
    fn attempt(&mut self) -> Option<CallEnd> {
        self.attempt += 1;
        self.ask.attempt = self.attempt;
        if let Err(over) = self.report_stage(Stage::Started) {
            return Some(over);
        }
        let artifact = match self.generate() {
            Ok(artifact) => artifact,
            Err(over) => return Some(over),
        };
        match self.parts.transaction.begin(self.attempt) {
            Ok(ms) => self.trace.snapshot_ms = Some(ms),
            // An attempt that cannot be undone does not start.
            Err(error) => return Some(self.internal_end(SNAPSHOT_FAILED, &error.0, false)),
        }
        match self.validate_and_run(&artifact) {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(failed)) => self.undo_and_decide(failed),
            // The call must end here, but the changes of the attempt are still undone.
            Err(over) => Some(self.roll_back(Stage::RolledBack).err().unwrap_or(over)),
        }
    }

    /// Gets an artifact. Asks again where the error is retriable and a retry remains.
    fn generate(&mut self) -> Result<A, CallEnd> {
        loop {
            self.lanes.count_request();
            let error = match self.parts.generator.generate(&self.ask) {
                Ok(artifact) => {
                    self.report_stage(Stage::Generated)?;
                    return Ok(artifact);
                }
                Err(error) => error,
            };
            let (error_type, message) = (&error.error_type, &error.message);
            self.trace.record_failure(self.attempt, "provider", error_type, message);
            if let Some(ended) = self.parts.stages.interruption() {
                return Err(self.interrupted_end(ended));
            }
            if !error.retriable || self.lanes.spend(Lane::Provider).is_err() {
                return Err(self.internal_end(error_type, message, error.retriable));
            }
            let remaining = self.lanes.left_after_next(Lane::Provider);
            self.set_feedback(GenerationFeedback::provider(error_type, message, remaining));
        }
    }

    /// Validates, runs and judges an artifact within its transaction.
    fn validate_and_run(
        &mut self,
        artifact: &A,
    ) -> Result<Result<CallEnd, FailedAttempt>, CallEnd> {
        let violations = self.parts.validator.validate(artifact);
        if !violations.is_empty() {
            return Ok(Err(FailedAttempt::Guardrail(violations)));
        }
        self.report_stage(Stage::Validated)?;
        let outcome = match self.parts.executor.execute(artifact) {
            Ok(outcome) => outcome,
            Err(ArtifactFault::Refused(violations)) => {
                return Ok(Err(FailedAttempt::Guardrail(violations)));
            }
            Err(ArtifactFault::Failed { error_type, message }) => {
                return Ok(Err(FailedAttempt::Execution { error_type, message }));
            }
        };
        self.report_stage(Stage::Executed)?;
        let violations = self.parts.validator.judge(artifact, &outcome);
        if !violations.is_empty() {
            return Ok(Err(FailedAttempt::Guardrail(violations)));
        }
        let ended = match outcome {
            ArtifactOutcome::Ok { value, sources } => InternalOutcome::Ok { value, sources }.into(),
            ArtifactOutcome::Child(child) if child.is_ok() => CallEnd(child),
            ArtifactOutcome::Child(child) => return Ok(Err(FailedAttempt::Child(child))),
            ArtifactOutcome::Error(error) => return Ok(Err(FailedAttempt::Outcome(error))),
        };
        // A cancelled call ends here even if the artifact ignored the cancellation.
        let interruption = self.parts.stages.interruption();
        self.check_interruption(interruption)?;
        if let Err(error) = self.parts.transaction.commit(self.attempt) {
            return Err(self.internal_end(ROLLBACK_FAILED, &error.0, false));
        }
        self.report_stage(Stage::Committed)?;
        Ok(Ok(ended))
    }

    /// Undoes a failed attempt. Returns `None` where another attempt follows.
    fn undo_and_decide(&mut self, failed: FailedAttempt) -> Option<CallEnd> {
        let after = self.next_after_failure(failed);
        let stage = match &after {
            Ok((stage, _)) => *stage,
            Err(_) => Stage::RolledBack,
        };
        if let Err(over) = self.roll_back(stage) {
            return Some(over);
        }
        match after {
            Ok((_, feedback)) => {
                self.set_feedback(feedback);
                None
            }
            Err(outcome) => Some(outcome),
        }
    }

    /// Decides what follows a failure: another attempt, or the end of the call.
    fn next_after_failure(
        &mut self,
        failed: FailedAttempt,
    ) -> Result<(Stage, GenerationFeedback), CallEnd> {
        let ended = self.parts.stages.interruption();
        match failed {
            FailedAttempt::Guardrail(violations) => {
                let terminal = &self.call.budgets.terminal;
                let classified = |it: AttemptViolation| it.with_terminal_subtypes(terminal);
                let violations: Vec<AttemptViolation> =
                    violations.into_iter().map(classified).collect();
                self.next_after_violations(&violations, ended)
            }
            FailedAttempt::Execution { error_type, message } => {
                self.trace.record_failure(self.attempt, "execution", &error_type, &message);
                self.check_interruption(ended)?;
                match self.lanes.spend(Lane::Execution) {
                    Ok(()) => {
                        let remaining = self.lanes.left_after_next(Lane::Execution);
                        let feedback =
                            GenerationFeedback::execution(&error_type, &message, remaining);
                        Ok((Stage::ExecutionRetry, feedback))
                    }
                    Err(NoRetry::Off) => {
                        Err(self.internal_end(&error_type, &message, is_retriable(&error_type)))
                    }
                    Err(NoRetry::Exhausted) => {
                        self.trace.execution_retry_exhausted =
                            self.lanes.is_used_up(Lane::Execution);
                        let text = self.exhausted_text(Lane::Execution, "Execution retries");
                        let error = OutcomeError::new(EXECUTION_EXHAUSTED, text, false)
                            .with("execution_retry_attempts", self.lanes.execution.used)
                            .with("last_error_type", error_type)
                            .with("last_error_message", message);
                        Err(self.internal_end_with(error, None))
                    }
                }
            }
            FailedAttempt::Outcome(error) => self.next_after_outcome(error, ended),
            // A delegate has already used its own attempts.
            FailedAttempt::Child(child) => {
                let error = child.error().cloned();
                let error = error.unwrap_or_else(|| OutcomeError::new("unknown", "", false));
                let (kind, message) = (&error.error_type, &error.error_message);
                self.trace.record_failure(self.attempt, "outcome_policy", kind, message);
                Err(CallEnd(child))
            }
        }
    }

    fn next_after_violations(
        &mut self,
        violations: &[AttemptViolation],
        ended: Option<Interruption>,
    ) -> Result<(Stage, GenerationFeedback), CallEnd> {
        for violation in violations {
            self.trace.record_failure(
                self.attempt,
                "validation",
                violation.subtype.as_str(),
                &violation.message,
            );
        }
        let ends = violations.iter().find(|violation| violation.class == ViolationClass::Terminal);
        let Some(leading) = ends.or(violations.first()) else {
            return Err(self.internal_end("unknown", "", false));
        };
        self.trace.validation_failure_type = Some(leading.kind.to_string());
        self.trace.guardrail_violation_subtype = Some(leading.subtype.to_string());
        let cause = GuardrailCause { class: leading.class, subtype: leading.subtype.to_string() };
        if let Some(ended) = ended {
            return Err(self.internal_end_with(interruption_error(ended), Some(cause)));
        }
        let objection = |text: String, error_type: &str, used: u32| {
            OutcomeError::new(error_type, text, false)
                .with("guardrail_recovery_attempts", used)
                .with("last_violation_type", leading.kind.as_str())
                .with("last_violation_subtype", leading.subtype.as_str())
                .with("last_violation_message", leading.message.clone())
        };
        let spent = match leading.class {
            ViolationClass::Terminal => Err(NoRetry::Off),
            ViolationClass::Recoverable => self.lanes.spend(Lane::Guardrail),
        };
        let used = self.lanes.guardrail.used;
        let error = match spent {
            Ok(()) => {
                let remaining = self.lanes.left_after_next(Lane::Guardrail);
                return Ok((
                    Stage::RolledBack,
                    GenerationFeedback::guardrail(violations, remaining),
                ));
            }
            Err(NoRetry::Off) => objection(leading.message.clone(), leading.kind.as_str(), used),
            Err(NoRetry::Exhausted) => {
                self.trace.guardrail_retry_exhausted = self.lanes.is_used_up(Lane::Guardrail);
                let text = self.exhausted_text(Lane::Guardrail, "Recoverable guardrail retries");
                objection(text, GUARDRAIL_EXHAUSTED, used)
            }
        };
        Err(self.internal_end_with(error, Some(cause)))
    }

    fn next_after_outcome(
        &mut self,
        error: OutcomeError,
        ended: Option<Interruption>,
    ) -> Result<(Stage, GenerationFeedback), CallEnd> {
        let OutcomeError { error_type, error_message, retriable, .. } = &error;
        self.trace.record_failure(self.attempt, "outcome_policy", error_type, error_message);
        if is_internal_error_type(error_type) {
            return Err(self.internal_end_with(error, None));
        }
        let class = FailureClass::of(error_type);
        if !retriable || class == FailureClass::Extrinsic {
            return Err(InternalOutcome::Error(error).into());
        }
        self.check_interruption(ended)?;
        match self.lanes.spend(Lane::Outcome) {
            Ok(()) => {
                self.trace.outcome_repair_triggered = true;
                let remaining = self.lanes.left_after_next(Lane::Outcome);
                Ok((Stage::OutcomeRetry, GenerationFeedback::outcome(&error, class, remaining)))
            }
            Err(NoRetry::Off) => Err(InternalOutcome::Error(error).into()),
            Err(NoRetry::Exhausted) => {
                self.trace.outcome_repair_retry_exhausted = self.lanes.is_used_up(Lane::Outcome);
                let text = self.exhausted_text(Lane::Outcome, "Retriable outcome-error repairs");
                let exhausted = OutcomeError::new(OUTCOME_EXHAUSTED, text, false)
                    .with("outcome_repair_attempts", self.lanes.outcome.used)
                    .with("last_error_type", error.error_type)
                    .with("last_error_message", error.error_message);
                Err(self.internal_end_with(exhausted, None))
            }
        }
    }

    /// Why no retry follows: the lane has none left, or the call has reached its ceiling.
    fn exhausted_text(&self, lane: Lane, retries: &str) -> String {
        let name = &self.call.name;
        if self.lanes.is_used_up(lane) {
            format!("{retries} exhausted for {name}")
        } else {
            format!("The ceiling of {} requests is reached for {name}", self.lanes.ceiling)
        }
    }

    fn roll_back(&mut self, stage: Stage) -> Result<(), CallEnd> {
        match self.parts.transaction.roll_back(self.attempt) {
            Ok(restored) => self.trace.record_rollback(restored),
            Err(error) => return Err(self.internal_end(ROLLBACK_FAILED, &error.0, false)),
        }
        self.report_stage(stage)
    }

    fn report_stage(&mut self, stage: Stage) -> Result<(), CallEnd> {
        if let Err(why) = self.parts.stages.stage_reached(self.attempt, stage) {
            return Err(self.internal_end(NOT_JOURNALLED, &why, false));
        }
        self.trace.record_stage(self.attempt, stage);
        Ok(())
    }

    /// Adds feedback to the next request to the generator.
    fn set_feedback(&mut self, feedback: GenerationFeedback) {
        self.trace.retry_feedback_injected = true;
        add_corrections(&mut self.ask.corrections, &feedback);
        self.ask.feedback = Some(feedback);
    }

    fn check_interruption(&self, ended: Option<Interruption>) -> Result<(), CallEnd> {
        ended.map_or(Ok(()), |ended| Err(self.interrupted_end(ended)))
    }

    fn interrupted_end(&self, ended: Interruption) -> CallEnd {
        self.internal_end_with(interruption_error(ended), None)
    }

    fn internal_end(&self, error_type: &str, message: &str, retriable: bool) -> CallEnd {
        self.internal_end_with(OutcomeError::new(error_type, message, retriable), None)
    }

    fn internal_end_with(&self, error: OutcomeError, guardrail: Option<GuardrailCause>) -> CallEnd {
        InternalOutcome::InternalError {
            error,
            guardrail,
            guardrail_recovery_attempts: self.lanes.guardrail.used,
            retries: self.lanes.retries(),
        }
        .into()
    }
}

/// The error of a call that was interrupted.
fn interruption_error(ended: Interruption) -> OutcomeError {
    match ended {
        Interruption::Cancelled => OutcomeError::new(CANCELLED, "the call was cancelled", false),
        Interruption::Deadline => {
            OutcomeError::new(DEADLINE, "the call exceeded its deadline", false)
        }
    }
}
