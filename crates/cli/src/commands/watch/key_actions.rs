//! Performs the action of a key, in the same way as the command of that name.

use jackline_engine::{ControlAction, SessionId, Verdict};
use jackline_journal::FileStore;

use super::super::control::{controlled_session, describe_outcome};
use super::super::person::{ControlRequest, describe_violations, person_refusal};
use super::app::KeyAction;
use super::text::clean;
use crate::args::PersonArgs;

/// Performs an action, and returns the message about its result.
pub(super) fn perform_action(
    store: &FileStore,
    wanted: &KeyAction,
    by: Option<&str>,
) -> Result<String, String> {
    match wanted {
        KeyAction::Control(session, action) => {
            let verdict = send_control(store, session, *action, None, by)?;
            let now = controlled_session(store, session);
            let (result, next) = describe_outcome(*action, session, &verdict, now.as_ref());
            Ok(format!("session `{}` {result}; {next}", clean(session.as_str())))
        }
        KeyAction::Answer(session, action, seq, call) => {
            send_control(store, session, *action, Some(*seq), by)?;
            Ok(match action {
                ControlAction::Grant => format!(
                    "allowed once: {call}; it runs when the agent tries exactly this call again"
                ),
                _ => format!("refused in this session: {call}"),
            })
        }
        KeyAction::Quit | KeyAction::Suspend => Ok(String::new()),
    }
}

fn send_control(
    store: &FileStore,
    session: &SessionId,
    action: ControlAction,
    ask: Option<u64>,
    by: Option<&str>,
) -> Result<Verdict, String> {
    let command = if action == ControlAction::Grant { "allow" } else { action.as_str() };
    // Everyone may pause or stop a session, even its agent.
    if !action.only_restricts()
        && let Some(refusal) = person_refusal(command)
    {
        return Err(refusal);
    }
    let word = PersonArgs { by: by.map(ToOwned::to_owned), why: None };
    let request = ControlRequest { ask, ..ControlRequest::new(session.clone(), action, &word) };
    let verdict = request.send(store.clone())?;
    if verdict.violations.is_empty() { Ok(verdict) } else { Err(describe_violations(&verdict)) }
}
