//! `read_before_write`: an existing file must be read before it is overwritten.
//!
//! An overwrite needs a read of the whole current file, an edit in place a read of any part. What
//! the agent wrote itself counts as read. A file that changed otherwise must be read again.

mod shown_part;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, ExitEvidence, ReadExtent, ShellWord};

use self::shown_part::{cutting_page, limit_to_page, limit_to_shown};
use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::{CompletionRequirement, Definition, PolicyRule};
use crate::event::{CallStatus, EventKind, ShownLines, ToolFinished};
use crate::facts::{FileDetails, FileFact, FileKind, Queries, Query};
use crate::id::ActorId;
use crate::proposal::{FileTouch, Proposal};
use crate::session_location::PathTarget;
use crate::state::{
    CallFile, ChangeCertainty, FileAccess, FileKnowledge, FilePart, InFlightCall, SessionState,
};
use crate::tool::{PAGE_TURN_TOOL, ToolKind};
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

pub(crate) struct ReadBeforeWriteGuard;

impl Guard for ReadBeforeWriteGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        if !needs_read_records(input.definition) {
            return;
        }
        if let Some(proposal) = input.proposal {
            if strictest_policy(input.definition, proposal).is_some() {
                for touch in &proposal.touches {
                    ask_target(input, proposal, touch, queries);
                }
            }
            if may_change(proposal) {
                ask_changed(input, queries);
            }
        }
        if let EventKind::ToolFinished(ToolFinished { seen, .. }) = &input.event.kind
            && let Some(call) = input.state.in_flight.find(input.call_key())
        {
            let shown = seen.iter().map(|seen| input.place.resolve_path(&seen.path, "."));
            let is_search = |noted: &&CallFile| matches!(noted.access, FileAccess::Searched { .. });
            let files = call.files.iter().filter(|noted| !is_search(noted));
            for path in files.map(|noted| noted.path.clone()).chain(shown) {
                ask_contents(input, path, queries);
            }
            if call.changes != ChangeCertainty::Nothing {
                ask_changed(input, queries);
            }
        }
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(proposal) = input.proposal else { return };
        let Some(deletes) = strictest_policy(input.definition, proposal) else { return };
        let is_write = matches!(proposal.tool.kind, ToolKind::Write | ToolKind::Edit)
            || (proposal.tool.kind == ToolKind::Delete && deletes);
        if is_write && !proposal.touches.iter().any(FileTouch::changes) {
            let name = proposal.tool.name;
            answers.add_violation(read_violation(
                ViolationSubtype::NoPath,
                format!("`{name}` writes a file but does not name it"),
                name,
                "give the path of the file".to_string(),
            ));
        }
        let mut judged: Vec<&str> = Vec::new();
        for touch in &proposal.touches {
            let Some(need) = required_coverage(proposal, touch, deletes) else { continue };
            let PathTarget::At(path) = &touch.target else { continue };
            let path = original_path(proposal, touch, path).unwrap_or(path);
            if judged.contains(&path) {
                continue;
            }
            if let Some(violation) = unread_violation(input, proposal, path, need) {
                judged.push(path);
                answers.add_violation(violation);
            }
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        if !needs_read_records(fold.definition) {
            return;
        }
        let record = fold.record;
        let actor = &record.event.actor;
        let changed = record.facts.changed.iter().flatten();
        match &record.event.kind {
            EventKind::ToolProposed(_) => {
                for (path, fact) in changed {
                    state.reads.record_outside_change(path, fact);
                }
            }
            EventKind::ToolFinished(_) => {
                // The call is still open here: it is closed after all guards have seen the event.
                let key = record.call_key(fold.definition);
                let differs = record
                    .facts
                    .changed
                    .iter()
                    .flatten()
                    .any(|(path, fact)| state.reads.differs(path, fact));
                let Some(call) = state.in_flight.find_mut(key) else { return };
                call.saw_change = differs;
                let call = call.clone();
                // Renames must be applied before the old names are removed.
                record_names(state, &call, fold);
                for (path, fact) in changed {
                    state.reads.record_own_change(&call.actor, path, fact, record.seq);
                }
                record_reads(state, &call, fold);
            }
            EventKind::CompactionFinished(_) => state.reads.forget_actor(actor),
            _ => {}
        }
    }
}

/// Returns whether the definition needs read records: for this policy, or to detect whether an
/// opaque program changed the files of a check.
pub(crate) fn needs_read_records(definition: &Definition) -> bool {
    let wants_clean =
        definition.completion.as_ref().is_some_and(CompletionRequirement::uses_dirty_bits);
    wants_clean
        || definition.policies.iter().any(|policy| match &policy.rule {
            PolicyRule::ReadBeforeWrite { .. } => true,
            PolicyRule::SequentialDependency(rule) => rule.has_fresh(),
            PolicyRule::Custom { .. } => false,
        })
}

/// Returns whether a policy governs the call, and whether one of them also covers deletions.
fn strictest_policy(definition: &Definition, proposal: &Proposal<'_>) -> Option<bool> {
    let deletes = |rule: &PolicyRule| match rule {
        PolicyRule::ReadBeforeWrite { deletes } => Some(*deletes),
        _ => None,
    };
    definition.policies_for(proposal.tool).filter_map(|(_, rule)| deletes(rule)).max()
}

/// How much of a file must have been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequiredCoverage {
    Any,
    Whole,
}

fn required_coverage(
    proposal: &Proposal<'_>,
    touch: &FileTouch,
    deletes: bool,
) -> Option<RequiredCoverage> {
    if matches!(proposal.program(touch.command), "git" | "sqlite3") {
        // Git can restore its own files, and another rule covers changes that git would lose. A
        // database is not read as text.
        return None;
    }
    match touch.access {
        Access::Write => Some(RequiredCoverage::Whole),
        Access::Edit => Some(RequiredCoverage::Any),
        Access::Delete if deletes => Some(RequiredCoverage::Any),
        Access::Delete | Access::Append | Access::Touch | Access::Read(_) => None,
    }
}

fn unread_violation(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    path: &str,
    need: RequiredCoverage,
) -> Option<ViolationDraft> {
    let shown = proposal.shown_path(path);
    let Some((real, fact)) = resolve_links(input, path) else {
        return Some(read_violation(
            ViolationSubtype::UnknownFile,
            format!("`{shown}` could not be checked"),
            shown,
            "name fewer files per call".to_string(),
        ));
    };
    let outside = path.starts_with('/') || real.starts_with('/') || path.starts_with("..");
    if outside && proposal.tool.kind != ToolKind::Exec {
        return Some(read_violation(
            ViolationSubtype::PathEscape,
            format!("`{shown}` is outside of the workspace"),
            shown,
            "write inside the workspace".to_string(),
        ));
    }
    match fact.kind {
        FileKind::File => {}
        FileKind::Missing | FileKind::Directory | FileKind::Other => return None,
        FileKind::Unreadable | FileKind::Escape | FileKind::NoFilesystem => {
            return Some(read_violation(
                ViolationSubtype::UnknownFile,
                format!("Jackline cannot tell whether `{shown}` exists"),
                shown,
                "work in a directory that exists and can be read".to_string(),
            ));
        }
    }
    let (subtype, message) = match input.state.reads.knowledge_of(&input.event.actor, real, fact) {
        FileKnowledge::Whole => return None,
        FileKnowledge::Part { .. } if need == RequiredCoverage::Any => return None,
        FileKnowledge::Nothing if fact.bytes == 0 => return None,
        FileKnowledge::Nothing => {
            (ViolationSubtype::UnreadOverwrite, format!("`{shown}` exists and was not read"))
        }
        FileKnowledge::Stale => {
            (ViolationSubtype::StaleRead, format!("`{shown}` was changed since it was read"))
        }
        FileKnowledge::Part { seen: 0, .. } => (
            ViolationSubtype::PartialRead,
            format!("`{shown}` would be replaced, but only a part of it was read"),
        ),
        FileKnowledge::Part { seen, of } => (
            ViolationSubtype::PartialRead,
            format!("`{shown}` would be replaced, but only {seen} of its {of} lines were read"),
        ),
    };
    let correction = match need {
        RequiredCoverage::Whole => format!("read all of `{shown}`, then write it"),
        RequiredCoverage::Any => format!("read `{shown}`, then change it"),
    };
    Some(read_violation(subtype, message, shown, correction))
}

/// Returns the file that a path leads to after links, with its facts.
fn resolve_links<'a>(input: GuardInput<'a>, path: &'a str) -> Option<(&'a str, &'a FileFact)> {
    let fact = input.facts.files.get(path)?;
    match (&fact.real, fact.kind) {
        (Some(real), FileKind::Escape) => {
            // The facts of a file outside of the workspace are requested by its real path.
            Some((real, input.facts.files.get(real)?))
        }
        (Some(real), _) => Some((real, fact)),
        (None, _) => Some((path, fact)),
    }
}

fn ask_target(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    touch: &FileTouch,
    queries: &mut Queries,
) {
    let PathTarget::At(path) = &touch.target else { return };
    if required_coverage(proposal, touch, true).is_none() {
        return;
    }
    let Some(fact) = input.facts.files.get(path) else {
        queries.ask(Query::File { path: path.clone(), wants: FileDetails::default() });
        return;
    };
    if let (Some(real), FileKind::Escape) = (&fact.real, fact.kind)
        && !input.facts.files.contains_key(real)
    {
        queries.ask(Query::File { path: real.clone(), wants: FileDetails::default() });
        return;
    }
    if let Some((real, fact)) = resolve_links(input, path)
        && input.state.reads.needs_contents(&input.event.actor, real, fact)
    {
        let path = if fact.kind == FileKind::Escape { real } else { path };
        queries.ask(Query::File { path: path.to_string(), wants: CONTENTS });
    }
}

const CONTENTS: FileDetails = FileDetails { json: false, contents: true, declares_tests: false };

fn ask_contents(input: GuardInput<'_>, path: String, queries: &mut Queries) {
    let lacks_contents = |fact: &FileFact| fact.kind == FileKind::File && fact.digest.is_none();
    if input.facts.files.get(&path).is_none_or(lacks_contents) {
        queries.ask(Query::File { path, wants: CONTENTS });
    }
}

fn ask_changed(input: GuardInput<'_>, queries: &mut Queries) {
    if input.facts.changed.is_none() {
        let files = input.state.reads.tracked();
        if !files.is_empty() {
            queries.ask(Query::Changed { files });
        }
    }
}

/// Returns whether a call can change files that it does not name.
fn may_change(proposal: &Proposal<'_>) -> bool {
    expected_changes(proposal) != ChangeCertainty::Nothing
}

/// Returns how a call may change the workspace, as far as that is known before it runs.
pub(crate) fn expected_changes(proposal: &Proposal<'_>) -> ChangeCertainty {
    let kind = proposal.tool.kind;
    if kind.mutates() {
        return ChangeCertainty::Surely;
    }
    if kind != ToolKind::Exec {
        let has_unseen_effects =
            matches!(kind, ToolKind::Other | ToolKind::Effect | ToolKind::Spawn);
        return if has_unseen_effects {
            ChangeCertainty::Perhaps
        } else {
            ChangeCertainty::Nothing
        };
    }
    if proposal.touches.iter().any(|touch| changes_workspace(proposal, touch)) {
        return ChangeCertainty::Surely;
    }
    match &proposal.run {
        crate::proposal::ProposedRun::Line(line)
            if line.opaque_parts.iter().all(|part| proposal.is_recognised(part.command)) =>
        {
            // A declared check may write any file; its effects are accepted.
            let is_check = !line.opaque_parts.is_empty();
            if is_check { ChangeCertainty::Ignored } else { ChangeCertainty::Nothing }
        }
        _ => ChangeCertainty::Perhaps,
    }
}

/// Returns whether a touch changes the workspace, and not only as a part of a declared check.
pub(crate) fn changes_workspace(proposal: &Proposal<'_>, touch: &FileTouch) -> bool {
    let inside = match &touch.target {
        PathTarget::At(path) | PathTarget::Pattern(path) => !path.starts_with('/'),
        PathTarget::Repository(_) | PathTarget::Unknown(_) => true,
    };
    touch.changes()
        && (touch.access != Access::Touch || proposal.program(touch.command) == "touch")
        && inside
        && !proposal.is_recognised(touch.command)
}

/// Returns the last simple command of a command line that changes the workspace.
pub(crate) fn last_change(proposal: &Proposal<'_>) -> Option<u32> {
    let changes = proposal.touches.iter().filter(|touch| changes_workspace(proposal, touch));
    changes.filter_map(|touch| touch.command).max()
}

/// Returns the files to check once the call has returned.
pub(crate) fn files_to_check(definition: &Definition, proposal: &Proposal<'_>) -> Vec<CallFile> {
    if !needs_read_records(definition) {
        return Vec::new();
    }
    let mut noted = Vec::new();
    for touch in &proposal.touches {
        let PathTarget::At(path) = &touch.target else { continue };
        let did = match touch.access {
            // A listing shows the name of a file, not its content.
            Access::Read(_)
                if touch.command.is_none() && ToolKind::only_lists_names(proposal.tool.name) =>
            {
                continue;
            }
            Access::Read(_) if touch.recursive => {
                FileAccess::Searched { sure: did_surely_run(proposal, touch) }
            }
            Access::Read(lines) => {
                FileAccess::Showed { part: file_part(lines), sure: did_surely_run(proposal, touch) }
            }
            // Content that git restores was not written by the agent.
            Access::Write | Access::Edit if proposal.program(touch.command) == "git" => {
                FileAccess::Changed
            }
            Access::Write if gives_new_name(proposal, touch) => FileAccess::Named,
            Access::Write | Access::Edit => FileAccess::Wrote,
            Access::Append => FileAccess::Appended,
            Access::Delete => FileAccess::Removed,
            Access::Touch => continue,
        };
        noted.push(CallFile { path: path.clone(), access: did });
    }
    noted
}

/// Returns whether a write gives existing content another name.
fn gives_new_name(proposal: &Proposal<'_>, touch: &FileTouch) -> bool {
    let command = touch.command.and_then(|number| proposal.commands().get(number as usize));
    let Some(command) = command else { return proposal.tool.name == "move_file" };
    let makes_links = |word: &ShellWord<'_>| match word.text.strip_prefix('-') {
        Some("-symbolic-link" | "-link") => true,
        Some(letters) => !letters.starts_with('-') && letters.contains(['s', 'l']),
        None => false,
    };
    match command.program() {
        "mv" | "ln" | "link" => true,
        "cp" => command.words.iter().any(makes_links),
        _ => false,
    }
}

/// Returns the original path of a file that the same command line moves before it writes it.
fn original_path<'p>(proposal: &'p Proposal<'_>, touch: &FileTouch, path: &str) -> Option<&'p str> {
    let is_target = |other: &&FileTouch| {
        let is_same_path = matches!(&other.target, PathTarget::At(to) if to == path);
        is_same_path && other.command < touch.command && other.access == Access::Write
    };
    let mut moves = proposal.touches.iter().filter(is_target);
    let moved = moves.find(|other| proposal.program(other.command) == "mv")?;
    let is_source = |other: &&FileTouch| {
        other.command == moved.command && other.access == Access::Delete && other.command.is_some()
    };
    let mut sources = proposal.touches.iter().filter(is_source);
    match (sources.next().map(|source| &source.target), sources.next()) {
        (Some(PathTarget::At(from)), None) => Some(from),
        _ => None,
    }
}

/// Returns `true` if the command surely ran even if the command line failed, and `false` if it ran
/// only if the command line succeeded. `None` if even success proves nothing.
fn did_surely_run(proposal: &Proposal<'_>, touch: &FileTouch) -> Option<bool> {
    let command = touch.command.and_then(|number| proposal.commands().get(number as usize));
    match command {
        None => Some(false),
        Some(command)
            if command.always_runs
                && matches!(command.exit_evidence, ExitEvidence::Lost | ExitEvidence::Enough) =>
        {
            Some(true)
        }
        Some(command)
            if matches!(command.exit_evidence, ExitEvidence::Decides | ExitEvidence::Needed) =>
        {
            Some(false)
        }
        Some(_) => None,
    }
}

fn file_part(lines: ReadExtent) -> FilePart {
    match lines {
        ReadExtent::All => FilePart::Whole,
        ReadExtent::Range(from, to) => FilePart::Lines(from, to),
        ReadExtent::From(from) => FilePart::From(from),
        ReadExtent::Last(count) => FilePart::Last(count),
        ReadExtent::Partial => FilePart::Unknown,
    }
}

fn has_succeeded(kind: &EventKind) -> bool {
    let EventKind::ToolFinished(ToolFinished { status, exit_code, background, .. }) = kind else {
        return false;
    };
    *status == CallStatus::Ok && matches!(exit_code, None | Some(0)) && !background
}

/// Returns a file after links, with its facts after the call.
fn file_after_call<'f>(fold: FoldInput<'f>, path: &str) -> Option<(String, &'f FileFact)> {
    let fact = fold.record.facts.files.get(path)?;
    Some((fact.real.clone().unwrap_or_else(|| path.to_string()), fact))
}

/// Records the new names that a finished call gave to files.
fn record_names(state: &mut SessionState, call: &InFlightCall, fold: FoldInput<'_>) {
    if !has_succeeded(&fold.record.event.kind) {
        return;
    }
    for CallFile { path, .. } in call.files.iter().filter(|noted| noted.access == FileAccess::Named)
    {
        if let Some((real, fact)) = file_after_call(fold, path) {
            state.reads.record_new_name(&call.actor, &real, fact, fold.record.seq);
        }
    }
}

/// Records what an actor has read and written after a finished call.
fn record_reads(state: &mut SessionState, call: &InFlightCall, fold: FoldInput<'_>) {
    let record = fold.record;
    let EventKind::ToolFinished(ToolFinished { seen, .. }) = &record.event.kind else { return };
    let succeeded = has_succeeded(&record.event.kind);
    let file_fact = |path: &str| file_after_call(fold, path);
    let shown: Vec<(String, FilePart)> = seen
        .iter()
        .map(|seen| {
            let line = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let whole = seen.from <= 1 && seen.of.is_some_and(|of| seen.to >= of);
            let part = if whole {
                FilePart::Whole
            } else {
                FilePart::Lines(line(seen.from), line(seen.to))
            };
            let part = cutting_page(fold).map_or(part, |page| limit_to_page(part, call, page));
            (fold.place.resolve_path(&seen.path, "."), part)
        })
        .collect();
    for CallFile { path, access: did } in &call.files {
        if let FileAccess::Searched { sure } = did
            && sure.is_some_and(|sure| sure || succeeded)
        {
            state.reads.searched(&call.actor, path, state.clock.now(), record.seq);
        }
        let Some((real, fact)) = file_fact(path) else { continue };
        match did {
            FileAccess::Showed { part, sure } => {
                let did_run = sure.is_some_and(|sure| sure || succeeded);
                let is_shown = shown.iter().any(|(path, _)| *path == real);
                if did_run && !is_shown {
                    let part = limit_to_shown(*part, call, fact, fold);
                    state.reads.record_shown(&call.actor, &real, part, fact, record.seq);
                }
            }
            FileAccess::Wrote if succeeded || !state.reads.has_record(&call.actor, &real) => {
                record_write(state, &call.actor, &real, fact, record.seq);
            }
            // The command failed, so its extent is unknown: the changes are recorded as foreign
            // changes.
            FileAccess::Wrote | FileAccess::Changed => {
                state.reads.record_own_change(&call.actor, &real, fact, record.seq);
            }
            FileAccess::Appended => state.reads.record_append(&call.actor, &real, fact, record.seq),
            FileAccess::Removed if fact.kind == FileKind::Missing => state.reads.forget_path(&real),
            FileAccess::Removed | FileAccess::Searched { .. } | FileAccess::Named => {}
        }
    }
    if !succeeded {
        return;
    }
    for (path, part) in shown {
        let Some((real, fact)) = file_fact(&path) else { continue };
        // A later page shows the file as it was when the result arrived.
        if call.tool != PAGE_TURN_TOOL || state.reads.is_current(&call.actor, &real, fact) {
            state.reads.record_shown(&call.actor, &real, part, fact, record.seq);
        }
    }
}

/// Returns the parts of files that a call shows if its whole result is shown.
pub(crate) fn shown_parts(call: &InFlightCall) -> Vec<ShownLines> {
    let shown_part = |noted: &CallFile| {
        let FileAccess::Showed { part, .. } = noted.access else { return None };
        let (from, to) = match part {
            FilePart::Whole => (1, u32::MAX),
            FilePart::Lines(from, to) => (from, to),
            FilePart::From(from) => (from, u32::MAX),
            FilePart::Last(_) | FilePart::Unknown => return None,
        };
        Some(ShownLines { path: noted.path.clone(), from: from.into(), to: to.into(), of: None })
    };
    call.files.iter().filter_map(shown_part).collect()
}

fn record_write(state: &mut SessionState, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
    match fact.kind {
        FileKind::Missing => state.reads.forget_path(path),
        _ => state.reads.record_write(actor, path, fact, seq),
    }
}

fn read_violation(
    subtype: ViolationSubtype,
    message: String,
    location: &str,
    correction: String,
) -> ViolationDraft {
    ViolationDraft {
        guard: GuardName::ReadBeforeWrite,
        kind: ViolationType::ToolPolicyViolation,
        subtype,
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message,
        location: Some(location.to_string()),
        correction: Some(correction),
    }
}
