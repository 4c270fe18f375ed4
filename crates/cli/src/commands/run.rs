//! `jackline run`: runs an agent on a task, supervised.

mod environment;
mod project_copy;
mod run_display;
mod summary;
mod unfinished_run;

use std::fmt::Display;
use std::io::IsTerminal as _;
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
use jackline_supervisor::{
    EngineKind, RUN_SESSION_PREFIX, RunError, RunEvent, RunOptions, RunRecord, RunTask,
    load_run_task,
};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use super::task_file::{ERROR_CHARS_MAX, describe_load_error};
use crate::args::RunArgs;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, fail, print_note, sanitize};

pub(crate) fn run(args: &RunArgs) -> ExitKind {
    let refused = match prepare_run(args) {
        Ok((task, opening)) => match drive_run(args, &task, opening) {
            Ok(exit) => return exit,
            Err(refused) => refused,
        },
        Err(refused) => refused,
    };
    // Programs that read `--json` get the error too.
    if args.json {
        summary::show_refused(&refused);
    }
    fail(refused.exit, refused.text)
}

/// The reason why a run has no report.
struct RunRefusal {
    exit: ExitKind,
    /// The stable word for it in `--json`.
    kind: &'static str,
    text: String,
    session: Option<String>,
}

impl RunRefusal {
    fn usage(text: impl Display) -> Self {
        Self { exit: ExitKind::Usage, kind: "usage", text: text.to_string(), session: None }
    }
}

fn drive_run(args: &RunArgs, task: &RunTask, opening: RunOptions) -> Result<ExitKind, RunRefusal> {
    let mut display = run_display::RunDisplay::new(args.json);
    let mut session = opening.resumed.as_ref().map(ToString::to_string);
    let ran = jackline_supervisor::run(task, opening, &mut |event| {
        if let RunEvent::Started { session: started, .. } = event {
            session = Some(started.clone());
        }
        display.show(event);
    });
    display.finish();
    match ran {
        Ok(report) => {
            summary::show(&report, args.json);
            let code = report.stop.as_ref().map(|stop| stop.code);
            let is_done = code == Some(StopCode::ObjectiveAchieved);
            Ok(if is_done { ExitKind::Success } else { ExitKind::No })
        }
        Err(error) => {
            let exit = match error {
                RunError::Workspace(_)
                | RunError::Definition(_)
                | RunError::NoEngine(_)
                | RunError::Model { .. }
                | RunError::Program { .. }
                | RunError::Prompt { .. }
                | RunError::SessionEnded { .. }
                | RunError::InUse(_) => ExitKind::Usage,
                RunError::Worker(_)
                | RunError::UnfinishedAttempt(_)
                | RunError::Session(_)
                | RunError::Tampered(_)
                | RunError::GuardBroken(_)
                | RunError::RecordsLost(_)
                | RunError::Conversation { .. }
                | RunError::NotSaved(_) => ExitKind::Broken,
            };
            let text = sanitize(&error.to_string(), ERROR_CHARS_MAX);
            Err(RunRefusal { exit, kind: error.kind(), text, session })
        }
    }
}

fn prepare_run(args: &RunArgs) -> Result<(RunTask, RunOptions), RunRefusal> {
    let home = state_home().map_err(RunRefusal::usage)?;
    let store = FileStore::new(home, boot_number());
    let deadline = args.deadline.as_deref().map(Timestamp::parse).transpose();
    let deadline = deadline.map_err(|error| RunRefusal::usage(format!("--deadline: {error}")))?;
    let (resumed, kept) = match &args.resume {
        Some(name) => {
            let (session, kept) = find_run(&store, name)?;
            (Some(session), kept)
        }
        None => {
            unfinished_run::note_unfinished_run(&store, &current_directory());
            (None, new_request(args)?)
        }
    };
    let task = load_task(&kept.task)?;
    let kept = match (&resumed, &task.copy, &args.workspace) {
        (None, Some(project), None) => {
            remove_finished_copies(&store, &kept.task, &task.name);
            let workspace = project_copy::copy_project(project, &task.name).map_err(|error| {
                RunRefusal::usage(format!("can't copy `{}`: {error}", project.display()))
            })?;
            print_note(format!("working on a copy in {}", workspace.display()));
            RunRecord { workspace, ..kept }
        }
        _ => kept,
    };
    let is_scripted =
        task.engine.as_ref().is_some_and(|it| matches!(it.kind, EngineKind::Script(_)));
    let engine = if is_scripted && !kept.scripted {
        environment::engine_from_environment()
    } else {
        Ok(None)
    };
    let engine = engine.map_err(RunRefusal::usage)?;
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // If this fails, a signal ends the process, and `--resume` still works.
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    let opening = RunOptions {
        store: store.clone(),
        workspace: kept.workspace.clone(),
        definition: kept.definition.clone(),
        engine,
        resumed,
        record: kept,
        deadline,
        role: args.role.clone(),
        waits_for_person: waits_for_person(args),
        program: std::env::current_exe().ok(),
        sandbox: Sandbox { path: args.sandbox.clone() },
        workers: CLIENTS.iter().filter_map(|client| client.worker).collect(),
        cancelled,
    };
    Ok((task, opening))
}

/// Removes the copies in which earlier runs of a task worked and finished, so that the task leaves
/// one copy and not one for each run.
fn remove_finished_copies(store: &FileStore, task: &Path, name: &str) {
    let runs = Sessions::new(store.clone()).list().unwrap_or_default();
    for entry in runs.into_iter().filter(|entry| entry.name.starts_with(RUN_SESSION_PREFIX)) {
        let Ok(Some(kept)) = load_request(&entry) else { continue };
        let is_of_task = kept.task == task && project_copy::is_copy(&kept.workspace, name);
        if is_of_task && unfinished_run::is_finished(store, &entry) {
            // A copy that stays costs only space.
            let _ = std::fs::remove_dir_all(&kept.workspace);
        }
    }
}

/// Whether the run waits while it needs a person. Without a terminal no person sees that it waits.
fn waits_for_person(args: &RunArgs) -> bool {
    let has_terminal = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
    args.wait || (has_terminal && !args.no_wait)
}

/// The request for a new run.
fn new_request(args: &RunArgs) -> Result<RunRecord, RunRefusal> {
    let absolute = |path: &Path, kind: &str| {
        let absolute = path.canonicalize();
        absolute
            .map_err(|error| RunRefusal::usage(format!("no {kind} `{}`: {error}", path.display())))
    };
    let task = args.task.clone().unwrap_or_default();
    let root = args.workspace.clone().unwrap_or_else(current_directory);
    Ok(RunRecord {
        task: absolute(&task, "task")?,
        workspace: absolute(&root, "directory")?,
        definition: args.definition.as_deref().map(|it| absolute(it, "definition")).transpose()?,
        defined_by: None,
        started_in: current_directory(),
        scripted: args.scripted,
    })
}

/// The run to resume, with its request.
fn find_run(store: &FileStore, name: &str) -> Result<(SessionId, RunRecord), RunRefusal> {
    let sessions = Sessions::new(store.clone());
    let (entry, kept) = if name.is_empty() {
        latest_run(store, &sessions)?
    } else {
        let entry = sessions.select(Some(name), &current_directory()).map_err(RunRefusal::usage)?;
        match load_request(&entry) {
            Ok(Some(kept)) => (entry, kept),
            Ok(None) => {
                return Err(RunRefusal::usage(format!("session `{}` is not a run", entry.name)));
            }
            Err(error) => return Err(unreadable_request(&entry, &error)),
        }
    };
    let session = SessionId::parse(entry.name).map_err(RunRefusal::usage)?;
    Ok((session, kept))
}

/// The latest unfinished run that was started here or works here; else the latest of them.
fn latest_run(
    store: &FileStore,
    sessions: &Sessions<FileStore>,
) -> Result<(SessionEntry, RunRecord), RunRefusal> {
    let list = sessions.list().map_err(|error| {
        let (text, exit) = (error.to_string(), ExitKind::Broken);
        RunRefusal { exit, kind: "store", text, session: None }
    })?;
    let directory = current_directory();
    // A run with an unreadable request may have been started here.
    let mut unreadable_run = None;
    let mut finished = None;
    for entry in list.into_iter().filter(|entry| entry.name.starts_with(RUN_SESSION_PREFIX)) {
        match load_request(&entry) {
            Ok(Some(kept)) if kept.started_in == directory || kept.workspace == directory => {
                if !unfinished_run::is_finished(store, &entry) {
                    return Ok((entry, kept));
                }
                finished = finished.or(Some((entry, kept)));
            }
            Ok(_) => {}
            Err(error) => {
                unreadable_run =
                    unreadable_run.or_else(|| Some(unreadable_request(&entry, &error)));
            }
        }
    }
    finished.ok_or_else(|| {
        unreadable_run.unwrap_or_else(|| {
            RunRefusal::usage(
                "no run was started here; name one (`jackline status --all` lists them)",
            )
        })
    })
}

/// The request of a session; `None` if it is not a run.
fn load_request(entry: &SessionEntry) -> std::io::Result<Option<RunRecord>> {
    entry.directory().map_or(Ok(None), RunRecord::load)
}

fn unreadable_request(entry: &SessionEntry, error: &std::io::Error) -> RunRefusal {
    let file = entry.directory().unwrap_or(Path::new("")).join("run.json");
    let (session, shown) = (&entry.name, file.display());
    let text = format!(
        "can't read the request of run `{session}` (`{shown}`: {error}): restore this file or start a new run; \
         `jackline log {session}` shows what the run did"
    );
    RunRefusal { exit: ExitKind::Broken, kind: "kept", text, session: Some(session.clone()) }
}

fn load_task(path: &Path) -> Result<RunTask, RunRefusal> {
    load_run_task(path).map_err(|error| RunRefusal::usage(describe_load_error(&error)))
}
