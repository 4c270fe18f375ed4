//! The commands, one module each.

pub(crate) mod allow;
pub(crate) mod attempt;
pub(crate) mod attest;
pub(crate) mod backtest;
pub(crate) mod check;
pub(crate) mod control;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod hook;
pub(crate) mod identity;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod modes;
pub(crate) mod notify;
pub(crate) mod observed_violations;
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
mod supervisor_check;
mod task_file;
pub(crate) mod tools;
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
use crate::exit::ExitKind;
use crate::terminal::{current_directory, fail, load_sessions};

/// Writes a text to a file that only the user can read, or to standard output. Returns whether a
/// file was written.
fn hand_out(text: &str, out: Option<&Path>) -> Result<bool, ExitKind> {
    let Some(out) = out else {
        // A reader that closes the pipe early is not a failure.
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        return Ok(false);
    };
    match write_private(&current_directory().join(out), text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) => {
            Err(fail(ExitKind::Usage, format!("{error}; choose another file with --out")))
        }
    }
}

/// Selects the session with a name, or the latest session of this workspace.
fn select(sessions: &Sessions<FileStore>, name: Option<&str>) -> Result<SessionEntry, ExitKind> {
    sessions.select(name, &current_directory()).map_err(|error| match error {
        SelectError::Store(StoreError::Export { .. }) => {
            fail(ExitKind::Usage, format!("{error}; create it again with `jackline export`"))
        }
        SelectError::Store(_) => fail(ExitKind::Broken, error),
        _ => fail(ExitKind::Usage, error),
    })
}

/// Runs a command for every selected session, and returns the worst exit code.
fn each_session(
    args: &SessionsArgs,
    one: impl Fn(&FileStore, &SessionEntry) -> ExitKind,
) -> ExitKind {
    let selected = load_sessions()
        .and_then(|(store, all)| select_many(&all, args).map(|entries| (store, entries)));
    match selected {
        Ok((store, entries)) => {
            entries.iter().map(|entry| one(&store, entry)).max().unwrap_or(ExitKind::Success)
        }
        Err(exit) => exit,
    }
}

/// Selects the sessions that the arguments name.
fn select_many(
    sessions: &Sessions<FileStore>,
    args: &SessionsArgs,
) -> Result<Vec<SessionEntry>, ExitKind> {
    if args.all {
        return sessions.list().map_err(|error| fail(ExitKind::Broken, error));
    }
    if args.sessions.is_empty() {
        return select(sessions, None).map(|entry| vec![entry]);
    }
    args.sessions.iter().map(|name| select(sessions, Some(name))).collect()
}
