//! Looks at a program before it runs, and at its answer.

use std::cell::RefCell;
use std::rc::Rc;

use jackline_attempt::{Location, Outcome, Source, Subtype, Validator, Violation};
use serde_json::Value;

use crate::host::Host;
use crate::limits::Limits;
use crate::program::Program;
use crate::protocol::Objection;
use crate::ran::Ran;
use crate::workers::{CheckError, Workers};

/// Shorter texts of the inside give nothing away, and are in many an answer by chance.
const TELLING_CHARS_MIN: usize = 12;

/// Looks at programs for a host.
pub struct Checker<'h> {
    pub(crate) workers: Workers,
    pub(crate) host: &'h RefCell<dyn Host + 'h>,
    pub(crate) limits: Limits,
    pub(crate) ran: Rc<RefCell<Ran>>,
}

impl Validator<Program> for Checker<'_> {
    fn validate(&mut self, program: &Program) -> Vec<Violation> {
        let (bytes, most) = (program.source.len(), self.limits.source_bytes_max);
        if bytes > most {
            let message = format!("the program has {bytes} bytes; at most {most} are read");
            return vec![Violation::new(Subtype::ProgramTooLong, message)];
        }
        let known = self.host.borrow().known();
        match self.workers.check(&program.source, known, &self.limits) {
            Ok(objections) => objections.into_iter().map(violation).collect(),
            Err(CheckError::Worker(error)) => {
                vec![Violation::new(Subtype::DependencyUnavailable, error.to_string())]
            }
            // What can't be looked at is not run.
            Err(CheckError::Lost(lost)) => {
                let message = format!("the program can't be looked at: {lost}");
                let violation = Violation::new(Subtype::ForbiddenConstruct, message);
                vec![violation.correct("Write a short program that is not nested deeply.")]
            }
        }
    }

    fn judge(&mut self, _: &Program, outcome: &Outcome) -> Vec<Violation> {
        let ran = self.ran.borrow();
        let at: Option<Location> = ran.answered_at.map(Into::into);
        let violations = [unproven(&ran, outcome), leaked(&ran, outcome)];
        let located = |it: Violation| match at {
            Some(at) => it.at(at),
            None => it,
        };
        violations.into_iter().flatten().map(located).collect()
    }
}

/// An objection of the worker, as attempts have it.
pub(crate) fn violation(objection: Objection) -> Violation {
    let subtype = Subtype::named(&objection.subtype).unwrap_or(Subtype::ForbiddenConstruct);
    let violation = Violation::new(subtype, objection.message).at(objection.at.into());
    match objection.correction {
        Some(correction) => violation.correct(correction),
        None => violation,
    }
}

/// An answer from outside that does not say from where.
fn unproven(ran: &Ran, outcome: &Outcome) -> Option<Violation> {
    let Outcome::Ok { sources, .. } = outcome else { return None };
    let from = ran.external.first()?;
    if sources.is_empty() {
        let message = format!("`{from}` answered from outside, and the answer has no sources");
        return Some(Violation::new(Subtype::MissingExternalProvenance, message));
    }
    let is_complete = |source: &Value| {
        serde_json::from_value::<Source>(source.clone()).is_ok_and(|source| source.is_complete())
    };
    let position = sources.iter().position(|source| !is_complete(source))?;
    let message = format!(
        "sources[{position}] lacks uri, fetched_at, retrieval_tool or retrieval_mode, \
         or its retrieval_mode is none of live, cached and fixture"
    );
    Some(Violation::new(Subtype::MissingExternalProvenance, message))
}

/// An answer that repeats what a delegate said of its inside. One that hands the
/// delegate's outcome on as it is has that made public, or not, at the border.
fn leaked(ran: &Ran, outcome: &Outcome) -> Option<Violation> {
    let text = match outcome {
        Outcome::Ok { value, .. } => texts(value),
        Outcome::Error(error) => error.error_message.clone(),
        Outcome::Child(_) => return None,
    };
    let telling = |inside: &&String| inside.chars().count() >= TELLING_CHARS_MIN;
    let said = ran.inside.iter().filter(telling).any(|inside| text.contains(inside.as_str()));
    let message = "the answer repeats what a delegate said of its inside";
    said.then(|| Violation::new(Subtype::InternalTextLeak, message))
}

/// All texts in a value, as they are.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let both = fields.iter().map(|(key, value)| format!("{key}\n{}", texts(value)));
            both.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
