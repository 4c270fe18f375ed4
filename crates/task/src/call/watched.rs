//! Tells what came of checks and runs, and leaves them as they are.

use jackline_attempt::{Executor, Fault, Outcome, Validator, Violation};

use crate::call::Calling;
use crate::told::What;

pub(super) struct Watched<'a, 's, 'r, T> {
    pub(super) calling: &'a Calling<'s, 'r>,
    pub(super) inner: T,
}

impl<T> Watched<'_, '_, '_, T> {
    fn objected(&self, violations: &[Violation]) {
        if violations.is_empty() {
            return;
        }
        let mut subtypes = self.calling.subtypes.borrow_mut();
        for violation in violations {
            *subtypes.entry(violation.subtype.to_string()).or_default() += 1;
        }
        drop(subtypes);
        self.calling.tell(What::Objected { violations: violations.to_vec() });
    }
}

impl<A, T: Validator<A>> Validator<A> for Watched<'_, '_, '_, T> {
    fn validate(&mut self, artifact: &A) -> Vec<Violation> {
        let violations = self.inner.validate(artifact);
        self.objected(&violations);
        violations
    }

    fn judge(&mut self, artifact: &A, outcome: &Outcome) -> Vec<Violation> {
        let violations = self.inner.judge(artifact, outcome);
        self.objected(&violations);
        violations
    }
}

impl<A, T: Executor<A>> Executor<A> for Watched<'_, '_, '_, T> {
    fn execute(&mut self, artifact: &A) -> Result<Outcome, Fault> {
        let outcome = self.inner.execute(artifact);
        match &outcome {
            Ok(Outcome::Ok { .. }) => {}
            Ok(Outcome::Error(error)) => self.calling.tell(What::Answered {
                error_type: error.error_type.clone(),
                message: error.error_message.clone(),
                retriable: error.retriable,
            }),
            Ok(Outcome::Child(child)) => {
                if let Some(error) = child.error() {
                    self.calling.tell(What::Answered {
                        error_type: error.error_type.clone(),
                        message: error.error_message.clone(),
                        retriable: error.retriable,
                    });
                }
            }
            Err(Fault::Refused(violations)) => self.objected(violations),
            Err(Fault::Failed { error_type, message }) => self
                .calling
                .tell(What::Failed { error_type: error_type.clone(), message: message.clone() }),
        }
        outcome
    }
}
