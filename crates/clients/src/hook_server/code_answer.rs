//! What an approval code that a person typed does in a session.

use jackline_engine::event::Control;
use jackline_engine::summary::Waiting;
use jackline_engine::{Action, Event, SessionId, Summary};
use jackline_host::environment::person;
use jackline_runtime::asks::ask_code;

use crate::typed_code::TypedCode;

/// What a typed code means in a session.
pub(super) enum CodeAnswer {
    /// The event that answers the question, and the text for the agent.
    Control(Box<Event>, String),
    /// It answers no question: the text for the person.
    Unknown(String),
}

/// The answer that a code gives. What an agent sends in its client's name is
/// refused before it gets here.
pub(super) fn answer(
    summary: Option<Summary>,
    session: &SessionId,
    typed: &TypedCode,
) -> CodeAnswer {
    let TypedCode { code, action } = typed;
    let waiting = summary.map(|summary| summary.waiting).unwrap_or_default();
    let asked = |waiting: &Waiting| {
        let mut seqs = waiting.earlier.iter().chain([&waiting.seq]);
        seqs.any(|seq| ask_code(session, *seq) == *code)
    };
    let Some(waiting) = waiting.into_iter().find(asked) else {
        return CodeAnswer::Unknown(format!(
            "jackline: nothing waits under {code} in this session"
        ));
    };
    let what = format!("{} `{}`", waiting.tool, waiting.does);
    let told = match action {
        Action::Grant => {
            format!("A person lets exactly this call pass once: {what}. Make it again.")
        }
        _ => format!("A person refused exactly this call: {what}. Find another way."),
    };
    let control = Control {
        action: *action,
        by: Some(person()),
        why: Some("typed at the client".to_owned()),
        ask: Some(waiting.seq),
        ..Control::default()
    };
    CodeAnswer::Control(Box::new(Event::new(session.clone(), control)), told)
}
