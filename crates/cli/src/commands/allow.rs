//! `jackline allow`: a person allows one call.

use jackline_engine::ControlAction;
use jackline_runtime::open_questions::{OpenQuestion, QuestionError, find_question};

use super::continue_session::how_to_continue;
use super::person::{
    ControlRequest, check_person_args, describe_question, describe_violations, parse_duration,
    require_person,
};
use crate::args::{AllowArgs, PersonArgs};
use crate::exit::ExitKind;
use crate::terminal::{dim, fail, format_duration, open_store, print_line, sanitize};

pub(crate) fn run(args: &AllowArgs) -> ExitKind {
    if let Err(exit) = require_person("allow") {
        return exit;
    }
    match answer_question(&args.code, args.duration.as_deref(), &args.person, ControlAction::Grant)
    {
        Err(exit) => exit,
        Ok((question, duration_ms)) => {
            let scope = duration_ms
                .map_or_else(|| "once".to_owned(), |ms| format!("for {}", format_duration(ms)));
            print_line(format!("allowed {scope}: {}", describe_question(&question.waiting)));
            if question.is_session_ended {
                print_line(describe_ended_session(&question));
                print_line(dim(
                    "the call runs when the session continues and tries exactly this call again",
                ));
            } else if question.waiting.in_client {
                print_line(dim(
                    "the client still asks about this call; answer Yes there. A No there counts, \
                     and ends this permission",
                ));
            } else {
                print_line(dim(
                    "the call runs when the agent tries exactly this call again; tell it to continue",
                ));
            }
            ExitKind::Success
        }
    }
}

/// The message that the session of a question has ended, with the command that continues it.
pub(super) fn describe_ended_session(question: &OpenQuestion) -> String {
    let session = sanitize(question.session.as_str(), 80);
    let how = how_to_continue(question.client.as_deref(), &question.session);
    format!("session {session} has ended; continue it with {how}")
}

/// Answers the question with an approval code.
pub(super) fn answer_question(
    code: &str,
    duration: Option<&str>,
    word: &PersonArgs,
    action: ControlAction,
) -> Result<(OpenQuestion, Option<u64>), ExitKind> {
    let duration_ms = duration
        .map(parse_duration)
        .transpose()
        .map_err(|problem| fail(ExitKind::Usage, problem))?;
    check_person_args(word)?;
    let store = open_store()?;
    let question = find_question(&store, code).map_err(|error| match error {
        QuestionError::Store(error) => {
            fail(ExitKind::Broken, format!("{error}; {}", error.remedy()))
        }
        QuestionError::InvalidCode(_) => fail(ExitKind::Usage, error),
        QuestionError::UnknownCode(_) => fail(ExitKind::No, error),
    })?;
    let request = ControlRequest {
        ask: Some(question.waiting.seq),
        seconds: duration_ms.map(|ms| ms / 1000),
        ..ControlRequest::new(question.session.clone(), action, word)
    };
    let verdict = request.send(store).map_err(|problem| fail(ExitKind::Broken, problem))?;
    if !verdict.violations.is_empty() {
        return Err(fail(ExitKind::No, describe_violations(&verdict)));
    }
    Ok((question, duration_ms))
}
