//! Checks a program before it runs, and judges its answer.

use std::cell::RefCell;
use std::rc::Rc;

use jackline_attempt::{
    AnswerSource, ArtifactOutcome, AttemptViolation, SourceLocation, Subtype, Validator,
};
use serde_json::Value;

use crate::program_host::ProgramHost;
use crate::program_limits::ProgramLimits;
use crate::program_run::ProgramRun;
use crate::protocol::ProgramViolation;
use crate::python_program::PythonProgram;
use crate::worker_pool::{CheckError, WorkerPool};

/// Checks the programs of a host.
pub struct ProgramChecker<'h> {
    pub(crate) workers: WorkerPool,
    pub(crate) host: &'h RefCell<dyn ProgramHost + 'h>,
    pub(crate) limits: ProgramLimits,
    pub(crate) last_run: Rc<RefCell<ProgramRun>>,
}

impl Validator<PythonProgram> for ProgramChecker<'_> {
    fn validate(&mut self, program: &PythonProgram) -> Vec<AttemptViolation> {
        let (bytes, most) = (program.source.len(), self.limits.source_bytes_max);
        if bytes > most {
            let message = format!("the program has {bytes} bytes; the limit is {most}");
            return vec![AttemptViolation::new(Subtype::ProgramTooLong, message)];
        }
        let known = self.host.borrow().callables();
        match self.workers.check(&program.source, known, &self.limits) {
            Ok(objections) => objections.into_iter().map(attempt_violation).collect(),
            Err(CheckError::Worker(error)) => {
                vec![AttemptViolation::new(Subtype::DependencyUnavailable, error.to_string())]
            }
            // A program that can't be checked must not run.
            Err(CheckError::Lost(lost)) => {
                let message = format!("the program can't be checked: {lost}");
                let violation = AttemptViolation::new(Subtype::ForbiddenConstruct, message);
                vec![violation.with_correction("Write a short program that is not nested deeply.")]
            }
        }
    }

    fn judge(&mut self, _: &PythonProgram, outcome: &ArtifactOutcome) -> Vec<AttemptViolation> {
        let ran = self.last_run.borrow();
        let at: Option<SourceLocation> = ran.answered_at.map(Into::into);
        let violations = [missing_sources(&ran, outcome), internal_text_leak(&ran, outcome)];
        let located = |it: AttemptViolation| match at {
            Some(at) => it.with_location(at),
            None => it,
        };
        violations.into_iter().flatten().map(located).collect()
    }
}

/// Converts a violation of the worker into a violation of an attempt.
pub(crate) fn attempt_violation(objection: ProgramViolation) -> AttemptViolation {
    let subtype = Subtype::named(&objection.subtype).unwrap_or(Subtype::ForbiddenConstruct);
    let violation =
        AttemptViolation::new(subtype, objection.message).with_location(objection.at.into());
    match objection.correction {
        Some(correction) => violation.with_correction(correction),
        None => violation,
    }
}

/// The violation of an answer with external data that does not name its sources.
fn missing_sources(ran: &ProgramRun, outcome: &ArtifactOutcome) -> Option<AttemptViolation> {
    let ArtifactOutcome::Ok { sources, .. } = outcome else { return None };
    let from = ran.external.first()?;
    if sources.is_empty() {
        let message = format!("`{from}` returns external data, but the answer has no sources");
        return Some(AttemptViolation::new(Subtype::MissingExternalProvenance, message));
    }
    let is_complete = |source: &Value| {
        serde_json::from_value::<AnswerSource>(source.clone())
            .is_ok_and(|source| source.is_complete())
    };
    let position = sources.iter().position(|source| !is_complete(source))?;
    let message = format!(
        "sources[{position}] has no uri, fetched_at, retrieval_tool or retrieval_mode, \
         or its retrieval_mode is not live, cached or fixture"
    );
    Some(AttemptViolation::new(Subtype::MissingExternalProvenance, message))
}

/// The violation of an answer that repeats internal text.
fn internal_text_leak(ran: &ProgramRun, outcome: &ArtifactOutcome) -> Option<AttemptViolation> {
    let message = "the answer repeats internal text of a guard or of a delegate";
    let leak = || AttemptViolation::new(Subtype::InternalTextLeak, message);
    ran.internal_texts.is_repeated_in(outcome).then(leak)
}
