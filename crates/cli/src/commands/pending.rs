//! `jackline pending`: lists the calls that wait for a person's approval.

use jackline_host::agent_above;
use jackline_runtime::open_questions::{OpenQuestion, list_open_questions};
use serde_json::json;

use super::person::{CODE_IS_FOR_PERSON, describe_question};
use crate::args::PendingArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, dim, fail, open_store, print_json_line, print_line, print_warning, sanitize,
};

pub(crate) fn run(args: &PendingArgs) -> ExitKind {
    let store = match open_store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let questions = match list_open_questions(&store) {
        Ok(questions) => questions,
        Err(error) => return fail(ExitKind::Broken, format!("{error}; {}", error.remedy())),
    };
    for (session, error) in &questions.unreadable {
        print_warning(format!("session `{}` can't be read: {error}", sanitize(session, 40)));
    }
    // An agent may see the waiting calls, but must not get the codes to answer them.
    let for_person = agent_above().is_none();
    let ended: &[OpenQuestion] = if args.all { &questions.of_ended_sessions } else { &[] };
    if args.json {
        questions
            .open
            .iter()
            .chain(ended)
            .for_each(|asked| print_json_line(as_json(asked, for_person)));
        return ExitKind::Success;
    }
    let more =
        if args.all { None } else { describe_ended_questions(questions.of_ended_sessions.len()) };
    if questions.open.is_empty() && ended.is_empty() {
        print_line("nothing waits for a person");
        more.into_iter().for_each(|more| print_line(dim(more)));
        return ExitKind::Success;
    }
    questions.open.iter().chain(ended).for_each(|asked| show(asked, for_person));
    more.into_iter().for_each(|more| print_line(dim(more)));
    if !for_person {
        print_line(dim(CODE_IS_FOR_PERSON));
        return ExitKind::Success;
    }
    print_line(dim(
        "`jackline allow CODE` allows the call once (`--for 10m`: for ten minutes); `jackline refuse CODE` refuses it",
    ));
    ExitKind::Success
}

/// The message about open questions of ended sessions.
pub(super) fn describe_ended_questions(count: usize) -> Option<String> {
    let questions = match count {
        0 => return None,
        1 => "1 open question of an ended session".to_owned(),
        count => format!("{count} open questions of ended sessions"),
    };
    Some(format!("{questions}: `jackline pending --all`"))
}

fn as_json(asked: &OpenQuestion, for_person: bool) -> serde_json::Value {
    json!({
        "code": for_person.then_some(&asked.code),
        "session": asked.session,
        "workspace": asked.workspace,
        "waiting": asked.waiting,
        "ended": asked.is_session_ended,
    })
}

fn show(asked: &OpenQuestion, for_person: bool) {
    let code = if for_person { asked.code.as_str() } else { "jl-…" };
    print_line(format!("{}  {}", bold(format!("{code:<9}")), describe_question(&asked.waiting)));
    let workspace = asked.workspace.as_ref().map_or_else(
        || "no workspace".to_owned(),
        |workspace| sanitize(&workspace.display().to_string(), 80),
    );
    let session = sanitize(asked.session.as_str(), 40);
    let ended = if asked.is_session_ended { ", which has ended" } else { "" };
    print_line(dim(format!("           {workspace}, session {session}{ended}")));
}
