//! Separates certain results for one event from those that depend on unrecorded facts.

use std::collections::BTreeMap;

use jackline_engine::facts::{FileFact, FileKind, GitChangeFact, GitFact};
use jackline_engine::session::InterpretedEvent;
use jackline_engine::verdict::{Constraint, GuardName, SafetyEvent, SessionStop, ViolationType};
use jackline_engine::{
    Arguments, Decision, Event, EventKind, Fact, Facts, Query, Session, ToolProposed, Verdict,
    Violation,
};

use super::violation_source;

/// The possible kinds of a file at a path. Paths that a call names are the same for all kinds, so a
/// violation that occurs for each kind does not depend on the file.
const FILE_KINDS: [FileKind; 3] = [FileKind::Missing, FileKind::File, FileKind::Directory];

/// A guard whose result depends on an unrecorded fact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Undecidable {
    /// The guard, or the name of the rule.
    pub guard: String,
    /// The missing fact.
    pub missing: UnrecordedFact,
}

/// A kind of fact that was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnrecordedFact {
    /// The targets of symbolic links.
    Links,
    /// The existence and contents of files.
    Files,
    /// The state of a repository.
    Repository,
    /// The result of a check or of a policy written in Rust.
    Check,
}

impl UnrecordedFact {
    /// The kind as text.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Links => "the targets of symbolic links at that time",
            Self::Files => "the files at that time and their contents",
            Self::Repository => "the state of the git repository at that time",
            Self::Check => "the result of a check or a custom policy",
        }
    }
}

/// One event and its recorded facts.
#[derive(Clone, Copy)]
struct EventJudge<'a> {
    session: &'a Session,
    understood: &'a InterpretedEvent<'a>,
    is_proposed: bool,
    is_readable: bool,
    facts: &'a Facts,
}

/// The result for one event.
pub(super) struct BacktestDecision {
    pub(super) violations: Vec<Violation>,
    pub(super) undecidable: Vec<Undecidable>,
    pub(super) stop: Option<SessionStop>,
    pub(super) safety: Vec<SafetyEvent>,
    /// The overrides that would have taken effect.
    pub(super) constraints: Vec<Constraint>,
}

/// Judges an event by its recorded facts.
pub(super) fn judge(
    session: &Session,
    event: &Event,
    understood: &InterpretedEvent<'_>,
    facts: &Facts,
) -> BacktestDecision {
    let is_proposed = is_proposed(&event.kind);
    let is_readable = !matches!(
        event.kind,
        EventKind::ToolProposed(ToolProposed { args: Arguments::Text(_), .. })
    );
    EventJudge { session, understood, is_proposed, is_readable, facts }.judge()
}

impl EventJudge<'_> {
    fn judge(self) -> BacktestDecision {
        let mut verdict = self.session.decide_interpreted(self.understood, self.facts);
        // The agent is not responsible for the way of recording. Arguments that can't be parsed
        // were not a call.
        verdict.violations.retain(|violation| !self.is_of_recording(violation));
        let stop = verdict.stop.clone().filter(|_| verdict.is_enforced(Decision::Stop));
        let safety = std::mem::take(&mut verdict.safety);
        let constraints = std::mem::take(&mut verdict.constraints);
        let is_sure = || {
            let open = self.session.needs_for(self.understood, self.facts);
            !open.iter().any(is_about_proposal)
        };
        if !self.is_proposed || is_sure() {
            let undecidable = Vec::new();
            return BacktestDecision {
                violations: verdict.violations,
                undecidable,
                stop,
                safety,
                constraints,
            };
        }
        let worlds = FILE_KINDS.map(|kind| self.decide_with_file_kind(kind, false).violations);
        let [first, ..] = &worlds;
        let everywhere = |violation: &&Violation| {
            worlds.iter().all(|world| contains_violation(violation, world))
        };
        let weighed =
            |violation: &&Violation| can_be_certain(violation) && !self.is_of_recording(violation);
        let objections = first.iter().filter(weighed).filter(everywhere).cloned();
        let objections = objections.collect();
        let mut judged = BacktestDecision {
            violations: objections,
            undecidable: Vec::new(),
            stop,
            safety,
            constraints,
        };
        for violation in verdict.violations.iter().filter(|found| found.guard == GuardName::Rules) {
            match &violation.kind {
                ViolationType::RuleBroken => {
                    self.judge_broken_rule(violation, &worlds, &mut judged);
                }
                _ => judged.violations.push(violation.clone()),
            }
        }
        let others = verdict.violations.iter().chain(worlds.iter().flatten());
        let unsure = |violation: &&Violation| {
            violation.guard != GuardName::Rules && !self.is_of_recording(violation)
        };
        for violation in others.filter(unsure) {
            judged.add_if_undecidable(violation, &worlds);
        }
        judged
    }

    /// Whether a violation concerns the way of recording.
    fn is_of_recording(self, violation: &Violation) -> bool {
        violation.guard == GuardName::Protocol
            || (violation.guard == GuardName::Schema && !self.is_readable)
    }

    /// Judges a rule that can't be evaluated: because a fact is missing, or because the rule itself
    /// is broken.
    fn judge_broken_rule(
        self,
        violation: &Violation,
        worlds: &[Vec<Violation>],
        judged: &mut BacktestDecision,
    ) {
        if !worlds.iter().all(|world| contains_violation(violation, world)) {
            judged.add_undecidable(violation, UnrecordedFact::Files);
        } else if contains_violation(
            violation,
            &self.decide_with_file_kind(FileKind::Missing, true).violations,
        ) {
            judged.violations.push(violation.clone());
        } else {
            judged.add_undecidable(violation, UnrecordedFact::Repository);
        }
    }

    /// The verdict if all paths had the same kind.
    fn decide_with_file_kind(self, kind: FileKind, with_git: bool) -> Verdict {
        let mut facts = self.facts.clone();
        let ask = |query: &Query| match query {
            Query::File { .. } => {
                Fact::File(FileFact { bytes: 1, ..FileFact::without_details(kind) })
            }
            // One world in which git would change nothing.
            Query::GitChange { .. } if kind == FileKind::Missing => {
                Fact::GitChange(GitChangeFact::Known { files: BTreeMap::new() })
            }
            Query::FileSearch { search } => {
                let is_found = kind != FileKind::Missing;
                Fact::FileSearch(is_found.then(|| search.pattern.clone()))
            }
            Query::Git { .. } if with_git => Fact::Git(GitFact::default()),
            Query::Ignored { .. } if with_git => Fact::Ignored(false),
            _ => Fact::Unknown,
        };
        self.session.gather_facts(self.understood, &mut facts, ask);
        self.session.decide_interpreted(self.understood, &facts)
    }
}

impl BacktestDecision {
    /// Lists a violation as undecidable, because it does not occur for every kind of file.
    fn add_if_undecidable(&mut self, violation: &Violation, worlds: &[Vec<Violation>]) {
        if self.violations.iter().any(|sure| sure.guard == violation.guard) {
            return;
        }
        let has_guard =
            |world: &&Vec<Violation>| world.iter().any(|found| found.guard == violation.guard);
        let lacks = match worlds.iter().filter(has_guard).count() {
            0 => UnrecordedFact::Links,
            count if count < worlds.len() => UnrecordedFact::Files,
            _ => UnrecordedFact::Check,
        };
        self.add_undecidable(violation, lacks);
    }

    fn add_undecidable(&mut self, violation: &Violation, lacks: UnrecordedFact) {
        let undecidable = Undecidable { guard: violation_source(violation), missing: lacks };
        if !self.undecidable.contains(&undecidable) {
            self.undecidable.push(undecidable);
        }
    }
}

/// Whether the agent proposes something that a guard may refuse.
fn is_proposed(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ToolProposed(_)
            | EventKind::StopProposed(_)
            | EventKind::PlanProposed(_)
            | EventKind::OutputProposed(_)
    )
}

/// Whether a query concerns the proposal. Queries about changed files of the guard and about
/// approved agents do not.
fn is_about_proposal(query: &Query) -> bool {
    let is_unrelated =
        matches!(query, Query::Watched { .. } | Query::Definition | Query::Pins { .. });
    !is_unrelated && !matches!(query, Query::Feedback { .. })
}

/// Whether a violation that occurs for every kind of file is certain. A missing answer is not
/// certain. A completion result is not certain either, because it depends on the contents of files.
fn can_be_certain(violation: &Violation) -> bool {
    violation.kind != ViolationType::GuardFault
        && !matches!(violation.guard, GuardName::Rules | GuardName::Completion)
}

/// Whether a list contains the same violation.
fn contains_violation(violation: &Violation, world: &[Violation]) -> bool {
    world.iter().any(|found| {
        (&found.guard, &found.kind, &found.subtype, &found.message)
            == (&violation.guard, &violation.kind, &violation.subtype, &violation.message)
    })
}
