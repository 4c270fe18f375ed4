//! Outputs that are too long for the context, or that contain absolute paths of this machine.
//!
//! If the adapter can replace the output, this guard decides whether it does. No output is ever
//! lost: an output that could not be saved is shown unchanged.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Guard, GuardAnswers, GuardInput};
use crate::event::EventKind;
use crate::facts::{OutputFact, PageLines};
use crate::verdict::{Feedback, Severity, ShownPage};

/// The provider name of this guard's feedback.
const PROVIDER: &str = "Output";

pub(crate) struct OutputGuard;

impl Guard for OutputGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(fact) = &input.facts.output else { return };
        if !matches!(input.event.kind, EventKind::ToolFinished(_)) {
            return;
        }
        let io = input.definition.io.output;
        let has_more_lines = |lines: PageLines| lines.next_line() < lines.first + lines.total;
        let is_long =
            fact.bytes > u64::from(io.max_bytes) || fact.lines.is_some_and(has_more_lines);
        let makes_relative = fact.relative && io.relative_paths;
        if is_long && fact.fault.is_some() {
            answers.feedback.push(unsaved_output_feedback(input, fact));
        } else if is_long || makes_relative {
            let offered = OutputFact { relative: makes_relative, ..fact.clone() };
            answers.page = Some(ShownPage::of(&offered, is_long, answers.is_enforcing()));
        }
    }
}

fn unsaved_output_feedback(input: GuardInput<'_>, fact: &OutputFact) -> Feedback {
    let why = fact.fault.as_deref().unwrap_or_default();
    let summary = format!(
        "The output has {} bytes and could not be saved to a file ({why}), so it was not \
         shortened.",
        fact.bytes
    );
    Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Caution,
        summary,
        observations: Vec::new(),
        suggestions: Vec::from(["Request less output per call.".to_string()]),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
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

    fn decide_output(definition: Definition, fact: OutputFact, off: bool) -> Verdict {
        let session = Session::new(Arc::new(definition), Arc::default());
        let line = r#"{"v":1,"session":"s","event":"tool_finished","call":"c","status":"ok"}"#;
        let until = Timestamp::parse("2030-01-01T00:00:00Z").unwrap();
        let off = off.then(|| OffFact { until, by: String::new(), why: String::new() });
        let now = Now::wall(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
        let facts = Facts { output: Some(fact), off, ..Facts::at(now) };
        session.decide(&parse_line(line.as_bytes(), None).unwrap(), &facts)
    }

    fn long_output() -> OutputFact {
        let file = Some("/s/spill/1.txt".to_string());
        OutputFact { bytes: 65_537, shown: 9, file, ..OutputFact::default() }
    }

    #[test]
    fn an_output_that_is_too_long_is_shown_as_a_page() {
        let verdict = decide_output(Definition::default(), long_output(), false);
        let page = verdict.page.unwrap();
        assert_eq!((page.bytes, page.shown, page.enforced), (65_537, 9, true));
        assert!(page.has_more);
        let fits = OutputFact { bytes: 65_536, ..long_output() };
        assert_eq!(decide_output(Definition::default(), fits, false).page, None);
    }

    #[test]
    fn a_page_says_what_it_shows_and_where_it_continues() {
        let lines = PageLines { first: 101, shown: 500, total: 900, line_offset: None };
        let fact = OutputFact { bytes: 9000, shown: 5000, lines: Some(lines), ..long_output() };
        let page = decide_output(Definition::default(), fact.clone(), false).page.unwrap();
        assert_eq!((page.lines_shown, page.lines_remaining), (Some(500), Some(400)));
        assert_eq!((page.has_more, page.next_offset), (true, Some(601)));
        assert_eq!(page.next_line_offset, None);
        let within = PageLines { line_offset: Some(12), ..lines };
        let fact = OutputFact { lines: Some(within), ..fact };
        let page = decide_output(Definition::default(), fact, false).page.unwrap();
        assert_eq!((page.next_offset, page.next_line_offset), (Some(600), Some(12)));
    }

    #[test]
    fn observe_mode_changes_nothing() {
        let observes = Definition { mode: Mode::Observe, ..Definition::default() };
        for (definition, off) in [(observes, false), (Definition::default(), true)] {
            let verdict = decide_output(definition, long_output(), off);
            assert!(!verdict.page.unwrap().enforced);
            assert_ne!((verdict.decision, verdict.enforced), (Decision::Rewrite, Some(true)));
        }
    }

    #[test]
    fn an_output_that_could_not_be_saved_is_not_shortened() {
        let fact = OutputFact { fault: Some("disk full".to_string()), file: None, ..long_output() };
        let verdict = decide_output(Definition::default(), fact, false);
        assert_eq!(verdict.page, None);
        assert!(verdict.context.unwrap().contains("65537 bytes and could not be saved"));
    }

    #[test]
    fn paths_are_made_relative_if_the_definition_says_so() {
        let fact = OutputFact { bytes: 9, shown: 3, relative: true, ..OutputFact::default() };
        let mut plain = Definition::default();
        assert!(decide_output(plain.clone(), fact.clone(), false).page.unwrap().relative);
        plain.io.output.relative_paths = false;
        assert_eq!(decide_output(plain, fact, false).page, None);
    }
}
