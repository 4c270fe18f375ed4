//! `jackline refuse`: a person refuses exactly one call.

use jackline_engine::Action;

use super::allow::{answer, gone};
use super::person::in_words;
use crate::args::RefuseArgs;
use crate::exit::Exit;
use crate::terminal::{dim, duration, say};

pub(crate) fn run(args: &RefuseArgs) -> Exit {
    match answer(&args.code, args.lasting.as_deref(), &args.word, Action::Refuse) {
        Err(exit) => exit,
        Ok((asked, lasting_ms)) => {
            let how = lasting_ms
                .map_or_else(|| "in this session".to_owned(), |ms| format!("for {}", duration(ms)));
            say(format!("refused {how}: {}", in_words(&asked.waiting)));
            if asked.ended {
                say(gone(&asked));
            }
            say(dim("the agent is told so when it tries this again; then it has a new code"));
            Exit::Fine
        }
    }
}
