//! What is sure about one event, and what hangs on a world that is gone.

use jackline_engine::facts::{FileFact, FileKind, GitFact};
use jackline_engine::session::Understood;
use jackline_engine::verdict::{Constraint, GuardName, SafetyEvent, Stop, ViolationType};
use jackline_engine::{
    Arguments, Decision, Event, EventKind, Fact, Facts, Query, Session, ToolProposed, Verdict,
    Violation,
};

use super::name_of;

/// What may have been at a path. Paths that a call names are the same in all
/// of these worlds, so what is objected to in each does not hang on them.
const WORLDS: [FileKind; 3] = [FileKind::Missing, FileKind::File, FileKind::Directory];

/// A guard that hangs on what is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Undecidable {
    /// The guard, or the rule by its name.
    pub guard: String,
    /// What would have to be known.
    pub lacks: Lack,
}

/// What a recording does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Where symbolic links led.
    Links,
    /// Which files were there, and what was in them.
    Files,
    /// What a repository said.
    Repository,
    /// What a check, or a policy written in Rust, would have said.
    Check,
}

impl Lack {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Links => "where symbolic links led then",
            Self::Files => "which files were there then, and what was in them",
            Self::Repository => "what git said then",
            Self::Check => "what a check or a policy of your own would have said",
        }
    }
}

/// One event and all that is known of its world.
#[derive(Clone, Copy)]
struct Judge<'a> {
    session: &'a Session,
    understood: &'a Understood<'a>,
    is_proposed: bool,
    is_readable: bool,
    facts: &'a Facts,
}

/// What can be said about it.
pub(super) struct Judged {
    pub(super) objections: Vec<Violation>,
    pub(super) undecidable: Vec<Undecidable>,
    pub(super) stop: Option<Stop>,
    pub(super) safety: Vec<SafetyEvent>,
    /// Overrides that would have been put in force.
    pub(super) constraints: Vec<Constraint>,
}

/// Judges an event by what is known of its world.
pub(super) fn judge(
    session: &Session,
    event: &Event,
    understood: &Understood<'_>,
    facts: &Facts,
) -> Judged {
    let is_proposed = is_proposed(&event.kind);
    let is_readable = !matches!(
        event.kind,
        EventKind::ToolProposed(ToolProposed { args: Arguments::Text(_), .. })
    );
    Judge { session, understood, is_proposed, is_readable, facts }.judge()
}

impl Judge<'_> {
    fn judge(self) -> Judged {
        let mut known = self.session.decide_on(self.understood, self.facts);
        // How the recording was made is nothing that the agent did, and what
        // can't be read as a call was none.
        known.violations.retain(|found| !self.is_of_recording(found));
        let stop = known.stop.clone().filter(|_| known.is_enforced(Decision::Stop));
        let safety = std::mem::take(&mut known.safety);
        let constraints = std::mem::take(&mut known.constraints);
        let is_sure = || {
            let open = self.session.needs_of(self.understood, self.facts);
            !open.iter().any(is_about_it)
        };
        if !self.is_proposed || is_sure() {
            let undecidable = Vec::new();
            return Judged { objections: known.violations, undecidable, stop, safety, constraints };
        }
        let worlds = WORLDS.map(|kind| self.suppose(kind, false).violations);
        let [first, ..] = &worlds;
        let everywhere = |found: &&Violation| worlds.iter().all(|world| is_in(found, world));
        let weighed = |found: &&Violation| is_weighed(found) && !self.is_of_recording(found);
        let objections = first.iter().filter(weighed).filter(everywhere).cloned();
        let objections = objections.collect();
        let mut judged = Judged { objections, undecidable: Vec::new(), stop, safety, constraints };
        for objection in known.violations.iter().filter(|found| found.guard == GuardName::Rules) {
            match &objection.kind {
                ViolationType::RuleBroken => self.broken_rule(objection, &worlds, &mut judged),
                _ => judged.objections.push(objection.clone()),
            }
        }
        let others = known.violations.iter().chain(worlds.iter().flatten());
        let unsure =
            |found: &&Violation| found.guard != GuardName::Rules && !self.is_of_recording(found);
        for objection in others.filter(unsure) {
            judged.weigh(objection, &worlds);
        }
        judged
    }

    /// Whether an objection is about how something was recorded.
    fn is_of_recording(self, found: &Violation) -> bool {
        found.guard == GuardName::Protocol
            || (found.guard == GuardName::Schema && !self.is_readable)
    }

    /// A rule that can't be answered: for want of facts, or because it is
    /// broken and would be then, too.
    fn broken_rule(self, objection: &Violation, worlds: &[Vec<Violation>], judged: &mut Judged) {
        if !worlds.iter().all(|world| is_in(objection, world)) {
            judged.unsure(objection, Lack::Files);
        } else if is_in(objection, &self.suppose(FileKind::Missing, true).violations) {
            judged.objections.push(objection.clone());
        } else {
            judged.unsure(objection, Lack::Repository);
        }
    }

    /// The verdict in a world in which every path looks alike.
    fn suppose(self, kind: FileKind, with_git: bool) -> Verdict {
        let mut facts = self.facts.clone();
        let ask = |query: &Query| match query {
            Query::File { .. } => Fact::File(FileFact { bytes: 1, ..FileFact::of(kind) }),
            Query::Git { .. } if with_git => Fact::Git(GitFact::default()),
            Query::Ignored { .. } if with_git => Fact::Ignored(false),
            _ => Fact::Unknown,
        };
        self.session.gather_known(self.understood, &mut facts, ask);
        self.session.decide_on(self.understood, &facts)
    }
}

impl Judged {
    /// What is not the same in every world can't be decided.
    fn weigh(&mut self, objection: &Violation, worlds: &[Vec<Violation>]) {
        if self.objections.iter().any(|sure| sure.guard == objection.guard) {
            return;
        }
        let is_said =
            |world: &&Vec<Violation>| world.iter().any(|found| found.guard == objection.guard);
        let lacks = match worlds.iter().filter(is_said).count() {
            0 => Lack::Links,
            said if said < worlds.len() => Lack::Files,
            _ => Lack::Check,
        };
        self.unsure(objection, lacks);
    }

    fn unsure(&mut self, objection: &Violation, lacks: Lack) {
        let undecidable = Undecidable { guard: name_of(objection), lacks };
        if !self.undecidable.contains(&undecidable) {
            self.undecidable.push(undecidable);
        }
    }
}

/// Whether the agent wants something, and may be told that it can't have it.
fn is_proposed(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ToolProposed(_)
            | EventKind::StopProposed(_)
            | EventKind::PlanProposed(_)
            | EventKind::OutputProposed(_)
    )
}

/// Whether a question is about what is proposed. Whether somebody changed files
/// behind the guard's back is not, nor whom a person has approved.
fn is_about_it(query: &Query) -> bool {
    let beside = matches!(query, Query::Watched { .. } | Query::Definition | Query::Pins { .. });
    !beside && !matches!(query, Query::Feedback { .. })
}

/// Whether an objection that is the same in every world is sure. One that says
/// that nobody answered is not, nor is one about the end of a task: what was
/// done is all in the files.
fn is_weighed(objection: &Violation) -> bool {
    objection.kind != ViolationType::GuardFault
        && !matches!(objection.guard, GuardName::Rules | GuardName::Completion)
}

/// Whether a world has the same objection.
fn is_in(objection: &Violation, world: &[Violation]) -> bool {
    world.iter().any(|found| {
        (&found.guard, &found.kind, &found.subtype, &found.message)
            == (&objection.guard, &objection.kind, &objection.subtype, &objection.message)
    })
}
