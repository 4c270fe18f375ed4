//! The guard's own files: an agent can't write them through any tool.
//!
//! What a call names is refused before it runs, in every mode. What an opaque
//! program does in secret shows at the next gate: files that were changed while
//! a call was under way are given back, and the session waits for a person.

mod paths;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, Opaque, Reason};
use serde_json::Value;

use super::{Answers, Fold, Guard, Look, Objection};
use crate::digest::Digest;
use crate::event::EventKind;
use crate::facts::{FileKind, Queries, Query, Wants, WatchedFact};
use crate::path::is_within;
use crate::place::{Place, Target};
use crate::proposal::{Proposal, Run, Touch};
use crate::state::{Paused, State};
use crate::tool::Kind;
use crate::verdict::{Class, Decision};

pub(crate) use paths::watch_list;
use paths::{Guarded, matches_pattern};

/// How long a text may be to be taken for a path.
const PATH_BYTES_MAX: usize = 4096;

pub(crate) struct Protected;

impl Guard for Protected {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        if compares(look) && look.facts.watched.is_none() {
            let paths = watch_list(look.place, look.definition);
            queries.ask(Query::Watched { files: look.state.watched.tracked(&paths) });
        }
        let Some(proposal) = look.proposal else { return };
        for touch in proposal.touches.iter().filter(|touch| touch.changes()) {
            if let Target::At(path) = &touch.target
                && !look.facts.files.contains_key(path)
            {
                queries.ask(Query::File { path: path.clone(), wants: Wants::default() });
            }
        }
        if let Some(path) = markers(look.place, proposal)
            && !look.facts.files.contains_key(&path)
        {
            queries.ask(Query::File { path, wants: Wants::default() });
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        for (path, _) in changed_in_a_call(look) {
            answers.insist(Objection {
                guard: "protected",
                kind: "protected_path",
                subtype: "changed_during_call",
                class: Class::Terminal,
                decision: Decision::Pause,
                message: format!(
                    "`{path}` was changed while a call was under way; it is given back as it was"
                ),
                location: Some(path.to_string()),
                correction: Some(
                    "end the turn and tell the person; they can change it themselves".to_string(),
                ),
            });
        }
        let Some(proposal) = look.proposal else { return };
        if let Some((part, path)) = offence(look, proposal) {
            answers.insist(Objection {
                guard: "protected",
                kind: "protected_path",
                subtype: "protected_write",
                class: Class::Recoverable,
                decision: Decision::Deny,
                message: match part {
                    Some(part) => format!("`{path}` is protected, and `{part}` would write it"),
                    None => format!("`{path}` is protected and can't be written by an agent"),
                },
                location: Some(path),
                correction: Some(
                    "leave it as it is; a person can change it outside of the session".to_string(),
                ),
            });
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let suspected = is_suspected(state);
        if let Some(seen) = &record.facts.watched {
            for (path, fact) in seen {
                let differs = state.watched.differs(path, fact);
                if differs && (suspected || state.watched.is_damaged(path)) {
                    state.watched.damage(path);
                } else {
                    state.watched.accept(path, fact);
                }
            }
        }
        if record.verdict.violations.iter().any(|v| v.subtype == "changed_during_call") {
            let why = Some("a protected file was changed during a call".to_string());
            state.paused = Some(Paused { by: Some("jackline".to_string()), why });
        }
        match &record.event.kind {
            EventKind::ToolFinished { background: true, .. } => state.watched.loose = true,
            EventKind::PromptSubmitted { .. } | EventKind::SessionStarted { .. } => {
                state.watched.loose = false;
            }
            _ => {}
        }
    }
}

/// Whether this is a gate at which protected files are compared.
fn compares(look: Look<'_>) -> bool {
    matches!(
        look.event.kind,
        EventKind::SessionStarted { .. }
            | EventKind::PromptSubmitted { .. }
            | EventKind::ToolProposed { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::StopProposed { .. }
    )
}

/// Whether the agent may be at work on files just now.
fn is_suspected(state: &State) -> bool {
    let can_write =
        |kind: Kind| !matches!(kind, Kind::Read | Kind::Search | Kind::Think | Kind::Fetch);
    state.watched.loose || state.in_flight.iter().any(|call| !call.asked && can_write(call.kind))
}

/// Protected files that were changed while a call was under way.
fn changed_in_a_call(look: Look<'_>) -> impl Iterator<Item = (&str, &WatchedFact)> {
    let suspected = is_suspected(look.state);
    let seen = look.facts.watched.iter().flatten();
    let watched = &look.state.watched;
    seen.filter(move |(path, fact)| {
        (suspected || watched.is_damaged(path)) && watched.differs(path, fact)
    })
    .map(|(path, fact)| (path.as_str(), fact))
}

/// What has to be given back, and with which contents; none is a file that was
/// not there.
pub(crate) fn to_give_back(look: Look<'_>) -> Vec<(String, Option<Digest>)> {
    changed_in_a_call(look)
        .map(|(path, _)| (path.to_string(), look.state.watched.contents(path)))
        .collect()
}

/// The first protected path that a call would write, and the part of the call
/// that does.
fn offence(look: Look<'_>, proposal: &Proposal<'_>) -> Option<(Option<String>, String)> {
    let guarded = Guarded { place: look.place, definition: look.definition };
    for touch in proposal.touches.iter().filter(|touch| touch.changes()) {
        if let Some(path) = written(look, proposal, touch, &guarded) {
            let part = touch.command.and_then(|number| part_of(proposal, number));
            return Some((part, path));
        }
    }
    if let Run::Line(line) = &proposal.run {
        let script = line.opaque.iter().filter(|part| is_script(part));
        for part in script {
            if let Some(name) = guarded.named_in(&part.text) {
                return Some((None, name));
            }
        }
    }
    if matches!(proposal.tool.kind, Kind::Other | Kind::Effect | Kind::Spawn) {
        // A tool that nobody has described may write what it is given.
        let declared = proposal
            .tool
            .declared
            .is_some_and(|tool| !(tool.paths.read.is_empty() && tool.paths.write.is_empty()));
        if let Some(args) = proposal.args.filter(|_| !declared) {
            return named_argument(args, proposal, &guarded).map(|path| (None, path));
        }
    }
    None
}

/// The protected path that is written by touching this, if one is.
fn written(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    touch: &Touch,
    guarded: &Guarded<'_>,
) -> Option<String> {
    let holds = touch.recursive
        && (touch.access == Access::Delete
            || (touch.access == Access::Write && proposal.program(touch.command) == "git"));
    match &touch.target {
        Target::At(path) if is_impossible(look, proposal, path) => None,
        Target::At(path) => {
            let fact = look.facts.files.get(path);
            let real = fact.and_then(|fact| fact.real.as_deref());
            let direct = [Some(path.as_str()), real].into_iter().flatten();
            let mut direct = direct.filter(|path| guarded.contains(path));
            if let Some(path) = direct.next() {
                return Some(path.to_string());
            }
            let mut directories = [Some(path.as_str()), real].into_iter().flatten();
            let below = |directory: &str| {
                concrete(look).into_iter().find(|known| {
                    is_within(known, directory) || is_within(&look.place.absolute(known), directory)
                })
            };
            holds.then(|| directories.find_map(below)).flatten()
        }
        Target::Pattern(pattern) => {
            if guarded.contains(pattern) {
                return Some(pattern.clone());
            }
            let matches = |known: &str| {
                let mut above = known.match_indices('/').filter_map(|(at, _)| known.get(..at));
                matches_pattern(known, pattern)
                    || (holds && above.any(|above| matches_pattern(above, pattern)))
            };
            let hit = |known: &String| matches(known) || matches(&look.place.absolute(known));
            concrete(look).into_iter().find(hit)
        }
        Target::Unknown(text) => guarded.ends_with(text).then(|| text.clone()),
        Target::Repository(_) => None,
    }
}

/// Whether a path lies in something that is no directory: a copy goes to one of
/// two places, and this is the other.
fn is_impossible(look: Look<'_>, proposal: &Proposal<'_>, path: &str) -> bool {
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    let made = |touch: &Touch| {
        touch.access == Access::Touch && touch.target.path().is_some_and(|path| path == parent)
    };
    look.facts.files.get(parent).is_some_and(|fact| match fact.kind {
        FileKind::File => true,
        FileKind::Missing => !proposal.touches.iter().any(made),
        _ => false,
    })
}

/// Protected paths that are known to be there.
fn concrete(look: Look<'_>) -> Vec<String> {
    let mut known: Vec<String> = look.state.watched.there().map(ToString::to_string).collect();
    if let Some(seen) = &look.facts.watched {
        known.extend(seen.iter().filter(|(_, fact)| fact.sha256.is_some()).map(|(p, _)| p.clone()));
    }
    known.extend(look.place.definition.iter().map(|path| look.place.locate(path, ".")));
    known.extend(look.place.state_home.iter().map(|path| look.place.locate(path, ".")));
    let markers = paths::MARKERS.trim_end_matches('/');
    let there = look.facts.files.get(markers).is_some_and(|fact| fact.kind != FileKind::Missing);
    if there {
        known.push(markers.to_string());
    }
    known
}

/// Whether it has to be known that the directory for people is there: something
/// above it is removed.
fn markers(place: &Place, proposal: &Proposal<'_>) -> Option<String> {
    let markers = paths::MARKERS.trim_end_matches('/');
    let above = |touch: &Touch| {
        touch.recursive
            && touch.changes()
            && touch.target.path().is_some_and(|path| {
                is_within(markers, path) || matches!(touch.target, Target::Pattern(_))
            })
    };
    (place.workspace.is_some() && proposal.touches.iter().any(above)).then(|| markers.to_string())
}

/// Whether a part holds a script that nobody can read.
fn is_script(part: &Opaque<'_>) -> bool {
    matches!(
        part.reason,
        Reason::Unparsable
            | Reason::Nul
            | Reason::TooLong
            | Reason::TooDeep
            | Reason::TooMany
            | Reason::InlineScript
            | Reason::UnknownScript
            | Reason::Elsewhere
            | Reason::Environment
    )
}

/// A text among the arguments that is the path of a protected file.
fn named_argument(value: &Value, proposal: &Proposal<'_>, guarded: &Guarded<'_>) -> Option<String> {
    match value {
        Value::String(text) if text.len() <= PATH_BYTES_MAX && !text.contains('\n') => {
            let path = text.strip_prefix("file://").unwrap_or(text);
            let path = guarded.place.locate(path, &proposal.cwd);
            guarded.contains(&path).then_some(path)
        }
        Value::Array(items) => {
            items.iter().find_map(|item| named_argument(item, proposal, guarded))
        }
        Value::Object(fields) => {
            fields.values().find_map(|field| named_argument(field, proposal, guarded))
        }
        _ => None,
    }
}

/// The simple command as it is written.
fn part_of(proposal: &Proposal<'_>, number: u32) -> Option<String> {
    let Run::Line(line) = &proposal.run else { return None };
    super::excerpt(line, line.commands.get(number as usize)?)
}
