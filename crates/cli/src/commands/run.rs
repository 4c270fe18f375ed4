//! `jackline run`: an agent works on its own, and is supervised.

mod copy;
mod environment;
mod face;
mod left;
mod summary;

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_clients::CLIENTS;
use jackline_engine::{SessionId, StopCode, Timestamp};
use jackline_host::clock::boot_number;
use jackline_host::state_home;
use jackline_journal::{FileStore, SessionEntry};
use jackline_runtime::Sessions;
use jackline_sandbox_host::Sandbox;
use jackline_supervisor::{EngineKind, Kept, Opening, PREFIX, RunError, RunTask, Told, load};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use super::task_file::{WRONG_CHARS_MAX, load_error};
use crate::args::RunArgs;
use crate::exit::Exit;
use crate::terminal::{fail, here, note, plain};

pub(crate) fn run(args: &RunArgs) -> Exit {
    let refused = match begin(args) {
        Ok((task, opening)) => match drive(args, &task, opening) {
            Ok(exit) => return exit,
            Err(refused) => refused,
        },
        Err(refused) => refused,
    };
    // Whoever reads lines is told as well as whoever reads words.
    if args.json {
        summary::show_refused(&refused);
    }
    fail(refused.exit, refused.text)
}

/// Why there is nothing to report.
struct Refused {
    exit: Exit,
    /// A stable word for it.
    kind: &'static str,
    text: String,
    session: Option<String>,
}

impl Refused {
    fn usage(text: impl Display) -> Self {
        Self { exit: Exit::Usage, kind: "usage", text: text.to_string(), session: None }
    }
}

fn drive(args: &RunArgs, task: &RunTask, opening: Opening) -> Result<Exit, Refused> {
    let mut face = face::Face::new(args.json);
    let mut session = opening.resumed.as_ref().map(ToString::to_string);
    let ran = jackline_supervisor::run(task, opening, &mut |told| {
        if let Told::Started { session: begun, .. } = told {
            session = Some(begun.clone());
        }
        face.tell(told);
    });
    face.end();
    match ran {
        Ok(report) => {
            summary::show(&report, args.json);
            let done = report.stop.as_ref().map(|stop| stop.code);
            let is_done = done == Some(StopCode::ObjectiveAchieved);
            Ok(if is_done { Exit::Fine } else { Exit::No })
        }
        Err(error) => {
            let exit = match error {
                RunError::Workspace(_)
                | RunError::Definition(_)
                | RunError::Nobody(_)
                | RunError::Model { .. }
                | RunError::Program { .. }
                | RunError::Prompt { .. }
                | RunError::Over { .. }
                | RunError::Driven(_) => Exit::Usage,
                RunError::Worker(_)
                | RunError::Unfinished(_)
                | RunError::Session(_)
                | RunError::Tampered { .. }
                | RunError::Guard(_)
                | RunError::Lost(_)
                | RunError::Conversation { .. }
                | RunError::Kept(_) => Exit::Broken,
            };
            let text = plain(&error.to_string(), WRONG_CHARS_MAX);
            Err(Refused { exit, kind: error.kind(), text, session })
        }
    }
}

fn begin(args: &RunArgs) -> Result<(RunTask, Opening), Refused> {
    let home = state_home().map_err(Refused::usage)?;
    let store = FileStore::new(home, boot_number());
    let deadline = args.deadline.as_deref().map(Timestamp::parse).transpose();
    let deadline = deadline.map_err(|error| Refused::usage(format!("--deadline: {error}")))?;
    let (resumed, kept) = match &args.resume {
        Some(name) => {
            let (session, kept) = find(&store, name)?;
            (Some(session), kept)
        }
        None => {
            left::say_left(&store, &here());
            (None, fresh(args)?)
        }
    };
    let task = read(&kept.task)?;
    let kept = match (&resumed, &task.copy, &args.workspace) {
        (None, Some(project), None) => {
            let workspace = copy::of(project, &task.name).map_err(|error| {
                Refused::usage(format!("can't copy `{}`: {error}", project.display()))
            })?;
            note(format!("works on a copy, in {}", workspace.display()));
            Kept { workspace, ..kept }
        }
        _ => kept,
    };
    let plays = task.engine.as_ref().is_some_and(|it| matches!(it.kind, EngineKind::Script(_)));
    let engine = if plays && !kept.scripted { environment::engine() } else { Ok(None) };
    let engine = engine.map_err(Refused::usage)?;
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without it a signal ends the process, and `--resume` goes on all the same.
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    let opening = Opening {
        store: store.clone(),
        workspace: kept.workspace.clone(),
        definition: kept.definition.clone(),
        engine,
        resumed,
        kept,
        deadline,
        role: args.role.clone(),
        waits: !args.no_wait,
        program: std::env::current_exe().ok(),
        sandbox: Sandbox { path: args.sandbox.clone() },
        workers: CLIENTS.iter().filter_map(|client| client.worker).collect(),
        cancelled,
    };
    Ok((task, opening))
}

/// What a run is begun with.
fn fresh(args: &RunArgs) -> Result<Kept, Refused> {
    let absolute = |path: &Path, what: &str| {
        let found = path.canonicalize();
        found.map_err(|error| Refused::usage(format!("no {what} `{}`: {error}", path.display())))
    };
    let task = args.task.clone().unwrap_or_default();
    let root = args.workspace.clone().unwrap_or_else(here);
    Ok(Kept {
        task: absolute(&task, "task")?,
        workspace: absolute(&root, "directory")?,
        definition: args.definition.as_deref().map(|it| absolute(it, "definition")).transpose()?,
        defined_by: None,
        started_in: here(),
        scripted: args.scripted,
    })
}

/// The run that goes on.
fn find(store: &FileStore, name: &str) -> Result<(SessionId, Kept), Refused> {
    let sessions = Sessions::new(store.clone());
    let (found, kept) = if name.is_empty() {
        latest(store, &sessions)?
    } else {
        let found = sessions.select(Some(name), &here()).map_err(Refused::usage)?;
        match kept(&found) {
            Ok(Some(kept)) => (found, kept),
            Ok(None) => {
                return Err(Refused::usage(format!("session `{}` is no run", found.name)));
            }
            Err(error) => return Err(unreadable(&found, &error)),
        }
    };
    let session = SessionId::parse(found.name).map_err(Refused::usage)?;
    Ok((session, kept))
}

/// The latest run that was started here, or works here, and is not over; else the latest.
fn latest(
    store: &FileStore,
    sessions: &Sessions<FileStore>,
) -> Result<(SessionEntry, Kept), Refused> {
    let list = sessions.list().map_err(|error| {
        let (text, exit) = (error.to_string(), Exit::Broken);
        Refused { exit, kind: "store", text, session: None }
    })?;
    let directory = here();
    // Where one of these was started nobody knows; it may have been here.
    let mut lost = None;
    let mut over = None;
    for found in list.into_iter().filter(|found| found.name.starts_with(PREFIX)) {
        match kept(&found) {
            Ok(Some(kept)) if kept.started_in == directory || kept.workspace == directory => {
                if !left::is_over(store, &found) {
                    return Ok((found, kept));
                }
                over = over.or(Some((found, kept)));
            }
            Ok(_) => {}
            Err(error) => lost = lost.or_else(|| Some(unreadable(&found, &error))),
        }
    }
    over.ok_or_else(|| {
        lost.unwrap_or_else(|| {
            Refused::usage("no run was started here; name one, `jackline status --all` lists them")
        })
    })
}

/// What a session was begun with, where it is a run.
fn kept(found: &SessionEntry) -> std::io::Result<Option<Kept>> {
    found.directory().map_or(Ok(None), Kept::load)
}

fn unreadable(found: &SessionEntry, error: &std::io::Error) -> Refused {
    let file = found.directory().unwrap_or(Path::new("")).join("run.json");
    let (session, shown) = (&found.name, file.display());
    let text = format!(
        "what run `{session}` was begun with can't be read (`{shown}`: {error}): give that file back, or begin a \
         new run; `jackline log {session}` shows what it did"
    );
    Refused { exit: Exit::Broken, kind: "kept", text, session: Some(session.clone()) }
}

fn read(path: &Path) -> Result<RunTask, Refused> {
    load(path).map_err(|error| Refused::usage(load_error(&error)))
}
