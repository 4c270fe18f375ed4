//! What somebody is told who goes on with work that another has begun.

use std::fmt::Write as _;

use jackline_engine::Summary;

/// How many of the last actions are told.
const ACTIONS_MAX: usize = 12;

/// The task, and what is known of it, for a conversation that begins in the middle.
pub(crate) fn text(prompt: &str, summary: &Summary, briefing: Option<&str>) -> String {
    let mut text = format!("{prompt}\n\n# Where the work stands\n\n");
    text.push_str("Somebody has worked on this before, and you go on. Look at the files before you change them.\n");
    if let Some(briefing) = briefing {
        text.push('\n');
        text.push_str(briefing.trim());
        text.push('\n');
        return text;
    }
    let bits = &summary.dirty_bits;
    let word = |yes: bool| if yes { "yes" } else { "no" };
    let _ = writeln!(text, "- code modified: {}", word(bits.code_modified));
    let _ = writeln!(text, "- tests run since: {}", word(bits.tests_run));
    if let Some(failure) = summary.progress.last_failure {
        let _ = writeln!(text, "- the last iteration brought nothing: {failure}");
    }
    let skipped = summary.last_actions.len().saturating_sub(ACTIONS_MAX);
    for action in summary.last_actions.iter().skip(skipped) {
        let _ = writeln!(text, "- {} `{}`: {}", action.tool, action.does, action.ended.word());
    }
    text
}

/// Asks for another plan before anything else is done.
pub(crate) fn plan(reason: &str) -> String {
    format!(
        "The one before you did not get further ({reason}). Before you call anything, write down in a few \
         lines why that was, and a plan that goes another way. Then follow it."
    )
}
