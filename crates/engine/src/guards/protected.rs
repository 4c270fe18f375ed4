//! The guard's own files: an agent can't write them through any tool.
//!
//! What a call names is refused before it runs, in every mode. What an opaque
//! program does in secret shows at the next gate: files that were changed while
//! a call was under way are given back, and the session waits for a person.

mod copies;
mod names;
pub(crate) mod paths;
mod program;
mod ways;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, Word};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::digest::Digest;
use crate::event::{Event, EventKind, PromptSource, PromptSubmitted, ToolFinished};
use crate::facts::{FileKind, Queries, Query, Wants, WatchedFact};
use crate::id::CallId;
use crate::place::{Place, Target};
use crate::proposal::{Proposal, Run, Touch};
use crate::state::{Call, PauseCause, Paused, ReportFile, State};
use crate::tool::Kind;
use crate::verdict::{Class, Decision, GuardName, Violation, ViolationSubtype, ViolationType};

pub(crate) use paths::watch_list;
use paths::{Guarded, is_anywhere, lies_within, matches_pattern};
use ways::{Leads, Way};

pub(crate) struct Protected;

impl Guard for Protected {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        if compares(&look.event.kind) && look.facts.watched.is_none() {
            let mut paths = watch_list(look.place, look.definition);
            let out = look.state.reports.out.iter();
            paths.extend(out.map(|report| report.path().to_string()));
            let watched = &look.state.watched;
            let (files, since) = (watched.tracked(&paths), watched.looked_at);
            queries.ask(Query::Watched { files, since });
        }
        let Some(proposal) = look.proposal else { return };
        let unseen = ways::ways(look, proposal).into_iter().filter_map(Way::unseen);
        let inside = copies::sources(look, proposal);
        for path in unseen.chain(inside).chain(markers(look.place, proposal)) {
            if !look.facts.files.contains_key(&path) {
                queries.ask(Query::File { path, wants: Wants::default() });
            }
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let fate = if look.facts.is_off() {
            "it stays, because the guard is switched off"
        } else {
            "it is given back as it was"
        };
        for (path, _) in changed_in_a_call(look) {
            answers.insist(tampered(look, path, "changed", fate));
        }
        let Some(proposal) = look.proposal else { return };
        if let Some(offence) = offence(look, proposal) {
            answers.insist(offence.objection());
        }
        if let Some(objection) = program::objection(proposal) {
            answers.insist(objection);
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let (off, now) = (record.facts.is_off(), record.facts.now.wall);
        if is_suspected(state) {
            state.watched.at_work_at = Some(now);
        }
        if compares(&record.event.kind) {
            state.watched.looked_at = Some(now);
        }
        let suspected = is_suspected(state) && !off;
        if let Some(seen) = &record.facts.watched {
            for (path, fact) in seen {
                let differs = state.watched.differs(path, fact);
                let damaged = state.watched.is_damaged(path) && !off;
                if differs && !fact.by_person && (suspected || damaged) {
                    state.watched.damage(path);
                } else {
                    state.watched.accept(path, fact);
                }
            }
        }
        let damage = |v: &Violation| {
            v.subtype == ViolationSubtype::ChangedDuringCall
                && v.enforced
                && v.decision == Decision::Pause
        };
        // What it waits for already stays: it says how to go on.
        let waits = super::reports::wanted(state).is_some();
        if record.verdict.violations.iter().any(damage) && !waits {
            let why = "a protected file was changed during a call".to_string();
            state.paused = Some(Paused::by_guard(PauseCause::Protected, why));
        }
        match &record.event.kind {
            EventKind::ToolFinished(ToolFinished { background: true, .. }) => {
                state.watched.loose = true;
            }
            // The client's own prompts tell of what ended in the background, and
            // not that all of it has.
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
            | EventKind::SessionStarted(_) => state.watched.loose = false,
            _ => {}
        }
    }
}

/// What the agent did to a file while a call was under way, and what comes of it.
pub(super) fn tampered(look: Look<'_>, path: &str, did: &str, fate: &str) -> Objection {
    // A person may remove a report, and be taken for the agent as long as a call
    // does not come back.
    let way_on = ReportFile::at(path).and_then(ReportFile::cleared_by);
    let call = way_on.and_then(|_| at_work(look.state));
    let call = call.map_or_else(String::new, |call| format!(" (`{call}`)"));
    // Who breaks a call off and then writes to the agent is there, and may have
    // made the change: they are told, and not held up.
    let (decision, correction) = if is_person_speaking(look.event) {
        let correction = "if the change was a person's, they can make it again now";
        (Decision::Allow, correction.to_string())
    } else if let Some(way_on) = way_on {
        let correction = format!(
            "end the turn and tell the person; `{way_on}` goes on at once, also where a call never \
             comes back"
        );
        (Decision::Pause, correction)
    } else {
        let correction = "end the turn and tell the person; they can change it themselves";
        (Decision::Pause, correction.to_string())
    };
    Objection {
        guard: GuardName::Protected,
        kind: ViolationType::ProtectedPath,
        subtype: ViolationSubtype::ChangedDuringCall,
        class: Class::Terminal,
        decision,
        message: format!("`{path}` was {did} while a call was under way{call}; {fate}"),
        location: Some(path.to_string()),
        correction: Some(correction),
    }
}

/// A call that may be at work on files, by its id.
fn at_work(state: &State) -> Option<&str> {
    state.in_flight.iter().find(|call| may_write(call))?.id.as_ref().map(CallId::as_str)
}

/// Whether this is a gate at which protected files are compared.
pub(super) fn compares(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::SessionStarted(_)
            | EventKind::PromptSubmitted(_)
            | EventKind::ToolProposed(_)
            | EventKind::ToolFinished(_)
            | EventKind::StopProposed(_)
    )
}

/// Whether the agent may be at work on files just now.
pub(crate) fn is_suspected(state: &State) -> bool {
    state.watched.loose || state.in_flight.iter().any(may_write)
}

/// Whether an open call may be writing files.
fn may_write(call: &Call) -> bool {
    !call.asked && !matches!(call.kind, Kind::Read | Kind::Search | Kind::Think | Kind::Fetch)
}

fn is_person_speaking(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
    )
}

/// Protected files that were changed while a call was under way.
fn changed_in_a_call(look: Look<'_>) -> impl Iterator<Item = (&str, &WatchedFact)> {
    let suspected = is_suspected(look.state);
    let seen = look.facts.watched.iter().flatten();
    let watched = &look.state.watched;
    seen.filter(move |(path, fact)| {
        (suspected || watched.is_damaged(path)) && watched.differs(path, fact) && !fact.by_person
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

/// A call that would write a protected path.
struct Offence {
    path: String,
    /// The part of the call that does.
    part: Option<String>,
    /// Whether that is known, or only can't be ruled out.
    sure: bool,
}

impl Offence {
    /// The path is named by something that can't be seen into.
    fn named(path: String) -> Self {
        Self { path, part: None, sure: true }
    }

    fn objection(self) -> Objection {
        let path = self.path;
        let (message, correction) = match self.part {
            _ if !self.sure => (
                format!("`{path}` could not be looked at, and it may lead to a protected path"),
                "change fewer files in one call, by their plain paths",
            ),
            Some(part) => (
                format!("`{path}` is protected, and `{part}` would write it"),
                "leave it as it is; a person can change it outside of the session",
            ),
            None => (
                format!("`{path}` is protected and can't be written by an agent"),
                "leave it as it is; a person can change it outside of the session",
            ),
        };
        Objection {
            guard: GuardName::Protected,
            kind: ViolationType::ProtectedPath,
            subtype: ViolationSubtype::ProtectedWrite,
            class: Class::Recoverable,
            decision: Decision::Deny,
            message,
            location: Some(path),
            correction: Some(correction.to_string()),
        }
    }
}

/// The first protected path that a call would write.
fn offence(look: Look<'_>, proposal: &Proposal<'_>) -> Option<Offence> {
    let guarded = Guarded { place: look.place, definition: look.definition };
    for way in ways::ways(look, proposal) {
        let (path, sure) = match &way.leads {
            Leads::To(target) => (written(look, proposal, way.touch, target, &guarded), true),
            // What is not known is refused.
            Leads::Nowhere(path) => (Some(path.clone()), false),
        };
        if let Some(path) = path {
            let part = way.touch.command.and_then(|number| part_of(proposal, number));
            return Some(Offence { path, part, sure });
        }
    }
    let copied = copies::copied(look, proposal);
    if let Some(path) = copied.or_else(|| names::named(look, proposal, &guarded)) {
        return Some(Offence::named(path));
    }
    let described = proposal
        .tool
        .declared
        .is_some_and(|tool| !(tool.paths.read.is_empty() && tool.paths.write.is_empty()));
    let unseen = match proposal.tool.kind {
        // A tool that nobody has described may write what it is given.
        Kind::Other | Kind::Effect | Kind::Spawn => true,
        // One that writes has to write something.
        Kind::Write | Kind::Edit | Kind::Delete => proposal.touches.is_empty(),
        _ => false,
    };
    let args = proposal.args.filter(|_| unseen && !described)?;
    names::named_argument(args, proposal, &guarded).map(Offence::named)
}

/// The protected path that is written by touching this, if one is.
fn written(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    touch: &Touch,
    target: &Target,
    guarded: &Guarded<'_>,
) -> Option<String> {
    let holds = touch.recursive
        && (touch.access == Access::Delete
            || (touch.access == Access::Write && proposal.program(touch.command) == "git")
            // A second name of everything in a directory.
            || (touch.access == Access::Touch && proposal.program(touch.command) == "cp"));
    match target {
        Target::At(path) => {
            let fact = look.facts.files.get(path);
            let real = fact.and_then(|fact| fact.real.as_deref());
            let mut places = [Some(path.as_str()), real].into_iter().flatten();
            let below = |directory: &str| {
                concrete(look).into_iter().find(|known| {
                    lies_within(known, directory)
                        || lies_within(&look.place.absolute(known), directory)
                })
            };
            let hit = places.find_map(|place| {
                let itself = guarded.contains(place).then(|| place.to_string());
                itself.or_else(|| holds.then(|| below(place)).flatten())
            });
            hit.filter(|_| !is_impossible(look, proposal, touch, path))
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
        Target::Unknown(text) if is_copy_of_itself(proposal, touch, text, guarded) => None,
        Target::Unknown(text) => guarded.may_be(text).then(|| text.clone()),
        Target::Repository(_) => {
            let magic = |word: &Word<'_>| word.text.starts_with(':');
            let command = touch.command.and_then(|at| proposal.commands().get(at as usize));
            let whole = command.is_some_and(|command| command.arguments().iter().any(magic));
            let named = names::word_of(look, proposal, touch.command, guarded);
            named.or_else(|| concrete(look).into_iter().find(|_| whole))
        }
    }
}

/// Whether a protected file is copied to a place that nobody knows under its own
/// name: if it should land where it lies, it stays what it is.
fn is_copy_of_itself(
    proposal: &Proposal<'_>,
    touch: &Touch,
    text: &str,
    guarded: &Guarded<'_>,
) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
    let mine = |other: &&Touch| other.command == touch.command && !other.changes();
    let read = proposal.touches.iter().filter(mine).filter_map(|other| other.target.path());
    let mut same = read.filter(|path| name(path) == name(text)).peekable();
    matches!(proposal.program(touch.command), "cp" | "install" | "rsync")
        && !is_anywhere(text)
        && same.peek().is_some()
        && same.all(|path| guarded.contains(path))
}

/// Whether a path lies in something that is no directory: a copy goes to one of
/// two places, and this is the other.
fn is_impossible(look: Look<'_>, proposal: &Proposal<'_>, touch: &Touch, path: &str) -> bool {
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    let is_parent =
        |other: &&Touch| other.changes() && other.target.path().is_some_and(|path| path == parent);
    let mut around = proposal.touches.iter().filter(is_parent).peekable();
    let alternative = around.peek().is_some() && around.all(|one| one.command == touch.command);
    let fact = look.facts.files.get(parent);
    alternative && fact.is_some_and(|fact| matches!(fact.kind, FileKind::File | FileKind::Missing))
}

/// Protected paths that are known to be there.
fn concrete(look: Look<'_>) -> Vec<String> {
    let mut known: Vec<String> = look.state.watched.there().map(ToString::to_string).collect();
    if let Some(seen) = &look.facts.watched {
        known.extend(seen.iter().filter(|(_, fact)| fact.sha256.is_some()).map(|(p, _)| p.clone()));
    }
    known.extend(look.place.definition.iter().map(|path| look.place.locate(path, ".")));
    let homes = look.place.state_home.iter().chain(&look.place.own);
    known.extend(homes.map(|path| look.place.locate(path, ".")));
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
                lies_within(markers, path) || matches!(touch.target, Target::Pattern(_))
            })
    };
    (place.workspace.is_some() && proposal.touches.iter().any(above)).then(|| markers.to_string())
}

/// The simple command as it is written.
fn part_of(proposal: &Proposal<'_>, number: u32) -> Option<String> {
    let Run::Line(line) = &proposal.run else { return None };
    super::excerpt(line, line.commands.get(number as usize)?)
}
