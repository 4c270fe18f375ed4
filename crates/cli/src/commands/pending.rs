//! `jackline pending`: lists the calls that wait for a person's approval.

use jackline_engine::summary::WaitingCall;
use jackline_host::check_person;
use jackline_runtime::open_questions::{OpenQuestion, OpenQuestions, list_open_questions};
use serde_json::json;

use super::person::{CODE_IS_FOR_PERSON, describe_question};
use crate::args::PendingArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, current_directory, dim, fail, open_store, print_json_line, print_line, print_warning,
    sanitize,
};

pub(crate) fn run(args: &PendingArgs) -> ExitKind {
    let store = match open_store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let directory = (!args.all).then(current_directory);
    let questions = match list_open_questions(&store, directory.as_deref()) {
        Ok(questions) => questions,
        Err(error) => return fail(ExitKind::Broken, format!("{error}; {}", error.remedy())),
    };
    for (session, error) in &questions.unreadable {
        print_warning(format!("session `{}` can't be read: {error}", sanitize(session, 40)));
    }
    // An agent may see the waiting calls, but must not get the codes to answer them.
    let for_person = check_person().is_ok();
    let more = if args.all { None } else { describe_other_questions(&questions) };
    let OpenQuestions { mut open, of_left_sessions, of_ended_sessions, .. } = questions;
    if args.all {
        open.extend(of_left_sessions.into_iter().chain(of_ended_sessions));
    }
    if args.json {
        open.iter().for_each(|asked| print_json_line(as_json(asked, for_person)));
        return ExitKind::Success;
    }
    if open.is_empty() {
        print_line(more.map_or_else(
            || "nothing waits for a person".to_owned(),
            |more| format!("no running session in this directory waits for you; {more}"),
        ));
        return ExitKind::Success;
    }
    open.iter().for_each(|asked| show(asked, for_person));
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

/// The message about the questions that only `--all` lists.
fn describe_other_questions(questions: &OpenQuestions) -> Option<String> {
    let count = |questions: &[OpenQuestion], of_one: &str, of_many: &str| match questions.len() {
        0 => None,
        1 => Some(format!("1 open question {of_one}")),
        count => Some(format!("{count} open questions {of_many}")),
    };
    let others = [
        count(&questions.elsewhere, "in another directory", "in other directories"),
        count(
            &questions.of_left_sessions,
            "of a session whose process is gone",
            "of sessions whose process is gone",
        ),
        count(&questions.of_ended_sessions, "of an ended session", "of ended sessions"),
    ];
    let others: Vec<String> = others.into_iter().flatten().collect();
    (!others.is_empty()).then(|| format!("{}: `jackline pending --all`", others.join(", ")))
}

/// The message about open questions of an ended session.
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
        "left": asked.was_session_left,
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
    let state = match asked {
        OpenQuestion { is_session_ended: true, .. } => ", which has ended",
        OpenQuestion { was_session_left: true, .. } => ", whose process is gone",
        OpenQuestion { waiting: WaitingCall { in_client: true, .. }, .. } => {
            "; the client asks you there, too"
        }
        _ => "",
    };
    print_line(dim(format!("           {workspace}, session {session}{state}")));
}
