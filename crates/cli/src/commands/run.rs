//! `jackline run`: an agent works on its own, and is supervised.

mod claude;
mod copy;
mod environment;
mod face;
mod left;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_engine::{SessionId, StopCode, Timestamp};
use jackline_journal::FileStore;
use jackline_program::Sandbox;
use jackline_runtime::Sessions;
use jackline_supervisor::{EngineKind, Kept, LoadError, Opening, PREFIX, RunError, RunTask, load};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::terminal::{fail, here, note, plain, store};

/// How much of what is wrong with a task is shown.
const WRONG_CHARS_MAX: usize = 20_000;

pub(crate) fn run(args: &RunArgs) -> Exit {
    match begin(args) {
        Ok((task, opening)) => drive(args, &task, opening),
        Err(exit) => exit,
    }
}

fn drive(args: &RunArgs, task: &RunTask, opening: Opening) -> Exit {
    let mut face = face::Face::new(args.json);
    let ran = jackline_supervisor::run(task, opening, &mut |told| face.tell(told));
    face.end();
    match ran {
        Ok(report) => {
            summary::show(&report, args.json);
            let done = report.stop.as_ref().map(|stop| stop.code);
            if done == Some(StopCode::ObjectiveAchieved) { Exit::Fine } else { Exit::No }
        }
        Err(error) => {
            let exit = match error {
                RunError::Workspace { .. }
                | RunError::NotUtf8(_)
                | RunError::Definition(_)
                | RunError::Nobody(_)
                | RunError::Model { .. }
                | RunError::Over { .. }
                | RunError::Driven(_) => Exit::Usage,
                RunError::Worker(_)
                | RunError::Unfinished(_)
                | RunError::Session(_)
                | RunError::Tampered { .. }
                | RunError::Guard(_)
                | RunError::Kept(_) => Exit::Broken,
            };
            fail(exit, plain(&error.to_string(), WRONG_CHARS_MAX))
        }
    }
}

fn begin(args: &RunArgs) -> Result<(RunTask, Opening), Exit> {
    let store = store()?;
    let deadline = args.deadline.as_deref().map(Timestamp::parse).transpose();
    let deadline = deadline.map_err(|error| fail(Exit::Usage, format!("--deadline: {error}")))?;
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
                fail(Exit::Usage, format!("can't copy `{}`: {error}", project.display()))
            })?;
            note(format!("works on a copy, in {}", workspace.display()));
            Kept { workspace, ..kept }
        }
        _ => kept,
    };
    let plays = task.engine.as_ref().is_some_and(|it| matches!(it.kind, EngineKind::Script(_)));
    let engine = if plays && !kept.scripted { environment::engine() } else { Ok(None) };
    let engine = engine.map_err(|wrong| fail(Exit::Usage, wrong))?;
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
        claude: Some(claude::hooked(&store)),
        cancelled,
    };
    Ok((task, opening))
}

/// What a run is begun with.
fn fresh(args: &RunArgs) -> Result<Kept, Exit> {
    let absolute = |path: &Path, what: &str| {
        let found = path.canonicalize();
        found.map_err(|error| fail(Exit::Usage, format!("no {what} `{}`: {error}", path.display())))
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
fn find(store: &FileStore, name: &str) -> Result<(SessionId, Kept), Exit> {
    let sessions = Sessions::new(store.clone());
    let kept = |journal: &PathBuf| {
        let directory = journal.parent()?;
        Kept::load(directory).ok().flatten()
    };
    let found = if name.is_empty() {
        let list = sessions.list().map_err(|error| fail(Exit::Broken, error))?;
        let directory = here();
        let mut runs = list.into_iter().filter(|found| found.name.starts_with(PREFIX));
        let mine = |kept: &Kept| kept.started_in == directory || kept.workspace == directory;
        runs.find(|found| kept(&found.journal).is_some_and(|kept| mine(&kept))).ok_or_else(
            || {
                let text = "no run was started here; name one, `jackline status --all` lists them";
                fail(Exit::Usage, text)
            },
        )?
    } else {
        let found = sessions.select(Some(name), &here());
        found.map_err(|error| fail(Exit::Usage, error))?
    };
    let Some(kept) = kept(&found.journal) else {
        return Err(fail(Exit::Usage, format!("session `{}` is no run", found.name)));
    };
    let session = SessionId::parse(found.name).map_err(|error| fail(Exit::Usage, error))?;
    Ok((session, kept))
}

fn read(path: &Path) -> Result<RunTask, Exit> {
    load(path).map_err(|error| match error {
        error @ LoadError::Read { .. } => fail(Exit::Usage, error),
        wrong @ LoadError::Wrong(_) => {
            let lines: Vec<String> =
                wrong.to_string().lines().map(|line| plain(line, WRONG_CHARS_MAX)).collect();
            fail(Exit::Usage, format!("the task is wrong\n{}", lines.join("\n")))
        }
    })
}
