//! `jackline undo`: files are as they were before a session wrote them.

use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::FaultKind;
use jackline_journal::{Line, Note, SessionEntry, StoreError, parse_record};
use jackline_workspace::undo::{self, Plan, Step, UndoError, Would};
use serde_json::{Value, json};

use super::person::may_open;
use super::select;
use crate::args::UndoArgs;
use crate::exit::Exit;
use crate::terminal::{bold, dim, fail, open_journal, plain, say, say_json, sessions, warn};

/// Where the calls of a client's own tools are kept, beside the attempts.
const CALLS: &str = "calls";

/// How much of a path is shown.
const PATH_CHARS_MAX: usize = 200;

pub(crate) fn run(args: &UndoArgs) -> Exit {
    if !args.dry_run
        && let Err(exit) = may_open("undo")
    {
        return exit;
    }
    let found = match sessions().and_then(|(_, all)| select(&all, Some(&args.session))) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let workspace = match workspace(&found) {
        Ok(workspace) => workspace,
        Err(exit) => return exit,
    };
    let logs = match logs(&found, args.attempt.as_deref()) {
        Ok(logs) => logs,
        Err(exit) => return exit,
    };
    let mut report = Report { not_kept: not_noted(&found), ..Report::default() };
    for log in logs {
        if let Err(error) = report.undo(&log, args.dry_run) {
            let which = plain(&log.display().to_string(), PATH_CHARS_MAX);
            let problem = format!("what session `{}` wrote can't be undone: {error}", found.name);
            return fail(Exit::Broken, format!("{problem}; copies of what was lie in `{which}`"));
        }
    }
    if args.json {
        say_json(report.as_json(&found, workspace.as_deref(), args.dry_run));
    } else {
        report.show(&found, workspace.as_deref(), args.dry_run);
    }
    if report.is_whole() { Exit::Fine } else { Exit::No }
}

/// The workspace of a session; one that was moved holds none of the paths that are known.
fn workspace(found: &SessionEntry) -> Result<Option<PathBuf>, Exit> {
    let opened = found.opened().ok();
    let workspace = opened.and_then(|opened| opened.place.workspace.clone()).map(PathBuf::from);
    match workspace {
        Some(gone) if !gone.is_dir() => {
            let shown = plain(&gone.display().to_string(), PATH_CHARS_MAX);
            let problem = format!("the workspace `{shown}` is not there any more");
            Err(fail(
                Exit::No,
                format!("{problem}; nothing was undone. Move it back, and try again"),
            ))
        }
        workspace => Ok(workspace),
    }
}

/// The logs that a person means, the last that was written first.
fn logs(found: &SessionEntry, attempt: Option<&str>) -> Result<Vec<PathBuf>, Exit> {
    let directory = found.directory().unwrap_or(Path::new("/")).join("undo");
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("log").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    // Later attempts have greater numbers, and may rest on earlier ones.
    names.sort_by_key(|name| (name == CALLS, std::cmp::Reverse((name.len(), name.clone()))));
    if let Some(attempt) = attempt {
        let attempts: Vec<_> = names.iter().filter(|name| *name != CALLS).collect();
        if !attempts.iter().any(|name| *name == attempt) {
            let known: Vec<_> = attempts.iter().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            let name = plain(attempt, 40);
            let problem = format!("session `{}` has no attempt `{name}`; {known}", found.name);
            return Err(fail(Exit::Usage, problem));
        }
        names.retain(|name| name == attempt);
    }
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// What could not even be noted in a log, as the journal tells.
fn not_noted(found: &SessionEntry) -> Vec<String> {
    let mut reasons = Vec::new();
    let told = open_journal(found).and_then(|journal| {
        journal.for_each(|line| {
            if let Ok(Line::Event(record)) = parse_record(line) {
                reasons.extend(record.notes.iter().filter_map(|note| match note {
                    Note::Fault { kind, reason } if *kind == FaultKind::Undo => {
                        Some(reason.clone())
                    }
                    _ => None,
                }));
            }
            Ok::<(), StoreError>(())
        })
    });
    if let Err(error) = told {
        warn(format!("the journal does not say whether all was kept: {error}"));
    }
    reasons.dedup();
    reasons
}

/// What undoing came to, or would come to.
#[derive(Default)]
struct Report {
    /// With what the paths are relative to.
    steps: Vec<(PathBuf, Step)>,
    failed: Vec<(PathBuf, String)>,
    not_kept: Vec<String>,
}

impl Report {
    /// Undoes what a log tells of, unless it is only to be shown.
    fn undo(&mut self, log: &Path, dry_run: bool) -> Result<(), UndoError> {
        let Plan { root, steps, not_kept, unreadable, is_full } = undo::plan(log)?;
        let absolute = |path: &str| root.join(path);
        self.not_kept.extend(
            not_kept.iter().map(|(path, why)| format!("`{}`: {why}", absolute(path).display())),
        );
        if unreadable > 0 {
            self.not_kept.push(format!("{unreadable} lines of the log can't be read"));
        }
        if is_full {
            self.not_kept.push("the log is full: what was written later is not in it".to_owned());
        }
        if !dry_run {
            match undo::roll_back(log) {
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

    /// Whether everything is as it was.
    fn is_whole(&self) -> bool {
        let all = self.steps.iter().all(|(_, step)| is_undone(step.would));
        all && self.failed.is_empty() && self.not_kept.is_empty()
    }

    fn show(&self, found: &SessionEntry, workspace: Option<&Path>, dry_run: bool) {
        let shown = |path: &Path| plain(&inside(path, workspace), PATH_CHARS_MAX);
        if self.steps.is_empty() && self.failed.is_empty() {
            say(format!("nothing is left to undo in session `{}`", plain(&found.name, 40)));
        }
        for (path, step) in &self.steps {
            let (what, mut why) = in_words(step.would, dry_run);
            if step.is_moved && is_undone(step.would) {
                why.push_str(", as it was after somebody else's change in between");
            }
            say(format!("{} {}{}", bold(format!("{what:<15}")), shown(path), dim(why)));
            for (text, copy) in copies(step) {
                let copy = plain(&copy.display().to_string(), PATH_CHARS_MAX);
                say(dim(format!("                {text} lies in {copy}")));
            }
        }
        for (path, why) in &self.failed {
            warn(format!("`{}` is as the session left it: {}", shown(path), plain(why, 200)));
        }
        for reason in &self.not_kept {
            warn(format!("not kept, so not undone: {}", plain(reason, 300)));
        }
        if !self.steps.is_empty() {
            say(dim("what commands of the session did is not undone"));
        }
    }

    fn as_json(&self, found: &SessionEntry, workspace: Option<&Path>, dry_run: bool) -> Value {
        let of = |would: Would| {
            let these = self.steps.iter().filter(move |(_, step)| step.would == would);
            these.map(|(path, _)| inside(path, workspace)).collect::<Vec<_>>()
        };
        let moved = self.steps.iter().filter(|(_, step)| step.is_moved);
        let moved = moved
            .map(|(path, step)| json!({ "path": inside(path, workspace), "first": step.first }));
        let kept = self.steps.iter().filter(|(_, step)| !is_undone(step.would));
        let kept = kept.map(|(path, step)| {
            let why = why(step.would);
            json!({ "path": inside(path, workspace), "why": why, "copy": step.copy })
        });
        let failed = self.failed.iter();
        let failed =
            failed.map(|(path, why)| json!({ "path": inside(path, workspace), "why": why }));
        json!({
            "session": found.name,
            "workspace": workspace,
            "dry_run": dry_run,
            "put_back": of(Would::PutBack),
            "taken_away": of(Would::TakeAway),
            "changed_between": moved.collect::<Vec<_>>(),
            "left_alone": kept.collect::<Vec<_>>(),
            "failed": failed.collect::<Vec<_>>(),
            "not_kept": self.not_kept,
        })
    }
}

fn is_undone(would: Would) -> bool {
    matches!(would, Would::PutBack | Would::TakeAway)
}

/// The copies that a person may want, with what they are.
fn copies(step: &Step) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let left = step.copy.as_ref().filter(|_| !is_undone(step.would));
    let first = step.first.as_ref().map(|first| ("what it was at first", first));
    left.map(|copy| ("what it was", copy)).into_iter().chain(first)
}

/// A path as people call it.
fn inside(path: &Path, workspace: Option<&Path>) -> String {
    let inside = workspace.and_then(|workspace| path.strip_prefix(workspace).ok());
    inside.unwrap_or(path).display().to_string()
}

/// Why a path is left alone.
fn why(would: Would) -> &'static str {
    match would {
        Would::PutBack | Would::TakeAway => "",
        Would::KeepChanged => "somebody else has changed it since",
        Would::KeepGone => "somebody else has removed it since",
        Would::KeepFilled => "somebody else has put something into it",
    }
}

fn in_words(would: Would, dry_run: bool) -> (&'static str, String) {
    match (would, dry_run) {
        (Would::PutBack, false) => ("put back", String::new()),
        (Would::PutBack, true) => ("would put back", String::new()),
        (Would::TakeAway, false) => ("taken away", ", which was not there".to_owned()),
        (Would::TakeAway, true) => ("would take away", ", which was not there".to_owned()),
        (kept, _) => ("left alone", format!(": {}", why(kept))),
    }
}
