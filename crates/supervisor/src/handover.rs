//! Texts for an engine that continues the work of another engine.

use std::fmt::Write as _;

use jackline_engine::SessionSummary;

/// How many of the last actions the text lists.
const ACTIONS_MAX: usize = 12;

/// The prompt of the task with the current state, for a new conversation in the middle of a run.
pub(crate) fn handover_prompt(
    prompt: &str,
    summary: &SessionSummary,
    briefing: Option<&str>,
) -> String {
    let mut text = format!("{prompt}\n\n# State of the work\n\n");
    text.push_str("Another agent has started this task, and you continue it. Read the files before you change them.\n");
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
        let _ = writeln!(text, "- the last iteration made no progress: {failure}");
    }
    let skipped = summary.last_actions.len().saturating_sub(ACTIONS_MAX);
    for action in summary.last_actions.iter().skip(skipped) {
        let _ = writeln!(text, "- {} `{}`: {}", action.tool, action.does, action.ended.as_str());
    }
    text
}

/// Asks the new engine for a plan before it calls anything.
pub(crate) fn plan_request(reason: &str, problem: Option<&str>) -> String {
    let problem = problem.map_or_else(String::new, |problem| format!(": {problem}"));
    format!(
        "The agent before you made no progress ({reason}){problem}. Before you call a tool, write down in a few lines why \
         that happened, and a plan that takes a different approach. Then follow your plan."
    )
}
