//! `jackline attempt`: a model does a task in attempts; failed attempts are undone.

pub(super) mod attempt_display;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_attempt::PublicStatus;
use jackline_sandbox_host::Sandbox;
use jackline_task::{TaskError, TaskOptions, TaskReport, load_task};
use serde_json::json;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use super::task_file::describe_load_error;
use crate::args::AttemptArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    current_directory, fail, open_store, print_json_line, print_warning, sanitize,
};

pub(crate) fn run(args: &AttemptArgs) -> ExitKind {
    let task = match load_task(&args.task) {
        Ok(task) => task,
        Err(error) => return fail(ExitKind::Usage, describe_load_error(&error)),
    };
    let opening = match opening(args) {
        Ok(opening) => opening,
        Err(exit) => return exit,
    };
    let mut display = attempt_display::AttemptDisplay::new(args.json);
    match jackline_task::run_task(&task, opening, &mut |event| display.show(event)) {
        Ok(report) => end(args, &report),
        Err(error) => {
            let exit = match error {
                TaskError::Workspace(_) | TaskError::KeyNotSet(_) | TaskError::Definition(_) => {
                    ExitKind::Usage
                }
                TaskError::Worker(_) | TaskError::Session(_) | TaskError::UnfinishedAttempt(_) => {
                    ExitKind::Broken
                }
            };
            fail(exit, error)
        }
    }
}

fn opening(args: &AttemptArgs) -> Result<TaskOptions, ExitKind> {
    let root = args.workspace.clone().unwrap_or_else(current_directory);
    let workspace = root.canonicalize().map_err(|error| {
        fail(ExitKind::Usage, format!("can't work in `{}`: {error}", root.display()))
    })?;
    if let Some(file) = args.definition.as_ref().filter(|file| !file.is_file()) {
        let text = format!("definition `{}` not found; check the path after -d", file.display());
        return Err(fail(ExitKind::Usage, text));
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // If this fails, a signal ends the process and the next start undoes the attempt.
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    Ok(TaskOptions {
        store: open_store()?,
        workspace,
        definition: args.definition.clone(),
        sandbox: Sandbox { path: args.sandbox.clone() },
        program: std::env::current_exe().ok(),
        cancelled,
    })
}

fn end(args: &AttemptArgs, report: &TaskReport) -> ExitKind {
    for recovered in &report.recovery.done {
        let files = recovered.undone.restored.join(", ");
        let (attempt, session) = (recovered.attempt, &recovered.session);
        print_warning(format!(
            "attempt {attempt} of session `{session}` was interrupted and is now undone: {}",
            sanitize(&files, 500)
        ));
    }
    if args.json {
        let (session, outcome) = (&report.session, &report.public);
        let trace = &report.trace_file;
        print_json_line(
            json!({ "event": "ended", "session": session, "outcome": outcome, "trace": trace }),
        );
    } else {
        attempt_display::print_outcome(report);
    }
    if let Some(stuck) = &report.rollback_failure {
        return fail(
            ExitKind::Broken,
            format!("SYSTEM_ERROR{{rollback}}: {}", sanitize(stuck, 2000)),
        );
    }
    if report.public.status == PublicStatus::Ok { ExitKind::Success } else { ExitKind::No }
}
