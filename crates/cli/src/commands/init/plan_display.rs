//! Shows a plan of `jackline init`, and its outcome as JSON.

use std::path::Path;

use anstyle::AnsiColor;
use jackline_setup::install::{
    DiffLine, FilePurpose, InstallPlan, PlannedChange, WrittenFile, diff, summarize,
};
use serde_json::{Value, json};

use super::canary::CanaryOutcome;
use super::leftovers::RemainingFiles;
use super::{InitOutcome, LINE_MAX};
use crate::terminal::{bold, dim, print_line, print_warning, sanitize, styled};

/// Prints the clients that were found, and what changes. `with_lines` shows every changed line.
pub(super) fn show(plan: &InstallPlan, with_lines: bool) {
    for found in &plan.clients {
        let version = found.version.map(|version| format!(" {version}")).unwrap_or_default();
        let place = match &found.program {
            Some(program) => dim(format!("  {}", display_path(program))),
            None => String::new(),
        };
        print_line(format!("{}{version}{place}", bold(found.client.title)));
    }
    plan.notes.iter().for_each(|note| print_line(sanitize(note, LINE_MAX)));
    let mut is_short = false;
    for change in &plan.changes {
        print_line("");
        print_line(format!("{}  {}", bold(display_path(&change.path)), dim(change_label(change))));
        match summarize(change).filter(|_| !with_lines) {
            Some(lines) => {
                is_short = true;
                lines.iter().for_each(|line| print_line(format!("  {}", sanitize(line, LINE_MAX))));
            }
            None => diff_lines(change).into_iter().for_each(print_line),
        }
    }
    if is_short {
        print_line("");
        print_line(dim("--diff shows every changed line"));
    }
    if !plan.changes.is_empty() {
        print_line("");
    }
    plan.warnings.iter().for_each(|text| print_warning(sanitize(text, LINE_MAX)));
    for why in &plan.disabled_reasons {
        print_warning(format!("THE HOOKS WILL NOT RUN: {}", sanitize(why, LINE_MAX)));
    }
}

pub(super) fn display_path(path: &Path) -> String {
    sanitize(&path.display().to_string(), LINE_MAX)
}

fn change_label(change: &PlannedChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "new file",
        (Some(_), Some(_)) => "changes",
        (Some(_), None) => "is removed",
    }
}

/// The diff of a change, line by line.
fn diff_lines(change: &PlannedChange) -> Vec<String> {
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let (green, red) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let line = |line: DiffLine| match line {
        DiffLine::Same(text) => format!("    {}", sanitize(&text, LINE_MAX)),
        DiffLine::Added(text) => styled(green, format!("  + {}", sanitize(&text, LINE_MAX))),
        DiffLine::Removed(text) => styled(red, format!("  - {}", sanitize(&text, LINE_MAX))),
        DiffLine::Gap => dim("    …"),
    };
    diff(&text(&change.before), &text(&change.after)).into_iter().map(line).collect()
}

/// Prints the files that were written.
pub(super) fn show_written(written: &[WrittenFile]) {
    for done in written {
        let verb = if done.removed { "removed" } else { "wrote" };
        let backup = done.backup.as_deref().map(|file| format!("  backup: {}", display_path(file)));
        print_line(format!(
            "{verb} {}{}",
            display_path(&done.path),
            dim(backup.unwrap_or_default())
        ));
    }
}

/// The outcome as JSON.
pub(super) fn summary(
    plan: &InstallPlan,
    end: InitOutcome,
    written: &[WrittenFile],
    canaries: &[CanaryOutcome],
    remaining: &RemainingFiles,
) -> Value {
    let clients = plan.clients.iter().map(|found| {
        json!({
            "client": found.client.id,
            "program": found.program,
            "version": found.version.map(|version| version.to_string()),
        })
    });
    let changes = plan.changes.iter().map(|change| {
        let action = match (&change.before, &change.after) {
            (None, _) => "create",
            (Some(_), Some(_)) => "change",
            (Some(_), None) => "remove",
        };
        let purpose = match change.purpose {
            FilePurpose::Settings(_) => "settings",
            FilePurpose::Servers(_) => "servers",
            FilePurpose::Exclude => "exclude",
            FilePurpose::Definition => "definition",
        };
        let done = written.iter().find(|done| done.path == change.path);
        json!({
            "path": change.path, "purpose": purpose, "action": action, "written": done.is_some(),
            "backup": done.and_then(|done| done.backup.as_ref()),
        })
    });
    let canaries = plan.clients.iter().zip(canaries).map(|(found, canary)| canary.summary(found));
    json!({
        "outcome": end.as_str(),
        "project": plan.project,
        "clients": clients.collect::<Vec<Value>>(),
        "changes": changes.collect::<Vec<Value>>(),
        "canary": canaries.collect::<Vec<Value>>(),
        "leftovers": remaining.as_json(),
        "notes": plan.notes,
        "warnings": plan.warnings,
        "silenced": plan.disabled_reasons,
        "still_guarded": plan.still_wrapped,
    })
}
