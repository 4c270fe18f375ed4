//! `jackline attempt`: a model does a task in attempts.

pub(super) mod shown;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_attempt::PublicStatus;
use jackline_sandbox_host::Sandbox;
use jackline_task::{Opening, Report, TaskError, load};
use serde_json::json;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use super::task_file::load_error;
use crate::args::AttemptArgs;
use crate::exit::Exit;
use crate::terminal::{fail, here, plain, say_json, store, warn};

pub(crate) fn run(args: &AttemptArgs) -> Exit {
    let task = match load(&args.task) {
        Ok(task) => task,
        Err(error) => return fail(Exit::Usage, load_error(&error)),
    };
    let opening = match opening(args) {
        Ok(opening) => opening,
        Err(exit) => return exit,
    };
    let mut shown = shown::Shown::new(args.json);
    match jackline_task::run(&task, opening, &mut |told| shown.tell(told)) {
        Ok(report) => end(args, &report),
        Err(error) => {
            let exit = match error {
                TaskError::Workspace(_) | TaskError::NoKey(_) | TaskError::Definition(_) => {
                    Exit::Usage
                }
                TaskError::Worker(_) | TaskError::Session(_) | TaskError::Unfinished(_) => {
                    Exit::Broken
                }
            };
            fail(exit, error)
        }
    }
}

fn opening(args: &AttemptArgs) -> Result<Opening, Exit> {
    let root = args.workspace.clone().unwrap_or_else(here);
    let workspace = root.canonicalize().map_err(|error| {
        fail(Exit::Usage, format!("can't work in `{}`: {error}", root.display()))
    })?;
    if let Some(file) = args.definition.as_ref().filter(|file| !file.is_file()) {
        let text = format!("no definition `{}`; check the path after -d", file.display());
        return Err(fail(Exit::Usage, text));
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without it a signal ends the process, and the next start undoes what it left.
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    Ok(Opening {
        store: store()?,
        workspace,
        definition: args.definition.clone(),
        sandbox: Sandbox { path: args.sandbox.clone() },
        program: std::env::current_exe().ok(),
        cancelled,
    })
}

fn end(args: &AttemptArgs, report: &Report) -> Exit {
    for recovered in &report.recovery.done {
        let files = recovered.undone.restored.join(", ");
        let (attempt, session) = (recovered.attempt, &recovered.session);
        warn(format!(
            "attempt {attempt} of session `{session}` was cut off, and is undone now: {}",
            plain(&files, 500)
        ));
    }
    if args.json {
        let (session, outcome) = (&report.session, &report.public);
        let trace = &report.trace_file;
        say_json(
            json!({ "event": "ended", "session": session, "outcome": outcome, "trace": trace }),
        );
    } else {
        shown::outcome(report);
    }
    if let Some(stuck) = &report.stuck {
        return fail(Exit::Broken, format!("SYSTEM_ERROR{{rollback}}: {}", plain(stuck, 2000)));
    }
    if report.public.status == PublicStatus::Ok { Exit::Fine } else { Exit::No }
}
