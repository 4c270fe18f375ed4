//! Decides again what really happened, under another definition, without the
//! world it happened in.
//!
//! A backtest is teacher-forced: what ran is applied as having run, whatever
//! would have been said about it. The world of then is gone: no file can be
//! looked at, no repository asked. So what hangs on a fact that is not there is
//! *undecidable*. It is listed as that, and never guessed.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jackline_engine::definition::{Redact, Rule, Rules};
use jackline_engine::{
    Decision, Definition, Event, EventKind, Facts, FileFact, FileKind, GitFact, Mode, Now, Place,
    Query, ROUNDS_MAX, Record, Session, Stop, Timestamp, Verdict, Violation, elide, observe,
};
use serde::{Serialize, Serializer};

use crate::door::panic_text;
use crate::redact::redact;
use crate::runtime::Fault;

/// What may have been at a path. Paths that a call names are the same in all
/// of these worlds, so what is objected to in each does not hang on them.
const WORLDS: [FileKind; 3] = [FileKind::Missing, FileKind::File, FileKind::Directory];

/// Decides recorded runs under one definition, as if it were enforced.
#[derive(Debug, Clone)]
pub struct Backtest {
    definition: Arc<Definition>,
    place: Place,
}

/// One run at work: give it the events in their order.
#[derive(Debug)]
pub struct BacktestRun {
    /// None until the first event says where it worked.
    session: Option<Session>,
    definition: Arc<Definition>,
    place: Place,
    now: Timestamp,
    outcome: BacktestOutcome,
}

/// What would have been said about one event.
#[derive(Debug, Clone)]
pub struct BacktestStep {
    /// The event as it was decided on: without secrets.
    pub event: Event,
    /// The number of the call, from 0, where it is one.
    pub index: Option<u64>,
    /// The strongest enforced answer that is sure.
    pub decision: Decision,
    /// Objections that are sure, enforced or only observed.
    pub objections: Vec<Violation>,
    /// What can't be said.
    pub undecidable: Vec<Undecidable>,
}

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

/// What would have become of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BacktestOutcome {
    /// The first call at which the agent would have been told that it loops.
    pub soft: Option<u64>,
    /// The first call at which a loop would have been stopped.
    pub hard: Option<u64>,
    /// The rule or guard behind the first call that would not have run.
    pub rule: Option<String>,
    /// The calls that would have been denied, by their numbers from 0.
    pub denied: Vec<u64>,
    /// The calls about which a person would have been asked.
    pub asked: Vec<u64>,
    /// The code with which the session would have been stopped.
    #[serde(serialize_with = "in_words")]
    pub stop: Option<Stop>,
    /// Guards and rules of which not everything can be said.
    pub undecidable: BTreeSet<String>,
    /// How many calls there were.
    #[serde(skip)]
    pub calls: u64,
}

impl Backtest {
    /// Runs are decided as if the definition and all its rules were enforced,
    /// on trial or not. The workspace of `place` is for runs that don't name
    /// theirs.
    pub fn new(definition: &Definition, place: Place) -> Self {
        let mode = Mode::Enforce;
        let rules = definition.rules.iter().map(|rule| Rule { mode, ..rule.clone() });
        let rules = Rules::new(rules.collect());
        let definition = Definition { mode, rules, ..definition.clone() };
        Self { definition: Arc::new(definition), place }
    }

    /// Begins with a run.
    pub fn start(&self) -> BacktestRun {
        BacktestRun {
            session: None,
            definition: Arc::clone(&self.definition),
            place: self.place.clone(),
            now: Timestamp::from_ms(0),
            outcome: BacktestOutcome::default(),
        }
    }
}

impl BacktestRun {
    /// Says what would have been decided on an event, and goes on as it went.
    pub fn event(&mut self, event: Event) -> Result<BacktestStep, Fault> {
        catch_unwind(AssertUnwindSafe(|| self.decided(event)))
            .map_err(|panic| Fault::Panic(panic_text(panic.as_ref())))
    }

    /// What would have become of the run.
    pub fn finish(self) -> BacktestOutcome {
        self.outcome
    }

    fn decided(&mut self, mut event: Event) -> BacktestStep {
        if self.definition.journal.redact == Redact::BuiltIn {
            redact(&mut event, &self.definition);
        }
        let observed = observe(&event);
        elide(&mut event, &self.definition);
        self.now = event.at.unwrap_or(self.now);
        let mut facts = Facts::at(Now::wall(self.now));
        facts.observed = observed;
        let (definition, place) = (&self.definition, &self.place);
        let session = self.session.get_or_insert_with(|| begin(definition, place, &event));
        let judged = Judge { session, event: &event, facts: &facts }.judge();
        let seq = session.seq() + 1;
        let verdict = went_on(&event, seq);
        session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        self.note(event, judged)
    }

    fn note(&mut self, event: Event, judged: Judged) -> BacktestStep {
        let Judged { objections, undecidable, stop } = judged;
        // The first of the strongest.
        let enforced = objections.iter().rev().filter(|objection| objection.enforced);
        let strongest = enforced.max_by_key(|objection| objection.decision);
        let decision = strongest.map_or(Decision::Allow, |objection| objection.decision);
        let outcome = &mut self.outcome;
        let index = matches!(event.kind, EventKind::ToolProposed { .. }).then_some(outcome.calls);
        if let Some(index) = index {
            outcome.calls += 1;
            match decision {
                Decision::Allow | Decision::Rewrite => {}
                Decision::Ask => outcome.asked.push(index),
                Decision::Deny | Decision::Pause | Decision::Stop => outcome.denied.push(index),
            }
            if decision >= Decision::Ask && outcome.rule.is_none() {
                outcome.rule = strongest.map(name_of);
            }
        }
        outcome.stop = outcome.stop.take().or(stop);
        outcome.undecidable.extend(undecidable.iter().map(|one| one.guard.clone()));
        BacktestStep { event, index, decision, objections, undecidable }
    }
}

#[expect(clippy::ref_option, reason = "serde calls it with this")]
fn in_words<S: Serializer>(stop: &Option<Stop>, serializer: S) -> Result<S::Ok, S::Error> {
    stop.as_ref().map(ToString::to_string).serialize(serializer)
}

/// What an objection comes from: a rule by its name, else the guard.
pub fn name_of(objection: &Violation) -> String {
    if objection.guard == "rules" { objection.subtype.clone() } else { objection.guard.clone() }
}

fn begin(definition: &Arc<Definition>, place: &Place, event: &Event) -> Session {
    let mut place = place.clone();
    if let EventKind::SessionStarted { workspace: Some(workspace), .. } = &event.kind {
        place.workspace = Some(workspace.clone());
    }
    Session::new(Arc::clone(definition), Arc::new(place))
}

/// The verdict that is applied: it happened.
fn went_on(event: &Event, seq: u64) -> Verdict {
    Verdict { session: Some(event.session.clone()), seq: Some(seq), ..Verdict::allow() }
}

/// One event and all that is known of its world.
#[derive(Clone, Copy)]
struct Judge<'a> {
    session: &'a Session,
    event: &'a Event,
    facts: &'a Facts,
}

struct Judged {
    objections: Vec<Violation>,
    undecidable: Vec<Undecidable>,
    stop: Option<Stop>,
}

impl Judge<'_> {
    fn judge(self) -> Judged {
        let mut known = self.session.decide(self.event, self.facts);
        // How the recording was made is nothing that the agent did.
        known.violations.retain(|found| found.kind != "protocol_violation");
        let stop = known.stop.clone().filter(|_| known.is_enforced(Decision::Stop));
        let open = self.session.needs(self.event, self.facts);
        if !is_proposed(&self.event.kind) || !open.iter().any(is_about_it) {
            return Judged { objections: known.violations, undecidable: Vec::new(), stop };
        }
        let worlds = WORLDS.map(|kind| self.suppose(kind, false).violations);
        let [first, ..] = &worlds;
        let everywhere = |found: &&Violation| worlds.iter().all(|world| is_in(found, world));
        let objections = first.iter().filter(|found| is_weighed(found)).filter(everywhere).cloned();
        let mut judged = Judged { objections: objections.collect(), undecidable: Vec::new(), stop };
        for objection in known.violations.iter().filter(|found| found.guard == "rules") {
            match objection.kind.as_str() {
                "rule_broken" => self.broken_rule(objection, &worlds, &mut judged),
                _ => judged.objections.push(objection.clone()),
            }
        }
        let others = known.violations.iter().chain(worlds.iter().flatten());
        let unsure =
            |found: &&Violation| found.guard != "rules" && found.kind != "protocol_violation";
        for objection in others.filter(unsure) {
            judged.weigh(objection, &worlds);
        }
        judged
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
        for _ in 0..ROUNDS_MAX {
            for query in &self.session.needs(self.event, &facts) {
                match query {
                    Query::File { path, .. } => {
                        facts
                            .files
                            .insert(path.clone(), FileFact { bytes: 1, ..FileFact::of(kind) });
                    }
                    Query::Git { dir } if with_git => {
                        facts.git.insert(dir.clone(), GitFact::default());
                    }
                    Query::Ignored { path } if with_git => {
                        facts.ignored.insert(path.clone(), false);
                    }
                    _ => {}
                }
            }
        }
        self.session.decide(self.event, &facts)
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
        EventKind::ToolProposed { .. }
            | EventKind::StopProposed { .. }
            | EventKind::PlanProposed { .. }
            | EventKind::OutputProposed { .. }
    )
}

/// Whether a question is about what is proposed. Whether somebody changed files
/// behind the guard's back is not.
fn is_about_it(query: &Query) -> bool {
    !matches!(query, Query::Watched { .. } | Query::Definition | Query::Feedback { .. })
}

/// Whether an objection that is the same in every world is sure. One that says
/// that nobody answered is not, nor is one about the end of a task: what was
/// done is all in the files.
fn is_weighed(objection: &Violation) -> bool {
    !matches!(&*objection.kind, "guard_fault" | "protocol_violation")
        && !matches!(&*objection.guard, "rules" | "completion")
}

/// Whether a world has the same objection.
fn is_in(objection: &Violation, world: &[Violation]) -> bool {
    world.iter().any(|found| {
        (&found.guard, &found.kind, &found.subtype, &found.message)
            == (&objection.guard, &objection.kind, &objection.subtype, &objection.message)
    })
}
