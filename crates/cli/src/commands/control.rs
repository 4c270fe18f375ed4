//! `jackline pause`, `resume`, `stop` and `reset`: a person steers a session.

use jackline_engine::Action;

use super::person::{Said, may_open, objections};
use super::select;
use crate::args::ControlArgs;
use crate::exit::Exit;
use crate::terminal::{dim, fail, plain, say, sessions};

pub(crate) fn run(args: &ControlArgs, action: Action) -> Exit {
    // Whoever wants to hold an agent may, the agent itself included.
    if !action.closes()
        && let Err(exit) = may_open(action.word())
    {
        return exit;
    }
    let found =
        sessions().and_then(|(store, all)| Ok((store, select(&all, args.session.as_deref())?)));
    let (store, found) = match found {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let session = match found.opened() {
        Ok(opened) => opened.session.clone(),
        Err(error) => return fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    };
    let name = plain(session.as_str(), 60);
    match Said::new(session, action, &args.word).send(store) {
        Err(problem) => fail(Exit::Broken, problem),
        Ok(verdict) if verdict.violations.is_empty() => {
            let (what, next) = outcome(action);
            say(format!("session `{name}` {what}"));
            say(dim(next));
            Exit::Fine
        }
        Ok(verdict) => fail(Exit::No, format!("session `{name}`: {}", objections(&verdict))),
    }
}

/// What was done, and what comes next.
pub(super) fn outcome(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::Pause => (
            "is paused",
            "no call runs; your next message to the agent or `jackline resume` goes on",
        ),
        Action::Resume => ("goes on", "tell the agent to go on; it does not know by itself"),
        Action::Stop => {
            ("is stopped", "nothing more runs in it; only `jackline reset` opens it again")
        }
        _ => ("is open again", "budgets, policies and what was asked begin anew"),
    }
}
