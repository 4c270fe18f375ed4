//! `jackline attempt`: a model does a task in attempts; failed attempts are undone.

pub(super) mod attempt_display;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_attempt::PublicStatus;
use jackline_host::clock::boot_number;
use jackline_host::state_home;
use jackline_journal::FileStore;
use jackline_sandbox_host::Sandbox;
use jackline_task::{TaskError, TaskOptions, TaskReport, load_task};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use super::check_definition_file;
use super::task_file::describe_load_error;
use crate::args::AttemptArgs;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, fail, print_warning, sanitize};

/// What the command prints on standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AttemptOutput {
    /// The events as text, then the outcome.
    Text,
    /// The events as JSON, then the outcome.
    Json,
    /// Only the public outcome.
    PublicOutcome,
}

impl AttemptOutput {
    fn of(args: &AttemptArgs) -> Self {
        match (args.public, args.json) {
            (true, _) => Self::PublicOutcome,
            (false, true) => Self::Json,
            (false, false) => Self::Text,
        }
    }
}

/// The reason why a task has no report.
struct AttemptRefusal {
    exit: ExitKind,
    /// The stable word for it in `--json`.
    kind: &'static str,
    text: String,
}

impl AttemptRefusal {
    fn usage(text: impl Display) -> Self {
        Self { exit: ExitKind::Usage, kind: "usage", text: text.to_string() }
    }
}

impl From<TaskError> for AttemptRefusal {
    fn from(error: TaskError) -> Self {
        let exit = match error {
            TaskError::Workspace(_) | TaskError::KeyNotSet(_) | TaskError::Definition(_) => {
                ExitKind::Usage
            }
            TaskError::Worker(_) | TaskError::Session(_) | TaskError::UnfinishedAttempt(_) => {
                ExitKind::Broken
            }
        };
        Self { exit, kind: error.kind(), text: error.to_string() }
    }
}

pub(crate) fn run(args: &AttemptArgs) -> ExitKind {
    let output = AttemptOutput::of(args);
    let mut display = attempt_display::AttemptDisplay::new(output);
    match run_task(args, &mut display) {
        Ok(report) => end(output, &report),
        Err(refusal) => {
            // Programs that read the outcome get the error, too.
            attempt_display::print_refusal(output, &refusal);
            fail(refusal.exit, refusal.text)
        }
    }
}

fn run_task(
    args: &AttemptArgs,
    display: &mut attempt_display::AttemptDisplay,
) -> Result<TaskReport, AttemptRefusal> {
    let task = load_task(&args.task)
        .map_err(|error| AttemptRefusal::usage(describe_load_error(&error)))?;
    let options = task_options(args)?;
    Ok(jackline_task::run_task(&task, options, &mut |event| display.show(event))?)
}

fn task_options(args: &AttemptArgs) -> Result<TaskOptions, AttemptRefusal> {
    let root = args.workspace.clone().unwrap_or_else(current_directory);
    let workspace = root.canonicalize().map_err(|error| {
        AttemptRefusal::usage(format!("can't work in `{}`: {error}", root.display()))
    })?;
    check_definition_file(args.definition.as_deref()).map_err(AttemptRefusal::usage)?;
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // If this fails, a signal ends the process and the next start undoes the attempt.
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    Ok(TaskOptions {
        store: FileStore::new(state_home().map_err(AttemptRefusal::usage)?, boot_number()),
        workspace,
        definition: args.definition.clone(),
        sandbox: Sandbox { path: args.sandbox.clone() },
        program: std::env::current_exe().ok(),
        cancelled,
    })
}

/// Why the outcome of a task says nothing about its work: a stable word, and a text for people.
fn broken_text(report: &TaskReport) -> Option<(&'static str, String)> {
    if let Some(stuck) = &report.rollback_failure {
        return Some(("rollback", format!("SYSTEM_ERROR{{rollback}}: {stuck}")));
    }
    report.broken_guard.as_ref().map(|broken| (broken.kind(), broken.to_string()))
}

fn end(output: AttemptOutput, report: &TaskReport) -> ExitKind {
    for recovered in &report.recovery.done {
        let files = recovered.undone.restored.join(", ");
        let (attempt, session) = (recovered.attempt, &recovered.session);
        print_warning(format!(
            "attempt {attempt} of session `{session}` was interrupted and is now undone: {}",
            sanitize(&files, 500)
        ));
    }
    attempt_display::print_report(output, report);
    if let Some((_, text)) = broken_text(report) {
        return fail(ExitKind::Broken, sanitize(&text, 2000));
    }
    if report.public.status == PublicStatus::Ok { ExitKind::Success } else { ExitKind::No }
}
