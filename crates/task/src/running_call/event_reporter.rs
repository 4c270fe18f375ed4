//! Sends events about validations and runs, without changing their results.

use jackline_attempt::{ArtifactFault, ArtifactOutcome, AttemptViolation, Executor, Validator};

use crate::attempt_event::AttemptEventKind;
use crate::running_call::RunningCall;

pub(super) struct EventReporter<'a, 's, 'r, T> {
    pub(super) calling: &'a RunningCall<'s, 'r>,
    pub(super) inner: T,
}

impl<T> EventReporter<'_, '_, '_, T> {
    fn report_violations(&self, violations: &[AttemptViolation]) {
        if violations.is_empty() {
            return;
        }
        let mut subtypes = self.calling.violation_counts.borrow_mut();
        for violation in violations {
            *subtypes.entry(violation.subtype.to_string()).or_default() += 1;
        }
        drop(subtypes);
        self.calling.emit(AttemptEventKind::ViolationsRaised { violations: violations.to_vec() });
    }
}

impl<A, T: Validator<A>> Validator<A> for EventReporter<'_, '_, '_, T> {
    fn validate(&mut self, artifact: &A) -> Vec<AttemptViolation> {
        let violations = self.inner.validate(artifact);
        self.report_violations(&violations);
        violations
    }

    fn judge(&mut self, artifact: &A, outcome: &ArtifactOutcome) -> Vec<AttemptViolation> {
        let violations = self.inner.judge(artifact, outcome);
        self.report_violations(&violations);
        violations
    }
}

impl<A, T: Executor<A>> Executor<A> for EventReporter<'_, '_, '_, T> {
    fn execute(&mut self, artifact: &A) -> Result<ArtifactOutcome, ArtifactFault> {
        let outcome = self.inner.execute(artifact);
        match &outcome {
            Ok(ArtifactOutcome::Ok { .. }) => {}
            Ok(ArtifactOutcome::Error(error)) => {
                self.calling.emit(AttemptEventKind::ErrorReturned {
                    error_type: error.error_type.clone(),
                    message: error.error_message.clone(),
                    retriable: error.retriable,
                });
            }
            Ok(ArtifactOutcome::Child(child)) => {
                if let Some(error) = child.error() {
                    self.calling.emit(AttemptEventKind::ErrorReturned {
                        error_type: error.error_type.clone(),
                        message: error.error_message.clone(),
                        retriable: error.retriable,
                    });
                }
            }
            Err(ArtifactFault::Refused(violations)) => self.report_violations(violations),
            Err(ArtifactFault::Failed { error_type, message }) => {
                self.calling.emit(AttemptEventKind::Failed {
                    error_type: error_type.clone(),
                    message: message.clone(),
                });
            }
        }
        outcome
    }
}
