//! `jackline allow`: a person lets exactly one call pass.

use jackline_clients::{CLIENTS, Client};
use jackline_engine::Action;
use jackline_runtime::asks::{AskError, Asked, find_ask};

use super::person::{Said, in_words, may_open, may_say, objections, parse_lasting};
use crate::args::{AllowArgs, Word};
use crate::exit::Exit;
use crate::terminal::{dim, duration, fail, plain, say, store};

pub(crate) fn run(args: &AllowArgs) -> Exit {
    if let Err(exit) = may_open("allow") {
        return exit;
    }
    match answer(&args.code, args.lasting.as_deref(), &args.word, Action::Grant) {
        Err(exit) => exit,
        Ok((asked, lasting_ms)) => {
            let how =
                lasting_ms.map_or_else(|| "once".to_owned(), |ms| format!("for {}", duration(ms)));
            say(format!("may pass {how}: {}", in_words(&asked.waiting)));
            if asked.ended {
                say(gone(&asked));
                say(dim("it passes once the session is back and tries exactly this again"));
            } else {
                say(dim("it passes when the agent tries exactly this again; tell it to go on"));
            }
            Exit::Fine
        }
    }
}

/// Says that the session of a question has ended, and which commands resume it.
pub(super) fn gone(asked: &Asked) -> String {
    let session = plain(asked.session.as_str(), 80);
    let of_client = |client: &&Client| {
        let words = client.resume?;
        Some(format!(", or with `{words} {session}` if it was one of {}", client.title))
    };
    let of_clients: String = CLIENTS.iter().filter_map(of_client).collect();
    format!(
        "session {session} has ended; resume it with `--session {session}` of `jackline mcp wrap` \
         or `serve`{of_clients}"
    )
}

/// Answers the question that waits under a code.
pub(super) fn answer(
    code: &str,
    lasting: Option<&str>,
    word: &Word,
    action: Action,
) -> Result<(Asked, Option<u64>), Exit> {
    let lasting_ms =
        lasting.map(parse_lasting).transpose().map_err(|problem| fail(Exit::Usage, problem))?;
    may_say(word)?;
    let store = store()?;
    let asked = find_ask(&store, code).map_err(|error| match error {
        AskError::Store(error) => fail(Exit::Broken, format!("{error}; {}", error.remedy())),
        AskError::NoCode(_) => fail(Exit::Usage, error),
        AskError::Unknown(_) => fail(Exit::No, error),
    })?;
    let said = Said {
        ask: Some(asked.waiting.seq),
        seconds: lasting_ms.map(|ms| ms / 1000),
        ..Said::new(asked.session.clone(), action, word)
    };
    let verdict = said.send(store).map_err(|problem| fail(Exit::Broken, problem))?;
    if !verdict.violations.is_empty() {
        return Err(fail(Exit::No, objections(&verdict)));
    }
    Ok((asked, lasting_ms))
}
