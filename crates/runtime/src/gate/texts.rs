//! Texts that all adapters share.

use jackline_engine::Verdict;

/// The text for the agent when a person must allow a call.
pub const WAITS_FOR_PERSON_TEXT: &str = "a person was notified how to allow exactly this call; continue \
                                    with something else, or end the turn and report which call waits";

/// The reason if a verdict gives none.
const DEFAULT_REASON: &str = "refused by jackline";

/// The reason for a refusal, as text.
pub fn reason_of(verdict: &Verdict) -> String {
    let fault = verdict.error.as_ref().map(|error| error.reason.clone());
    let stop = || verdict.stop.as_ref().map(ToString::to_string);
    verdict.context.clone().or(fault).or_else(stop).unwrap_or_else(|| DEFAULT_REASON.to_owned())
}

/// The text for the agent about a call that does not run.
pub(super) fn refusal_text(reason: &str, waits_for_person: bool) -> String {
    let waits =
        if waits_for_person { format!("\n-> {WAITS_FOR_PERSON_TEXT}") } else { String::new() };
    format!("jackline: {reason}{waits}")
}

/// The commands by which a person answers a question.
pub(super) fn how_to_answer(code: &str) -> String {
    format!(
        "`jackline allow {code}` allows exactly this call once, `jackline refuse {code}` \
         refuses it"
    )
}

/// Makes a text one line and removes control characters, which could affect a terminal.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
