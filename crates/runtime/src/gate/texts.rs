//! The words that every surface has in common.

use jackline_engine::Verdict;

/// What the agent is told where a person has to allow a call.
pub const WAITS_FOR_PERSON: &str = "a person was told how to let exactly this call pass; go on \
                                    with something else, or end the turn and say what waits";

/// The reason where a verdict gives none.
const REFUSED: &str = "refused by jackline";

/// Why an event is refused, in words.
pub fn reason_of(verdict: &Verdict) -> String {
    let fault = verdict.error.as_ref().map(|error| error.reason.clone());
    let stop = || verdict.stop.as_ref().map(ToString::to_string);
    verdict.context.clone().or(fault).or_else(stop).unwrap_or_else(|| REFUSED.to_owned())
}

/// What the agent is told of a call that does not run.
pub(super) fn refused(reason: &str, waits_for_person: bool) -> String {
    let waits = if waits_for_person { format!("\n-> {WAITS_FOR_PERSON}") } else { String::new() };
    format!("jackline: {reason}{waits}")
}

/// How a person answers a question.
pub(super) fn how_to_answer(code: &str) -> String {
    format!(
        "`jackline allow {code}` lets exactly this call pass once, `jackline refuse {code}` \
         refuses it"
    )
}

/// A text on one line, without what acts on a terminal.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
