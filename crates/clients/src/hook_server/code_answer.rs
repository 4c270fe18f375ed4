//! Handles an approval code that a person typed into the client.

use jackline_engine::event::Control;
use jackline_engine::summary::WaitingCall;
use jackline_engine::{ControlAction, Event, SessionId, SessionSummary};
use jackline_host::environment::user_name;
use jackline_runtime::open_questions::approval_code;

use crate::typed_code::TypedCode;

/// The effect of a typed code in a session.
pub(super) enum CodeAnswer {
    /// The event that answers the question, and the text for the agent.
    Answered(Box<Event>, String),
    /// The code answers no question. The text is for the person.
    NoQuestion(String),
}

/// Handles a typed code. Codes that an agent sends in the name of its client are refused earlier.
pub(super) fn answer_typed_code(
    summary: Option<SessionSummary>,
    session: &SessionId,
    typed: &TypedCode,
) -> CodeAnswer {
    let TypedCode { code, action } = typed;
    let waiting = summary.map(|summary| summary.waiting).unwrap_or_default();
    let matches_code = |waiting: &WaitingCall| {
        let mut seqs = waiting.earlier.iter().chain([&waiting.seq]);
        seqs.any(|seq| approval_code(session, *seq) == *code)
    };
    let Some(waiting) = waiting.into_iter().find(matches_code) else {
        return CodeAnswer::NoQuestion(format!(
            "jackline: no call in this session waits for the code {code}"
        ));
    };
    if waiting.in_client && *action == ControlAction::Grant {
        return CodeAnswer::NoQuestion(format!(
            "jackline: the code {code} belongs to a question that the client asked, and that \
             question is closed; tell the agent to make the call again, and answer Yes"
        ));
    }
    let what = format!("{} `{}`", waiting.tool, waiting.does);
    let text = match action {
        ControlAction::Grant => {
            format!("A person allowed exactly this call once: {what}. Make it again.")
        }
        _ => format!("A person refused exactly this call: {what}. Find another way."),
    };
    let control = Control {
        action: *action,
        by: Some(user_name()),
        why: Some("typed at the client".to_owned()),
        ask: Some(waiting.seq),
        ..Control::default()
    };
    CodeAnswer::Answered(Box::new(Event::new(session.clone(), control)), text)
}
