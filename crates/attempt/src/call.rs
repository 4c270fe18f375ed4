//! One call: as many attempts as it may have, and one end.

use jackline_engine::event::Stage;
use jackline_engine::verdict::Class;

use crate::boundary::InternalOutcome;
use crate::failure::{
    CANCELLED, DEADLINE, EXECUTION_EXHAUSTED, FailureClass, GUARDRAIL_EXHAUSTED, NOT_JOURNALLED,
    OUTCOME_EXHAUSTED, ROLLBACK_FAILED, SNAPSHOT_FAILED, is_of_the_inside, is_retriable,
};
use crate::feedback::{Ask, Feedback, remember};
use crate::lanes::{Budgets, Lane, Lanes, Spent};
use crate::outcome::{Outcome, OutcomeError};
use crate::parts::{Fault, Parts};
use crate::trace::Trace;
use crate::violation::Violation;

/// Why a call ends before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Somebody wants it to.
    Cancelled,
    /// Its time is over.
    Deadline,
}

/// What is to be done, and how often it may be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name in messages, such as `movies.find`.
    pub name: String,
    /// What it may spend.
    pub budgets: Budgets,
}

/// How one attempt failed.
enum Failed {
    /// Guardrails object.
    Guardrail(Vec<Violation>),
    /// It did not run to its end.
    Execution { error_type: String, message: String },
    /// It says so itself.
    Outcome(OutcomeError),
    /// It hands on how a delegate failed.
    Child(Box<InternalOutcome>),
}

/// How the whole call ends. It is seldom, and large, so it is not carried along.
struct Over(Box<InternalOutcome>);

impl From<InternalOutcome> for Over {
    fn from(outcome: InternalOutcome) -> Self {
        Self(Box::new(outcome))
    }
}

/// A call under way.
struct Going<'a, 'p, A> {
    call: &'a Call,
    parts: &'a mut Parts<'p, A>,
    lanes: Lanes,
    trace: Trace,
    attempt: u32,
    ask: Ask,
}

impl Call {
    /// Makes attempts until one is good or none is left.
    pub fn run<A>(&self, parts: &mut Parts<'_, A>) -> (InternalOutcome, Trace) {
        let lanes = Lanes::new(&self.budgets);
        let ask = Ask { attempt: 1, feedback: None, corrections: Vec::new() };
        let trace = Trace::new(lanes);
        let mut going = Going { call: self, parts, lanes, trace, attempt: 0, ask };
        let outcome = loop {
            if let Some(outcome) = going.attempt() {
                break outcome;
            }
        };
        going.trace.count(&going.lanes);
        (*outcome.0, going.trace)
    }
}

impl<A> Going<'_, '_, A> {
    /// Makes one attempt. Gives how the call ends, unless there is another attempt.
    fn attempt(&mut self) -> Option<Over> {
        self.attempt += 1;
        self.ask.attempt = self.attempt;
        if let Err(over) = self.reach(Stage::Started) {
            return Some(over);
        }
        let artifact = match self.generate() {
            Ok(artifact) => artifact,
            Err(over) => return Some(over),
        };
        match self.parts.transaction.begin(self.attempt) {
            Ok(ms) => self.trace.snapshot_ms = Some(ms),
            // What can't be undone is not begun.
            Err(error) => return Some(self.inside(SNAPSHOT_FAILED, &error.0, false)),
        }
        match self.carry_out(&artifact) {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(failed)) => self.undo(failed),
            // Nothing may go on, but what was begun is still undone.
            Err(over) => Some(self.roll_back(Stage::RolledBack).err().unwrap_or(over)),
        }
    }

    /// Gets an artifact, asking again where that may help.
    fn generate(&mut self) -> Result<A, Over> {
        loop {
            self.lanes.ask();
            let error = match self.parts.generator.generate(&self.ask) {
                Ok(artifact) => {
                    self.reach(Stage::Generated)?;
                    return Ok(artifact);
                }
                Err(error) => error,
            };
            let (error_type, message) = (&error.error_type, &error.message);
            self.trace.failed(self.attempt, "provider", error_type, message);
            if let Some(ended) = self.parts.stages.ended() {
                return Err(self.ended(ended));
            }
            if !error.retriable || self.lanes.spend(Lane::Provider).is_err() {
                return Err(self.inside(error_type, message, error.retriable));
            }
            let remaining = self.lanes.provider.remaining;
            self.tell(Feedback::provider(error_type, message, remaining));
        }
    }

    /// Validates, runs and judges an artifact within its transaction.
    fn carry_out(&mut self, artifact: &A) -> Result<Result<Over, Failed>, Over> {
        let violations = self.parts.validator.validate(artifact);
        if !violations.is_empty() {
            return Ok(Err(Failed::Guardrail(violations)));
        }
        self.reach(Stage::Validated)?;
        let outcome = match self.parts.executor.execute(artifact) {
            Ok(outcome) => outcome,
            Err(Fault::Refused(violations)) => return Ok(Err(Failed::Guardrail(violations))),
            Err(Fault::Failed { error_type, message }) => {
                return Ok(Err(Failed::Execution { error_type, message }));
            }
        };
        self.reach(Stage::Executed)?;
        let violations = self.parts.validator.judge(artifact, &outcome);
        if !violations.is_empty() {
            return Ok(Err(Failed::Guardrail(violations)));
        }
        let ended = match outcome {
            Outcome::Ok { value, sources } => InternalOutcome::Ok { value, sources }.into(),
            Outcome::Child(child) if child.is_ok() => Over(child),
            Outcome::Child(child) => return Ok(Err(Failed::Child(child))),
            Outcome::Error(error) => return Ok(Err(Failed::Outcome(error))),
        };
        // Whoever holds the call holds it also where the artifact took no notice of that.
        let held = self.parts.stages.ended();
        self.over(held)?;
        if let Err(error) = self.parts.transaction.commit(self.attempt) {
            return Err(self.inside(ROLLBACK_FAILED, &error.0, false));
        }
        self.reach(Stage::Committed)?;
        Ok(Ok(ended))
    }

    /// Undoes an attempt that failed, and finds out whether there is another one.
    fn undo(&mut self, failed: Failed) -> Option<Over> {
        let after = self.after(failed);
        let stage = match &after {
            Ok((stage, _)) => *stage,
            Err(_) => Stage::RolledBack,
        };
        if let Err(over) = self.roll_back(stage) {
            return Some(over);
        }
        match after {
            Ok((_, feedback)) => {
                self.tell(feedback);
                None
            }
            Err(outcome) => Some(outcome),
        }
    }

    /// What a failure leads to: another attempt, or the end.
    fn after(&mut self, failed: Failed) -> Result<(Stage, Feedback), Over> {
        let ended = self.parts.stages.ended();
        match failed {
            Failed::Guardrail(violations) => {
                let terminal = &self.call.budgets.terminal;
                let classified = |it: Violation| it.classified(terminal);
                let violations: Vec<Violation> = violations.into_iter().map(classified).collect();
                self.after_objections(&violations, ended)
            }
            Failed::Execution { error_type, message } => {
                self.trace.failed(self.attempt, "execution", &error_type, &message);
                self.over(ended)?;
                match self.lanes.spend(Lane::Execution) {
                    Ok(()) => {
                        let remaining = self.lanes.execution.remaining;
                        let feedback = Feedback::execution(&error_type, &message, remaining);
                        Ok((Stage::ExecutionRetry, feedback))
                    }
                    Err(Spent::Off) => {
                        Err(self.inside(&error_type, &message, is_retriable(&error_type)))
                    }
                    Err(Spent::Exhausted) => {
                        self.trace.execution_retry_exhausted = true;
                        let text = format!("Execution retries exhausted for {}", self.call.name);
                        let error = OutcomeError::new(EXECUTION_EXHAUSTED, text, false)
                            .with("execution_retry_attempts", self.lanes.execution.used)
                            .with("last_error_type", error_type.clone())
                            .with("last_error_message", message);
                        Err(self.inside_with(error, Class::Recoverable, error_type))
                    }
                }
            }
            Failed::Outcome(error) => self.after_outcome(error, ended),
            // The delegate had its own attempts.
            Failed::Child(child) => {
                let error = child.error().cloned();
                let error = error.unwrap_or_else(|| OutcomeError::new("unknown", "", false));
                let (kind, message) = (&error.error_type, &error.error_message);
                self.trace.failed(self.attempt, "outcome_policy", kind, message);
                Err(Over(child))
            }
        }
    }

    fn after_objections(
        &mut self,
        violations: &[Violation],
        ended: Option<Ended>,
    ) -> Result<(Stage, Feedback), Over> {
        for violation in violations {
            self.trace.failed(
                self.attempt,
                "validation",
                violation.subtype.word(),
                &violation.message,
            );
        }
        let ends = violations.iter().find(|violation| violation.class == Class::Terminal);
        let Some(leading) = ends.or(violations.first()) else {
            return Err(self.inside("unknown", "", false));
        };
        self.trace.validation_failure_type = Some(leading.kind.to_string());
        self.trace.guardrail_violation_subtype = Some(leading.subtype.to_string());
        self.over(ended)?;
        let objection = |text: String, error_type: &str, used: u32| {
            OutcomeError::new(error_type, text, false)
                .with("guardrail_recovery_attempts", used)
                .with("last_violation_type", leading.kind.word())
                .with("last_violation_subtype", leading.subtype.word())
                .with("last_violation_message", leading.message.clone())
        };
        let spent = match leading.class {
            Class::Terminal => Err(Spent::Off),
            Class::Recoverable => self.lanes.spend(Lane::Guardrail),
        };
        let used = self.lanes.guardrail.used;
        let error = match spent {
            Ok(()) => {
                let remaining = self.lanes.guardrail.remaining;
                return Ok((Stage::RolledBack, Feedback::guardrail(violations, remaining)));
            }
            Err(Spent::Off) => objection(leading.message.clone(), leading.kind.word(), used),
            Err(Spent::Exhausted) => {
                self.trace.guardrail_retry_exhausted = true;
                let text =
                    format!("Recoverable guardrail retries exhausted for {}", self.call.name);
                objection(text, GUARDRAIL_EXHAUSTED, used)
            }
        };
        Err(self.inside_with(error, leading.class, leading.subtype.to_string()))
    }

    fn after_outcome(
        &mut self,
        error: OutcomeError,
        ended: Option<Ended>,
    ) -> Result<(Stage, Feedback), Over> {
        let OutcomeError { error_type, error_message, retriable, .. } = &error;
        self.trace.failed(self.attempt, "outcome_policy", error_type, error_message);
        if is_of_the_inside(error_type) {
            let subtype = error_type.clone();
            return Err(self.inside_with(error, Class::Recoverable, subtype));
        }
        let class = FailureClass::of(error_type);
        if !retriable || class == FailureClass::Extrinsic {
            return Err(InternalOutcome::Error(error).into());
        }
        self.over(ended)?;
        match self.lanes.spend(Lane::Outcome) {
            Ok(()) => {
                self.trace.outcome_repair_triggered = true;
                let remaining = self.lanes.outcome.remaining;
                Ok((Stage::OutcomeRetry, Feedback::outcome(&error, class, remaining)))
            }
            Err(Spent::Off) => Err(InternalOutcome::Error(error).into()),
            Err(Spent::Exhausted) => {
                self.trace.outcome_repair_retry_exhausted = true;
                let text =
                    format!("Retriable outcome-error repairs exhausted for {}", self.call.name);
                let exhausted = OutcomeError::new(OUTCOME_EXHAUSTED, text, false)
                    .with("outcome_repair_attempts", self.lanes.outcome.used)
                    .with("last_error_type", error.error_type.clone())
                    .with("last_error_message", error.error_message);
                Err(self.inside_with(exhausted, Class::Recoverable, error.error_type))
            }
        }
    }

    fn roll_back(&mut self, stage: Stage) -> Result<(), Over> {
        match self.parts.transaction.roll_back(self.attempt) {
            Ok(restored) => self.trace.restored(restored),
            Err(error) => return Err(self.inside(ROLLBACK_FAILED, &error.0, false)),
        }
        self.reach(stage)
    }

    fn reach(&mut self, stage: Stage) -> Result<(), Over> {
        if let Err(why) = self.parts.stages.reached(self.attempt, stage) {
            return Err(self.inside(NOT_JOURNALLED, &why, false));
        }
        self.trace.reached(self.attempt, stage);
        Ok(())
    }

    /// Tells the generator with the next ask.
    fn tell(&mut self, feedback: Feedback) {
        self.trace.retry_feedback_injected = true;
        remember(&mut self.ask.corrections, &feedback);
        self.ask.feedback = Some(feedback);
    }

    fn over(&self, ended: Option<Ended>) -> Result<(), Over> {
        ended.map_or(Ok(()), |ended| Err(self.ended(ended)))
    }

    fn ended(&self, ended: Ended) -> Over {
        match ended {
            Ended::Cancelled => self.inside(CANCELLED, "the call was cancelled", false),
            Ended::Deadline => self.inside(DEADLINE, "the time of the call is over", false),
        }
    }

    fn inside(&self, error_type: &str, message: &str, retriable: bool) -> Over {
        let error = OutcomeError::new(error_type, message, retriable);
        self.inside_with(error, Class::Recoverable, error_type.to_owned())
    }

    fn inside_with(&self, error: OutcomeError, class: Class, subtype: String) -> Over {
        let lanes = Lane::ALL.iter().map(|lane| self.lanes.of(*lane).used);
        let retries = lanes.sum();
        let (guardrail_class, guardrail_subtype) = (class, subtype);
        InternalOutcome::Inside { error, guardrail_class, guardrail_subtype, retries }.into()
    }
}
