//! `read_before_write`: an existing file must be read before it is overwritten.
//!
//! Overwriting needs the whole of the file as it is now; changing it in place
//! needs any part of it. What the agent writes itself, it knows. A file that
//! somebody else changed has to be read again.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, Exit, Lines, Word};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::definition::{Checker, Definition, PolicyRule};
use crate::event::{EventKind, Seen, Status, ToolFinished};
use crate::facts::{FileFact, FileKind, Queries, Query, Wants};
use crate::id::ActorId;
use crate::place::Target;
use crate::proposal::{Proposal, Touch};
use crate::state::{Call, Changes, Did, Knows, Noted, Part, State};
use crate::tool::{Kind, PAGE_TURN};
use crate::verdict::{Class, Decision, GuardName, Page, ViolationSubtype, ViolationType};

pub(crate) struct ReadGuard;

impl Guard for ReadGuard {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        if !tracks(look.definition) {
            return;
        }
        if let Some(proposal) = look.proposal {
            if strictest(look.definition, proposal).is_some() {
                for touch in &proposal.touches {
                    ask_target(look, proposal, touch, queries);
                }
            }
            if may_change(proposal) {
                ask_changed(look, queries);
            }
        }
        if let EventKind::ToolFinished(ToolFinished { seen, .. }) = &look.event.kind
            && let Some(call) = look.state.in_flight.find(look.key())
        {
            let shown = seen.iter().map(|seen| look.place.locate(&seen.path, "."));
            let searches = |noted: &&Noted| matches!(noted.did, Did::Searched { .. });
            let named = call.files.iter().filter(|noted| !searches(noted));
            for path in named.map(|noted| noted.path.clone()).chain(shown) {
                ask_contents(look, path, queries);
            }
            if call.changes != Changes::Nothing {
                ask_changed(look, queries);
            }
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(proposal) = look.proposal else { return };
        let Some(deletes) = strictest(look.definition, proposal) else { return };
        let writes = matches!(proposal.tool.kind, Kind::Write | Kind::Edit)
            || (proposal.tool.kind == Kind::Delete && deletes);
        if writes && !proposal.touches.iter().any(Touch::changes) {
            let name = proposal.tool.name;
            answers.object(objection(
                ViolationSubtype::NoPath,
                format!("`{name}` writes a file and does not say which"),
                name,
                "give the path of the file".to_string(),
            ));
        }
        let mut judged: Vec<&str> = Vec::new();
        for touch in &proposal.touches {
            let Some(need) = need(proposal, touch, deletes) else { continue };
            let Target::At(path) = &touch.target else { continue };
            let path = moved_from(proposal, touch, path).unwrap_or(path);
            if judged.contains(&path) {
                continue;
            }
            if let Some(objection) = unread(look, proposal, path, need) {
                judged.push(path);
                answers.object(objection);
            }
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        if !tracks(fold.definition) {
            return;
        }
        let record = fold.record;
        let actor = &record.event.actor;
        let changed = record.facts.changed.iter().flatten();
        match &record.event.kind {
            EventKind::ToolProposed(_) => {
                for (path, fact) in changed {
                    state.reads.changed_outside(path, fact);
                }
            }
            EventKind::ToolFinished(_) => {
                // The call is still open here: it is closed after the guards
                // have seen it.
                let key = record.key(fold.definition);
                let differs = record
                    .facts
                    .changed
                    .iter()
                    .flatten()
                    .any(|(path, fact)| state.reads.differs(path, fact));
                let Some(call) = state.in_flight.find_mut(key) else { return };
                call.changed = differs;
                let call = call.clone();
                // Before what is gone under its old name is forgotten.
                learn_names(state, &call, fold);
                for (path, fact) in changed {
                    state.reads.changed_by(&call.actor, path, fact, record.seq);
                }
                learn(state, &call, fold);
            }
            EventKind::CompactionFinished(_) => state.reads.forget(actor),
            _ => {}
        }
    }
}

/// Whether the definition needs to know what was read: for this policy, and to
/// see whether an opaque program changed what a check was about.
pub(crate) fn tracks(definition: &Definition) -> bool {
    let wants_clean = definition.completion.as_ref().is_some_and(Checker::wants_clean);
    wants_clean
        || definition.policies.iter().any(|policy| match &policy.rule {
            PolicyRule::ReadBeforeWrite { .. } => true,
            PolicyRule::SequentialDependency(rule) => rule.has_fresh(),
            PolicyRule::Custom { .. } => false,
        })
}

/// Whether a policy governs the call, and whether one of them is about removing
/// files too.
fn strictest(definition: &Definition, proposal: &Proposal<'_>) -> Option<bool> {
    let deletes = |rule: &PolicyRule| match rule {
        PolicyRule::ReadBeforeWrite { deletes } => Some(*deletes),
        _ => None,
    };
    definition.governing(proposal.tool).filter_map(|(_, rule)| deletes(rule)).max()
}

/// How well a file must be known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Any,
    Whole,
}

fn need(proposal: &Proposal<'_>, touch: &Touch, deletes: bool) -> Option<Need> {
    if matches!(proposal.program(touch.command), "git" | "sqlite3") {
        // What git brings back it has, and what it would lose is another rule's;
        // and a database is not read as a text.
        return None;
    }
    match touch.access {
        Access::Write => Some(Need::Whole),
        Access::Edit => Some(Need::Any),
        Access::Delete if deletes => Some(Need::Any),
        Access::Delete | Access::Append | Access::Touch | Access::Read(_) => None,
    }
}

fn unread(look: Look<'_>, proposal: &Proposal<'_>, path: &str, need: Need) -> Option<Objection> {
    let Some((real, fact)) = settled(look, path) else {
        return Some(objection(
            ViolationSubtype::UnknownFile,
            format!("`{path}` could not be looked at"),
            path,
            "name fewer files at once".to_string(),
        ));
    };
    let outside = path.starts_with('/') || real.starts_with('/') || path.starts_with("..");
    if outside && proposal.tool.kind != Kind::Exec {
        return Some(objection(
            ViolationSubtype::PathEscape,
            format!("`{path}` leads out of the workspace"),
            path,
            "write inside the workspace".to_string(),
        ));
    }
    match fact.kind {
        FileKind::File => {}
        FileKind::Missing | FileKind::Directory | FileKind::Other => return None,
        FileKind::Unreadable | FileKind::Escape | FileKind::NoFilesystem => {
            return Some(objection(
                ViolationSubtype::UnknownFile,
                format!("it can't be seen whether `{path}` is there"),
                path,
                "work in a directory that is there and can be read".to_string(),
            ));
        }
    }
    let (subtype, message) = match look.state.reads.knows(&look.event.actor, real, fact) {
        Knows::Whole => return None,
        Knows::Part { .. } if need == Need::Any => return None,
        Knows::Nothing if fact.bytes == 0 => return None,
        Knows::Nothing => {
            (ViolationSubtype::UnreadOverwrite, format!("`{path}` exists and was not read"))
        }
        Knows::Stale => {
            (ViolationSubtype::StaleRead, format!("`{path}` was changed since it was read"))
        }
        Knows::Part { seen: 0, .. } => (
            ViolationSubtype::PartialRead,
            format!("`{path}` would be replaced, and was only read in part"),
        ),
        Knows::Part { seen, of } => (
            ViolationSubtype::PartialRead,
            format!("`{path}` would be replaced, and {seen} of its {of} lines were read"),
        ),
    };
    let correction = match need {
        Need::Whole => format!("read all of `{path}`, then write it"),
        Need::Any => format!("read `{path}`, then change it"),
    };
    Some(objection(subtype, message, path, correction))
}

/// The file behind a path: where its links lead, and what is there.
fn settled<'a>(look: Look<'a>, path: &'a str) -> Option<(&'a str, &'a FileFact)> {
    let fact = look.facts.files.get(path)?;
    match (&fact.real, fact.kind) {
        (Some(real), FileKind::Escape) => {
            // Outside of the workspace it is asked for by where it really is.
            Some((real, look.facts.files.get(real)?))
        }
        (Some(real), _) => Some((real, fact)),
        (None, _) => Some((path, fact)),
    }
}

fn ask_target(look: Look<'_>, proposal: &Proposal<'_>, touch: &Touch, queries: &mut Queries) {
    let Target::At(path) = &touch.target else { return };
    if need(proposal, touch, true).is_none() {
        return;
    }
    let Some(fact) = look.facts.files.get(path) else {
        queries.ask(Query::File { path: path.clone(), wants: Wants::default() });
        return;
    };
    if let (Some(real), FileKind::Escape) = (&fact.real, fact.kind)
        && !look.facts.files.contains_key(real)
    {
        queries.ask(Query::File { path: real.clone(), wants: Wants::default() });
        return;
    }
    if let Some((real, fact)) = settled(look, path)
        && look.state.reads.must_compare(&look.event.actor, real, fact)
    {
        let path = if fact.kind == FileKind::Escape { real } else { path };
        queries.ask(Query::File { path: path.to_string(), wants: CONTENTS });
    }
}

const CONTENTS: Wants = Wants { json: false, contents: true };

fn ask_contents(look: Look<'_>, path: String, queries: &mut Queries) {
    let open = look
        .facts
        .files
        .get(&path)
        .is_none_or(|fact| fact.kind == FileKind::File && fact.digest.is_none());
    if open {
        queries.ask(Query::File { path, wants: CONTENTS });
    }
}

fn ask_changed(look: Look<'_>, queries: &mut Queries) {
    if look.facts.changed.is_none() {
        let files = look.state.reads.tracked();
        if !files.is_empty() {
            queries.ask(Query::Changed { files });
        }
    }
}

/// Whether a call can change files beyond those it names.
fn may_change(proposal: &Proposal<'_>) -> bool {
    changes(proposal) != Changes::Nothing
}

/// What a call may do to the workspace, as far as that can be told beforehand.
pub(crate) fn changes(proposal: &Proposal<'_>) -> Changes {
    let kind = proposal.tool.kind;
    if kind.mutates() {
        return Changes::Surely;
    }
    if kind != Kind::Exec {
        let blind = matches!(kind, Kind::Other | Kind::Effect | Kind::Spawn);
        return if blind { Changes::Perhaps } else { Changes::Nothing };
    }
    if proposal.touches.iter().any(|touch| counts(proposal, touch)) {
        return Changes::Surely;
    }
    match &proposal.run {
        crate::proposal::Run::Line(line)
            if line.opaque.iter().all(|part| proposal.is_recognised(part.command)) =>
        {
            // A declared check may write what it likes; it is known to be one.
            let checks = !line.opaque.is_empty();
            if checks { Changes::Unseen } else { Changes::Nothing }
        }
        _ => Changes::Perhaps,
    }
}

/// Whether touching this changes the workspace, and not as a declared check does.
pub(crate) fn counts(proposal: &Proposal<'_>, touch: &Touch) -> bool {
    let inside = match &touch.target {
        Target::At(path) | Target::Pattern(path) => !path.starts_with('/'),
        Target::Repository(_) | Target::Unknown(_) => true,
    };
    touch.changes()
        && (touch.access != Access::Touch || proposal.program(touch.command) == "touch")
        && inside
        && !proposal.is_recognised(touch.command)
}

/// The last simple command of a line that changes the workspace.
pub(crate) fn last_change(proposal: &Proposal<'_>) -> Option<u32> {
    let changes = proposal.touches.iter().filter(|touch| counts(proposal, touch));
    changes.filter_map(|touch| touch.command).max()
}

/// What to look at once the call has come back.
pub(crate) fn noted(definition: &Definition, proposal: &Proposal<'_>) -> Vec<Noted> {
    if !tracks(definition) {
        return Vec::new();
    }
    let mut noted = Vec::new();
    for touch in &proposal.touches {
        let Target::At(path) = &touch.target else { continue };
        let did = match touch.access {
            // Who knows a name has seen nothing of the file.
            Access::Read(_) if touch.command.is_none() && Kind::lists(proposal.tool.name) => {
                continue;
            }
            Access::Read(_) if touch.recursive => Did::Searched { sure: is_sure(proposal, touch) },
            Access::Read(lines) => Did::Saw { part: part(lines), sure: is_sure(proposal, touch) },
            // What git brings back is not what the agent wrote.
            Access::Write | Access::Edit if proposal.program(touch.command) == "git" => {
                Did::Changed
            }
            Access::Write if gives_a_name(proposal, touch) => Did::Named,
            Access::Write | Access::Edit => Did::Wrote,
            Access::Append => Did::Appended,
            Access::Delete => Did::Removed,
            Access::Touch => continue,
        };
        noted.push(Noted { path: path.clone(), did });
    }
    noted
}

/// Whether what is written is another name for something, and nothing of what is in it.
fn gives_a_name(proposal: &Proposal<'_>, touch: &Touch) -> bool {
    let command = touch.command.and_then(|number| proposal.commands().get(number as usize));
    let Some(command) = command else { return proposal.tool.name == "move_file" };
    let links = |word: &Word<'_>| match word.text.strip_prefix('-') {
        Some("-symbolic-link" | "-link") => true,
        Some(letters) => !letters.starts_with('-') && letters.contains(['s', 'l']),
        None => false,
    };
    match command.program() {
        "mv" | "ln" | "link" => true,
        "cp" => command.words.iter().any(links),
        _ => false,
    }
}

/// What a path is by the time it is written, where the same line has moved it there.
fn moved_from<'p>(proposal: &'p Proposal<'_>, touch: &Touch, path: &str) -> Option<&'p str> {
    let is_there = |other: &&Touch| {
        let lands = matches!(&other.target, Target::At(to) if to == path);
        lands && other.command < touch.command && other.access == Access::Write
    };
    let mut moves = proposal.touches.iter().filter(is_there);
    let moved = moves.find(|other| proposal.program(other.command) == "mv")?;
    let of_it = |other: &&Touch| {
        other.command == moved.command && other.access == Access::Delete && other.command.is_some()
    };
    let mut sources = proposal.touches.iter().filter(of_it);
    match (sources.next().map(|source| &source.target), sources.next()) {
        (Some(Target::At(from)), None) => Some(from),
        _ => None,
    }
}

/// Whether the command ran even if the line failed; none where only its
/// success could tell, and it does not.
fn is_sure(proposal: &Proposal<'_>, touch: &Touch) -> Option<bool> {
    let command = touch.command.and_then(|number| proposal.commands().get(number as usize));
    match command {
        None => Some(false),
        Some(command) if command.certain && matches!(command.exit, Exit::Lost | Exit::Enough) => {
            Some(true)
        }
        Some(command) if matches!(command.exit, Exit::Decides | Exit::Needed) => Some(false),
        Some(_) => None,
    }
}

fn part(lines: Lines) -> Part {
    match lines {
        Lines::All => Part::Whole,
        Lines::Range(from, to) => Part::Lines(from, to),
        Lines::From(from) => Part::From(from),
        Lines::Last(count) => Part::Last(count),
        Lines::Some => Part::Unknown,
    }
}

fn has_succeeded(kind: &EventKind) -> bool {
    let EventKind::ToolFinished(ToolFinished { status, exit_code, background, .. }) = kind else {
        return false;
    };
    *status == Status::Ok && matches!(exit_code, None | Some(0)) && !background
}

/// A file where its links lead, as it was found.
fn found<'f>(fold: Fold<'f>, path: &str) -> Option<(String, &'f FileFact)> {
    let fact = fold.record.facts.files.get(path)?;
    Some((fact.real.clone().unwrap_or_else(|| path.to_string()), fact))
}

/// What has another name after a call has come back.
fn learn_names(state: &mut State, call: &Call, fold: Fold<'_>) {
    if !has_succeeded(&fold.record.event.kind) {
        return;
    }
    for Noted { path, .. } in call.files.iter().filter(|noted| noted.did == Did::Named) {
        if let Some((real, fact)) = found(fold, path) {
            state.reads.named(&call.actor, &real, fact, fold.record.seq);
        }
    }
}

/// What an actor knows after a call has come back.
fn learn(state: &mut State, call: &Call, fold: Fold<'_>) {
    let record = fold.record;
    let EventKind::ToolFinished(ToolFinished { seen, .. }) = &record.event.kind else { return };
    let succeeded = has_succeeded(&record.event.kind);
    let look = |path: &str| found(fold, path);
    let shown: Vec<(String, Part)> = seen
        .iter()
        .map(|seen| {
            let line = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let whole = seen.from <= 1 && seen.of.is_some_and(|of| seen.to >= of);
            let part =
                if whole { Part::Whole } else { Part::Lines(line(seen.from), line(seen.to)) };
            (fold.place.locate(&seen.path, "."), part)
        })
        .collect();
    for Noted { path, did } in &call.files {
        if let Did::Searched { sure } = did
            && sure.is_some_and(|sure| sure || succeeded)
        {
            state.reads.searched(&call.actor, path, state.clock.now(), record.seq);
        }
        let Some((real, fact)) = look(path) else { continue };
        match did {
            Did::Saw { part, sure } => {
                let counts = sure.is_some_and(|sure| sure || succeeded);
                let told = shown.iter().any(|(path, _)| *path == real);
                if counts && !told {
                    let part = as_far_as_shown(*part, call, fact, fold);
                    state.reads.saw(&call.actor, &real, part, fact, record.seq);
                }
            }
            Did::Wrote if succeeded || !state.reads.has(&call.actor, &real) => {
                wrote(state, &call.actor, &real, fact, record.seq);
            }
            // Nobody knows how far it came: what it changed, it changed.
            Did::Wrote | Did::Changed => {
                state.reads.changed_by(&call.actor, &real, fact, record.seq);
            }
            Did::Appended => state.reads.appended(&call.actor, &real, fact, record.seq),
            Did::Removed if fact.kind == FileKind::Missing => state.reads.gone(&real),
            Did::Removed | Did::Searched { .. } | Did::Named => {}
        }
    }
    if !succeeded {
        return;
    }
    for (path, part) in shown {
        let Some((real, fact)) = look(&path) else { continue };
        // A page that is turned to shows the file as it was when the result came.
        if call.tool != PAGE_TURN || state.reads.is_current(&call.actor, &real, fact) {
            state.reads.saw(&call.actor, &real, part, fact, record.seq);
        }
    }
}

/// What a call shows of files where all of its result is shown.
pub(crate) fn shows(call: &Call) -> Vec<Seen> {
    let seen = |noted: &Noted| {
        let Did::Saw { part, .. } = noted.did else { return None };
        let (from, to) = match part {
            Part::Whole => (1, u32::MAX),
            Part::Lines(from, to) => (from, to),
            Part::From(from) => (from, u32::MAX),
            Part::Last(_) | Part::Unknown => return None,
        };
        Some(Seen { path: noted.path.clone(), from: from.into(), to: to.into(), of: None })
    };
    call.files.iter().filter_map(seen).collect()
}

fn wrote(state: &mut State, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
    match fact.kind {
        FileKind::Missing => state.reads.gone(path),
        _ => state.reads.wrote(actor, path, fact, seq),
    }
}

/// How much of the end of a result a client may leave out: it is white space.
const TRIMMED_BYTES_MAX: u64 = 4;

/// A command whose result is shorter than the file did not show all of it; a
/// tool that reads says itself when there is more. Of a result that came as a page
/// nobody can say which part of a file it was.
fn as_far_as_shown(part: Part, call: &Call, fact: &FileFact, fold: Fold<'_>) -> Part {
    let most = u64::from(fold.definition.io.output.max_bytes);
    let is_cut = |page: &Page| page.enforced && page.bytes > most;
    if fold.record.verdict.page.as_ref().is_some_and(is_cut) {
        return Part::Unknown;
    }
    let result = fold.record.facts.observed.result.as_ref();
    let cut = result.is_some_and(|result| result.bytes + TRIMMED_BYTES_MAX < fact.bytes);
    match part {
        Part::Whole if cut && call.kind == Kind::Exec => Part::Unknown,
        part => part,
    }
}

fn objection(
    subtype: ViolationSubtype,
    message: String,
    location: &str,
    correction: String,
) -> Objection {
    Objection {
        guard: GuardName::ReadBeforeWrite,
        kind: ViolationType::ToolPolicyViolation,
        subtype,
        class: Class::Recoverable,
        decision: Decision::Deny,
        message,
        location: Some(location.to_string()),
        correction: Some(correction),
    }
}
