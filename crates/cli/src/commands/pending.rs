//! `jackline pending`: what waits for a person.

use jackline_host::agent_above;
use jackline_runtime::asks::{Asked, pending};
use serde_json::json;

use super::person::{FOR_PERSON, in_words};
use crate::args::PendingArgs;
use crate::exit::Exit;
use crate::terminal::{bold, dim, fail, plain, say, say_json, store, warn};

pub(crate) fn run(args: &PendingArgs) -> Exit {
    let store = match store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let asking = match pending(&store) {
        Ok(asking) => asking,
        Err(error) => return fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    };
    for (session, error) in &asking.unreadable {
        warn(format!("session `{}` can't be looked at: {error}", plain(session, 40)));
    }
    // An agent may know what waits, and can't be the one who answers.
    let for_person = agent_above().is_none();
    let left: &[Asked] = if args.all { &asking.left } else { &[] };
    if args.json {
        asking.asked.iter().chain(left).for_each(|asked| say_json(as_json(asked, for_person)));
        return Exit::Fine;
    }
    let more = if args.all { None } else { left_behind(asking.left.len()) };
    if asking.asked.is_empty() && left.is_empty() {
        say("nothing waits for a person");
        more.into_iter().for_each(|more| say(dim(more)));
        return Exit::Fine;
    }
    asking.asked.iter().chain(left).for_each(|asked| show(asked, for_person));
    more.into_iter().for_each(|more| say(dim(more)));
    if !for_person {
        say(dim(FOR_PERSON));
        return Exit::Fine;
    }
    say(dim(
        "`jackline allow CODE` lets exactly that call pass once, `--for 10m` for a while; `jackline refuse CODE` does not",
    ));
    Exit::Fine
}

/// That there are questions of sessions that have ended.
pub(super) fn left_behind(count: usize) -> Option<String> {
    let what = match count {
        0 => return None,
        1 => "1 question of a session that has ended is".to_owned(),
        count => format!("{count} questions of sessions that have ended are"),
    };
    Some(format!("{what} left: `jackline pending --all`"))
}

fn as_json(asked: &Asked, for_person: bool) -> serde_json::Value {
    json!({
        "code": for_person.then_some(&asked.code),
        "session": asked.session,
        "workspace": asked.workspace,
        "waiting": asked.waiting,
        "ended": asked.ended,
    })
}

fn show(asked: &Asked, for_person: bool) {
    let code = if for_person { asked.code.as_str() } else { "jl-…" };
    say(format!("{}  {}", bold(format!("{code:<9}")), in_words(&asked.waiting)));
    let place = asked.workspace.as_ref().map_or_else(
        || "no workspace".to_owned(),
        |workspace| plain(&workspace.display().to_string(), 80),
    );
    let session = plain(asked.session.as_str(), 40);
    let standing = if asked.ended { ", which has ended" } else { "" };
    say(dim(format!("           {place}, session {session}{standing}")));
}
