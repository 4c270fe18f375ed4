//! One module a command.

pub(crate) mod allow;
pub(crate) mod attempt;
pub(crate) mod attest;
pub(crate) mod backtest;
pub(crate) mod check;
pub(crate) mod control;
pub(crate) mod doctor;
mod driven;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod hook;
pub(crate) mod identity;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod modes;
pub(crate) mod notify;
pub(crate) mod off;
pub(crate) mod on;
pub(crate) mod pending;
mod person;
pub(crate) mod refuse;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod stdio;
mod task_file;
pub(crate) mod tools;
pub(crate) mod trial;
pub(crate) mod trust;
pub(crate) mod undo;
pub(crate) mod verification;
pub(crate) mod verify;
pub(crate) mod watch;

use std::io::Write as _;
use std::path::Path;

use jackline_journal::{FileStore, SessionEntry, StoreError, write_private};
use jackline_runtime::{SelectError, Sessions};

use crate::args::SessionsArgs;
use crate::exit::Exit;
use crate::terminal::{fail, here, sessions};

/// Gives a text to the person who asked for it: in a file that nobody else may read, or on
/// standard output. Says whether there is a file.
fn hand_out(text: &str, out: Option<&Path>) -> Result<bool, Exit> {
    let Some(out) = out else {
        // Whoever reads may leave early; that is no failure.
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        return Ok(false);
    };
    match write_private(&here().join(out), text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) => Err(fail(Exit::Usage, format!("{error}; name another file after --out"))),
    }
}

/// The session a person means.
fn select(sessions: &Sessions<FileStore>, name: Option<&str>) -> Result<SessionEntry, Exit> {
    sessions.select(name, &here()).map_err(|error| match error {
        SelectError::Store(StoreError::Export { .. }) => {
            fail(Exit::Usage, format!("{error}; have it made again with `jackline export`"))
        }
        SelectError::Store(_) => fail(Exit::Broken, error),
        _ => fail(Exit::Usage, error),
    })
}

/// Does something with every session a person means; the worst outcome counts.
fn each_session(args: &SessionsArgs, one: impl Fn(&FileStore, &SessionEntry) -> Exit) -> Exit {
    let selected =
        sessions().and_then(|(store, all)| select_many(&all, args).map(|found| (store, found)));
    match selected {
        Ok((store, found)) => {
            found.iter().map(|found| one(&store, found)).max().unwrap_or(Exit::Fine)
        }
        Err(exit) => exit,
    }
}

/// The sessions a person means.
fn select_many(
    sessions: &Sessions<FileStore>,
    args: &SessionsArgs,
) -> Result<Vec<SessionEntry>, Exit> {
    if args.all {
        return sessions.list().map_err(|error| fail(Exit::Broken, error));
    }
    if args.sessions.is_empty() {
        return select(sessions, None).map(|found| vec![found]);
    }
    args.sessions.iter().map(|name| select(sessions, Some(name))).collect()
}
