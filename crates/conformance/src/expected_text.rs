//! The text of the guards that must reach a client.

use jackline_engine::Verdict;
use jackline_engine::verdict::GuardName;

/// The text that the client must get after the decision on an event.
pub(crate) fn expected_text(verdict: &Verdict, result: bool) -> Option<String> {
    let concerns = !result
        || !verdict.feedback.is_empty()
        || verdict.violations.iter().any(|it| it.guard != GuardName::Protocol);
    verdict.context.clone().filter(|_| concerns)
}
