//! A person's word from the frame, as the commands of the same name say it.

use jackline_engine::{Action, SessionId, Verdict};
use jackline_journal::FileStore;

use super::super::control::{outcome, standing};
use super::super::person::{Said, objections, refusal};
use super::app::Wish;
use super::text::clean;
use crate::args::Word;

/// Does what a key wished, and says what came of it.
pub(super) fn act(store: &FileStore, wish: &Wish, by: Option<&str>) -> Result<String, String> {
    match wish {
        Wish::Control(session, action) => {
            let verdict = say(store, session, *action, None, by)?;
            let now = standing(store, session);
            let (what, next) = outcome(*action, session, &verdict, now.as_ref());
            Ok(format!("session `{}` {what}; {next}", clean(session.as_str())))
        }
        Wish::Answer(session, action, seq, call) => {
            say(store, session, *action, Some(*seq), by)?;
            Ok(match action {
                Action::Grant => format!(
                    "may pass once: {call}; it passes when the agent tries exactly this again"
                ),
                _ => format!("refused in this session: {call}"),
            })
        }
        Wish::Quit | Wish::Suspend => Ok(String::new()),
    }
}

fn say(
    store: &FileStore,
    session: &SessionId,
    action: Action,
    ask: Option<u64>,
    by: Option<&str>,
) -> Result<Verdict, String> {
    let command = if action == Action::Grant { "allow" } else { action.word() };
    // Whoever wants to hold an agent may, the agent itself included.
    if !action.closes()
        && let Some(refusal) = refusal(command)
    {
        return Err(refusal);
    }
    let word = Word { by: by.map(ToOwned::to_owned), why: None };
    let said = Said { ask, ..Said::new(session.clone(), action, &word) };
    let verdict = said.send(store.clone())?;
    if verdict.violations.is_empty() { Ok(verdict) } else { Err(objections(&verdict)) }
}
