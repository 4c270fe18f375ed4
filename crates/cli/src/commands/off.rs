//! `jackline off`: a person turns the guard off for a limited time.
//!
//! This must work even if the guard is broken. So the guard is turned off first, and only then the
//! command tries to record it in a journal.

use std::path::PathBuf;

use jackline_engine::ControlAction;
use jackline_host::clock::boot_number;
use jackline_host::environment::user_name;
use jackline_host::off_switch::{OFF_MS_MAX, turn_guard_off};
use jackline_host::{OffPeriod, state_home};
use jackline_journal::FileStore;
use jackline_runtime::Sessions;
use jackline_runtime::definitions::find_file;

use super::person::{
    ControlRequest, check_person_args, describe_off, describe_violations, parse_duration,
    require_person,
};
use crate::args::{OffArgs, PersonArgs};
use crate::exit::ExitKind;
use crate::terminal::{current_directory, dim, fail, format_duration, print_line, print_warning};

pub(crate) fn run(args: &OffArgs) -> ExitKind {
    if let Err(exit) = require_person("off") {
        return exit;
    }
    let duration_ms = match parse_duration(&args.duration) {
        Ok(ms) if ms <= OFF_MS_MAX => ms,
        Ok(_) => {
            let max = format_duration(OFF_MS_MAX);
            return fail(
                ExitKind::Usage,
                format!("--for takes at most {max}; repeat the command later"),
            );
        }
        Err(problem) => return fail(ExitKind::Usage, problem),
    };
    if args.why.trim().is_empty() {
        return fail(ExitKind::Usage, "--why needs a reason; it is recorded in the journal");
    }
    let by = args.by.clone().unwrap_or_else(user_name);
    let word = PersonArgs { by: Some(by.clone()), why: Some(args.why.clone()) };
    if let Err(exit) = check_person_args(&word) {
        return exit;
    }
    let workspace = match select_workspace(args) {
        Ok(workspace) => workspace,
        Err(exit) => return exit,
    };
    let off = OffPeriod::starting_now(duration_ms, &by, &args.why, workspace.as_deref());
    let file = match turn_guard_off(&off) {
        Ok(file) => file,
        Err(error) => return fail(ExitKind::Broken, error),
    };
    print_line(format!("the guard is off {}", describe_off(&off)));
    print_line(dim(format!("saved as `{}`", file.display())));
    print_line(dim(
        "violations are still recorded but not enforced; `jackline on` turns the guard on again",
    ));
    if let Err(problem) = record_in_journal(&word, duration_ms) {
        print_warning(format!("the guard is off, but the journal has no record of it: {problem}"));
    }
    ExitKind::Success
}

/// The workspace in which the guard is turned off; `None` for everywhere.
fn select_workspace(args: &OffArgs) -> Result<Option<PathBuf>, ExitKind> {
    if args.everywhere {
        return Ok(None);
    }
    if args.here {
        return Ok(Some(current_directory()));
    }
    // The workspace of a session can contain the directory of the definition, or the reverse.
    let session = latest_session().and_then(|(_, session)| session);
    let session = session.map(|(_, workspace)| workspace);
    let definition =
        find_file(&current_directory()).and_then(|file| file.parent().map(PathBuf::from));
    let outermost =
        session.into_iter().chain(definition).min_by_key(|path| path.components().count());
    outermost.map(Some).ok_or_else(|| {
        fail(
            ExitKind::Usage,
            "no session has worked here, and there is no definition; go to the workspace, or pass \
             --here or --everywhere",
        )
    })
}

/// The store, and the latest session that works here, with its workspace.
fn latest_session() -> Option<(FileStore, Option<(jackline_engine::SessionId, PathBuf)>)> {
    let store = FileStore::new(state_home().ok()?, boot_number());
    let found = Sessions::new(store.clone()).select(None, &current_directory()).ok();
    let opened = found.as_ref().and_then(|found| found.opening().ok());
    let session = opened.and_then(|opened| {
        Some((opened.session.clone(), PathBuf::from(opened.place.workspace.as_ref()?)))
    });
    Some((store, session))
}

/// Records it in the latest session that works here, if there is one.
fn record_in_journal(word: &PersonArgs, duration_ms: u64) -> Result<(), String> {
    let Some((store, Some((session, _)))) = latest_session() else { return Ok(()) };
    let seconds = Some(duration_ms / 1000);
    let request =
        ControlRequest { seconds, ..ControlRequest::new(session, ControlAction::Off, word) };
    let verdict = request.send(store)?;
    if verdict.violations.is_empty() { Ok(()) } else { Err(describe_violations(&verdict)) }
}
