//! `jackline refuse`: a person refuses one call.

use jackline_engine::ControlAction;

use super::allow::{answer_question, describe_ended_session};
use super::person::describe_question;
use crate::args::RefuseArgs;
use crate::exit::ExitKind;
use crate::terminal::{dim, format_duration, print_line};

pub(crate) fn run(args: &RefuseArgs) -> ExitKind {
    match answer_question(&args.code, args.duration.as_deref(), &args.person, ControlAction::Refuse)
    {
        Err(exit) => exit,
        Ok((question, duration_ms)) => {
            let scope = duration_ms.map_or_else(
                || "in this session".to_owned(),
                |ms| format!("for {}", format_duration(ms)),
            );
            print_line(format!("refused {scope}: {}", describe_question(&question.waiting)));
            if question.is_session_ended {
                print_line(describe_ended_session(&question));
            }
            print_line(dim(
                "if the agent tries this call again, it is refused and gets a new code",
            ));
            ExitKind::Success
        }
    }
}
