//! `jackline undo`: restores files to their contents before a session changed them.

use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::FaultKind;
use jackline_journal::{JournalLine, JournalNote, SessionEntry, StoreError, parse_record};
use jackline_workspace::undo::{self, UndoEffect, UndoError, UndoPlan, UndoStep};
use serde_json::{Value, json};

use super::person::require_person;
use super::select;
use crate::args::UndoArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, dim, fail, load_sessions, open_journal, print_json_line, print_line, print_warning,
    sanitize,
};

/// The name of the undo log for calls of a client's own tools, next to the logs of attempts.
const CALLS_LOG_NAME: &str = "calls";

/// The maximum length of a shown path.
const PATH_CHARS_MAX: usize = 200;

pub(crate) fn run(args: &UndoArgs) -> ExitKind {
    if !args.dry_run
        && let Err(exit) = require_person("undo")
    {
        return exit;
    }
    let entry = match load_sessions().and_then(|(_, all)| select(&all, args.session.as_deref())) {
        Ok(entry) => entry,
        Err(exit) => return exit,
    };
    let workspace = match workspace(&entry) {
        Ok(workspace) => workspace,
        Err(exit) => return exit,
    };
    let logs = match logs(&entry, args.attempt.as_deref()) {
        Ok(logs) => logs,
        Err(exit) => return exit,
    };
    let mut report = UndoSummary { unsaved: unlogged_files(&entry), ..UndoSummary::default() };
    for log in logs {
        if let Err(error) = report.undo(&log, args.dry_run) {
            let which = sanitize(&log.display().to_string(), PATH_CHARS_MAX);
            let problem = format!("can't undo the changes of session `{}`: {error}", entry.name);
            return fail(
                ExitKind::Broken,
                format!("{problem}; the earlier contents are in `{which}`"),
            );
        }
    }
    if args.json {
        print_json_line(report.as_json(&entry, workspace.as_deref(), args.dry_run));
    } else {
        report.show(&entry, workspace.as_deref(), args.dry_run);
    }
    if report.is_whole() { ExitKind::Success } else { ExitKind::No }
}

/// The workspace of a session. If it was moved, the recorded paths no longer exist.
fn workspace(entry: &SessionEntry) -> Result<Option<PathBuf>, ExitKind> {
    let opened = entry.opening().ok();
    let workspace = opened.and_then(|opened| opened.place.workspace.clone()).map(PathBuf::from);
    match workspace {
        Some(gone) if !gone.is_dir() => {
            let shown = sanitize(&gone.display().to_string(), PATH_CHARS_MAX);
            let problem = format!("the workspace `{shown}` no longer exists");
            Err(fail(
                ExitKind::No,
                format!("{problem}; nothing was undone; move it back and try again"),
            ))
        }
        workspace => Ok(workspace),
    }
}

/// The undo logs that the arguments select, the latest first.
fn logs(entry: &SessionEntry, attempt: Option<&str>) -> Result<Vec<PathBuf>, ExitKind> {
    let directory = entry.directory().unwrap_or(Path::new("/")).join("undo");
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|log| log.path().join("log").is_file())
        .filter_map(|log| log.file_name().into_string().ok())
        .collect();
    // Later attempts have greater numbers and can depend on earlier attempts.
    names.sort_by_key(|name| {
        (name == CALLS_LOG_NAME, std::cmp::Reverse((name.len(), name.clone())))
    });
    if let Some(attempt) = attempt {
        let attempts: Vec<_> = names.iter().filter(|name| *name != CALLS_LOG_NAME).collect();
        if !attempts.iter().any(|name| *name == attempt) {
            let known: Vec<_> = attempts.iter().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() {
                "it has no attempts".to_owned()
            } else {
                format!("its attempts: {}", known.join(", "))
            };
            let name = sanitize(attempt, 40);
            let problem = format!("session `{}` has no attempt `{name}`; {known}", entry.name);
            return Err(fail(ExitKind::Usage, problem));
        }
        names.retain(|name| name == attempt);
    }
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// The changes that could not be recorded in an undo log, according to the journal.
fn unlogged_files(entry: &SessionEntry) -> Vec<String> {
    let mut reasons = Vec::new();
    let read = open_journal(entry).and_then(|journal| {
        journal.for_each(|line| {
            if let Ok(JournalLine::Event(record)) = parse_record(line) {
                reasons.extend(record.notes.iter().filter_map(|note| match note {
                    JournalNote::Fault { kind, reason } if *kind == FaultKind::Undo => {
                        Some(reason.clone())
                    }
                    _ => None,
                }));
            }
            Ok::<(), StoreError>(())
        })
    });
    if let Err(error) = read {
        print_warning(format!(
            "can't read from the journal whether all changes were saved: {error}"
        ));
    }
    reasons.dedup();
    reasons
}

/// The result of undoing, or what it would be.
#[derive(Default)]
struct UndoSummary {
    /// The steps, each with its absolute path.
    steps: Vec<(PathBuf, UndoStep)>,
    failed: Vec<(PathBuf, String)>,
    unsaved: Vec<String>,
}

impl UndoSummary {
    /// Undoes the changes in a log, unless this is a dry run.
    fn undo(&mut self, log: &Path, dry_run: bool) -> Result<(), UndoError> {
        let UndoPlan { root, steps, not_kept, unreadable, is_full } = undo::plan_undo(log)?;
        let absolute = |path: &str| root.join(path);
        self.unsaved.extend(
            not_kept.iter().map(|(path, why)| format!("`{}`: {why}", absolute(path).display())),
        );
        if unreadable > 0 {
            self.unsaved.push(format!("{unreadable} lines of the undo log can't be read"));
        }
        if is_full {
            self.unsaved.push("the undo log is full: later changes are not in it".to_owned());
        }
        if !dry_run {
            match undo::undo_for_person(log) {
                Ok(_) => {}
                Err(UndoError::Unfinished(undone)) => {
                    let failed = undone.failed.iter();
                    self.failed.extend(failed.map(|(path, why)| (absolute(path), why.clone())));
                }
                Err(error) => return Err(error),
            }
        }
        self.steps.extend(steps.into_iter().map(|step| (absolute(&step.path), step)));
        let failed = &self.failed;
        self.steps.retain(|(path, _)| !failed.iter().any(|(failed, _)| failed == path));
        Ok(())
    }

    /// Whether every change was undone.
    fn is_whole(&self) -> bool {
        let all = self.steps.iter().all(|(_, step)| is_undone(step.effect));
        all && self.failed.is_empty() && self.unsaved.is_empty()
    }

    fn show(&self, entry: &SessionEntry, workspace: Option<&Path>, dry_run: bool) {
        let shown = |path: &Path| sanitize(&relative_to_workspace(path, workspace), PATH_CHARS_MAX);
        if self.steps.is_empty() && self.failed.is_empty() {
            print_line(format!("nothing to undo in session `{}`", sanitize(&entry.name, 40)));
        }
        for (path, step) in &self.steps {
            let (what, mut why) = describe_effect(step.effect, dry_run);
            if step.is_changed_between && is_undone(step.effect) {
                why.push_str(", with a change that someone else made in between");
            }
            print_line(format!("{} {}{}", bold(format!("{what:<15}")), shown(path), dim(why)));
            for (text, copy) in useful_copies(step) {
                let copy = sanitize(&copy.display().to_string(), PATH_CHARS_MAX);
                print_line(dim(format!("                {text} is in {copy}")));
            }
        }
        for (path, why) in &self.failed {
            print_warning(format!("`{}` was not restored: {}", shown(path), sanitize(why, 200)));
        }
        for reason in &self.unsaved {
            print_warning(format!("not saved, so not undone: {}", sanitize(reason, 300)));
        }
        if !self.steps.is_empty() {
            print_line(dim("changes made by commands of the session are not undone"));
        }
    }

    fn as_json(&self, entry: &SessionEntry, workspace: Option<&Path>, dry_run: bool) -> Value {
        let of = |would: UndoEffect| {
            let these = self.steps.iter().filter(move |(_, step)| step.effect == would);
            these.map(|(path, _)| relative_to_workspace(path, workspace)).collect::<Vec<_>>()
        };
        let moved = self.steps.iter().filter(|(_, step)| step.is_changed_between);
        let moved = moved
            .map(|(path, step)| json!({ "path": relative_to_workspace(path, workspace), "first": step.first_copy }));
        let kept = self.steps.iter().filter(|(_, step)| !is_undone(step.effect));
        let kept = kept.map(|(path, step)| {
            let why = reason_left_alone(step.effect);
            json!({ "path": relative_to_workspace(path, workspace), "why": why, "copy": step.copy })
        });
        let failed = self.failed.iter();
        let failed = failed.map(
            |(path, why)| json!({ "path": relative_to_workspace(path, workspace), "why": why }),
        );
        json!({
            "session": entry.name,
            "workspace": workspace,
            "dry_run": dry_run,
            "put_back": of(UndoEffect::Restore),
            "taken_away": of(UndoEffect::Remove),
            "changed_between": moved.collect::<Vec<_>>(),
            "left_alone": kept.collect::<Vec<_>>(),
            "failed": failed.collect::<Vec<_>>(),
            "not_kept": self.unsaved,
        })
    }
}

fn is_undone(would: UndoEffect) -> bool {
    matches!(would, UndoEffect::Restore | UndoEffect::Remove)
}

/// The copies that a person may need, with their descriptions.
fn useful_copies(step: &UndoStep) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let earlier = step.copy.as_ref().filter(|_| !is_undone(step.effect));
    let first = step.first_copy.as_ref().map(|first| ("the original version", first));
    earlier.map(|copy| ("the earlier version", copy)).into_iter().chain(first)
}

/// A path relative to the workspace, if it is in the workspace.
fn relative_to_workspace(path: &Path, workspace: Option<&Path>) -> String {
    let inside = workspace.and_then(|workspace| path.strip_prefix(workspace).ok());
    inside.unwrap_or(path).display().to_string()
}

/// The reason why a file is left alone.
fn reason_left_alone(would: UndoEffect) -> &'static str {
    match would {
        UndoEffect::Restore | UndoEffect::Remove => "",
        UndoEffect::LeaveChanged => "someone else has changed it since",
        UndoEffect::LeaveRemoved => "someone else has removed it since",
        UndoEffect::LeaveFilled => "someone else has added files to it",
    }
}

fn describe_effect(would: UndoEffect, dry_run: bool) -> (&'static str, String) {
    match (would, dry_run) {
        (UndoEffect::Restore, false) => ("restored", String::new()),
        (UndoEffect::Restore, true) => ("would restore", String::new()),
        (UndoEffect::Remove, false) => ("removed", ", which did not exist before".to_owned()),
        (UndoEffect::Remove, true) => ("would remove", ", which did not exist before".to_owned()),
        (kept, _) => ("left alone", format!(": {}", reason_left_alone(kept))),
    }
}
