//! Outputs that are too long for a context, or full of paths of this machine.
//!
//! Where an adapter can show something else, this says whether it does. Nothing is ever
//! lost by it: an output that could not be kept is shown as it is.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Answers, Guard, Look};
use crate::event::EventKind;
use crate::facts::OutputFact;
use crate::verdict::{Feedback, Page, Severity};

/// The name under which the guard speaks.
const PROVIDER: &str = "Output";

pub(crate) struct OutputGuard;

impl Guard for OutputGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(fact) = &look.facts.output else { return };
        if !matches!(look.event.kind, EventKind::ToolFinished(_)) {
            return;
        }
        let io = look.definition.io.output;
        let is_long = fact.bytes > u64::from(io.max_bytes);
        let relative = fact.relative && io.relative_paths;
        if is_long && fact.fault.is_some() {
            answers.feedback.push(not_kept(look, fact));
        } else if is_long || relative {
            let enforced = answers.enforces();
            let OutputFact { bytes, shown, file, .. } = fact.clone();
            answers.page = Some(Page { bytes, shown, relative, file, enforced });
        }
    }
}

fn not_kept(look: Look<'_>, fact: &OutputFact) -> Feedback {
    let why = fact.fault.as_deref().unwrap_or_default();
    let summary = format!(
        "The output has {} bytes and could not be kept in a file ({why}), so it was left as it is.",
        fact.bytes
    );
    Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Caution,
        summary,
        observations: Vec::new(),
        suggestions: Vec::from(["Ask for less at once.".to_string()]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::sync::Arc;

    use super::*;
    use crate::definition::{Definition, Mode};
    use crate::facts::{Facts, Now, OffFact};
    use crate::session::Session;
    use crate::time::Timestamp;
    use crate::verdict::{Decision, Verdict};
    use crate::wire::parse_line;

    fn told(definition: Definition, fact: OutputFact, off: bool) -> Verdict {
        let session = Session::new(Arc::new(definition), Arc::default());
        let line = r#"{"v":1,"session":"s","event":"tool_finished","call":"c","status":"ok"}"#;
        let until = Timestamp::parse("2030-01-01T00:00:00Z").unwrap();
        let off = off.then(|| OffFact { until, by: String::new(), why: String::new() });
        let now = Now::wall(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
        let facts = Facts { output: Some(fact), off, ..Facts::at(now) };
        session.decide(&parse_line(line.as_bytes(), None).unwrap(), &facts)
    }

    fn long() -> OutputFact {
        let file = Some("/s/spill/1.txt".to_string());
        OutputFact { bytes: 65_537, shown: 9, file, ..OutputFact::default() }
    }

    #[test]
    fn an_output_that_is_too_long_is_shown_as_a_page() {
        let verdict = told(Definition::default(), long(), false);
        let page = verdict.page.unwrap();
        assert_eq!((page.bytes, page.shown, page.enforced), (65_537, 9, true));
        let fits = OutputFact { bytes: 65_536, ..long() };
        assert_eq!(told(Definition::default(), fits, false).page, None);
    }

    #[test]
    fn what_only_observes_changes_nothing() {
        let observes = Definition { mode: Mode::Observe, ..Definition::default() };
        for (definition, off) in [(observes, false), (Definition::default(), true)] {
            let verdict = told(definition, long(), off);
            assert!(!verdict.page.unwrap().enforced);
            assert_ne!((verdict.decision, verdict.enforced), (Decision::Rewrite, Some(true)));
        }
    }

    #[test]
    fn what_could_not_be_kept_is_not_cut() {
        let fact = OutputFact { fault: Some("disk full".to_string()), file: None, ..long() };
        let verdict = told(Definition::default(), fact, false);
        assert_eq!(verdict.page, None);
        assert!(verdict.context.unwrap().contains("65537 bytes and could not be kept"));
    }

    #[test]
    fn paths_are_told_relative_where_the_definition_says_so() {
        let fact = OutputFact { bytes: 9, shown: 3, relative: true, ..OutputFact::default() };
        let mut plain = Definition::default();
        assert!(told(plain.clone(), fact.clone(), false).page.unwrap().relative);
        plain.io.output.relative_paths = false;
        assert_eq!(told(plain, fact, false).page, None);
    }
}
