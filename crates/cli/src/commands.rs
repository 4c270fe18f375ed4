//! The commands, one module each.

pub(crate) mod allow;
pub(crate) mod attempt;
pub(crate) mod attest;
pub(crate) mod backtest;
pub(crate) mod check;
mod continue_session;
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
mod open_sessions;
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
mod trust_demands;
pub(crate) mod undo;
pub(crate) mod verification;
pub(crate) mod verify;
pub(crate) mod violations;
pub(crate) mod watch;

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use jackline_definition::FILE_NAME;
use jackline_engine::Definition;
use jackline_host::{LayerFiles, ensure_regular};
use jackline_journal::{FileStore, SessionEntry, StoreError, write_private};
use jackline_runtime::definitions::find_file;
use jackline_runtime::{SelectError, Sessions};

use crate::args::SessionsArgs;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, fail, load_sessions, print_line, print_raw, sanitize};

/// The definition of this directory: that of the repository, else the user's own, which applies in
/// every directory.
fn find_definition() -> Option<PathBuf> {
    find_file(&current_directory()).or_else(|| user_definition().filter(|file| file.is_file()))
}

/// Checks the file that a person named with `-d`, so that a wrong path is reported before anything
/// starts.
fn check_definition_file(named: Option<&Path>) -> Result<(), String> {
    let Some(file) = named else { return Ok(()) };
    ensure_regular(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            format!("definition `{}` not found; check the path after -d", file.display())
        }
        _ => format!("can't read the definition `{}`: {error}", file.display()),
    })
}

/// What decides where there is no definition, for commands that only try something.
const DEFAULT_DEFINITION: &str = "the preset `coding-agent`";

fn default_definition() -> Result<Definition, ExitKind> {
    jackline_definition::load(b"extends: [coding-agent]", FILE_NAME)
        .map_err(|error| fail(ExitKind::Broken, error))
}

/// Whether a file is the user's own definition.
fn is_user_definition(file: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    user_definition().and_then(|user| real(&user)).is_some_and(|user| real(file) == Some(user))
}

fn user_definition() -> Option<PathBuf> {
    LayerFiles::of_machine().user
}

/// Writes a text to a file that only the user can read, or to standard output. Returns whether a
/// file was written.
fn hand_out(text: &str, out: Option<&Path>) -> Result<bool, ExitKind> {
    let Some(out) = out else {
        print_raw(text);
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

/// Selects the session like [`select`], for commands that only show something; `None` if no name is
/// given and no session has worked here yet. That is no wrong usage.
fn select_if_any(
    sessions: &Sessions<FileStore>,
    name: Option<&str>,
) -> Result<Option<SessionEntry>, ExitKind> {
    if name.is_none()
        && let Err(SelectError::NoneHere(_)) = sessions.select(None, &current_directory())
    {
        return Ok(None);
    }
    select(sessions, name).map(Some)
}

/// Prints that no session has worked here yet, and how one begins.
fn print_no_session(sessions: &Sessions<FileStore>) {
    let elsewhere = sessions.list().is_ok_and(|all| !all.is_empty());
    let elsewhere = if elsewhere { "; `jackline status --all` lists those elsewhere" } else { "" };
    print_line(format!(
        "no session has worked here yet; one begins when an agent starts here, for example `claude` \
         after `jackline init claude`{elsewhere}"
    ));
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
            let exits = entries.iter().map(|entry| match check_has_records(entry) {
                Ok(()) => one(&store, entry),
                Err(exit) => exit,
            });
            exits.max().unwrap_or(ExitKind::Success)
        }
        Err(exit) => exit,
    }
}

/// Fails for a file that a person passed and that contains nothing: it proves nothing.
fn check_has_records(entry: &SessionEntry) -> Result<(), ExitKind> {
    let Some(file) = entry.file().filter(|_| entry.is_separate_file()) else { return Ok(()) };
    // A file that can't be read fails later, with the reason.
    let Ok(opened) = File::open(&file) else { return Ok(()) };
    let mut bytes = BufReader::new(opened).bytes();
    if bytes.any(|byte| !byte.is_ok_and(|byte| byte.is_ascii_whitespace())) {
        return Ok(());
    }
    let file = sanitize(&file.display().to_string(), 200);
    Err(fail(
        ExitKind::Usage,
        format!(
            "`{file}` has no records; pass a journal, an export of `jackline export`, or a session id"
        ),
    ))
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
