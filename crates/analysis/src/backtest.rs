//! Decides again what really happened, under another definition, without the
//! world it happened in.
//!
//! A backtest is teacher-forced: what ran is applied as having run, and what was
//! refused then as refused, whatever would have been said about it. Nothing is held
//! or stopped for what a guard says, neither by this definition nor by that of then:
//! only people end and open a session. The world of then is gone: no file can be looked at, no repository asked. So what hangs on
//! a fact that was not recorded is *undecidable*. It is listed as that, and never
//! guessed.

mod gzip;
mod journal;
mod judge;
mod lines;
mod memo;
mod outcome;
mod trajectory;
mod went;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jackline_decode::Decoder;
use jackline_engine::definition::{Loops, Rule, Rules};
use jackline_engine::observe::{elide, observe_known};
use jackline_engine::verdict::{GuardName, Stop};
use jackline_engine::{
    Decision, Definition, Event, EventKind, Facts, Mode, Now, Place, Record, Session,
    SessionStarted, Timestamp, Verdict, Violation, observe,
};

pub use journal::BacktestJournal;
pub use judge::{Lack, Undecidable};
pub use lines::{LINE_BYTES_MAX, LineEnd, Source, open_lines, read_line};
pub use memo::Memo;
pub use outcome::{BacktestOutcome, Call, FoundLoop};
pub use trajectory::Trajectory;

use jackline_runtime::{Fault, panic_text};
use judge::{Judged, judge};
use outcome::loops_in;
use went::remember;

/// Decides recorded runs under one definition, as if it were enforced.
#[derive(Debug, Clone)]
pub struct Backtest {
    definition: Arc<Definition>,
    place: Arc<Place>,
}

/// One run at work: give it the events in their order.
#[derive(Debug)]
pub struct BacktestRun {
    /// None until the first event says where it worked.
    session: Option<Session>,
    definition: Arc<Definition>,
    place: Arc<Place>,
    now: Timestamp,
    outcome: BacktestOutcome,
    decoder: Decoder,
}

/// What would have been said about one event.
#[derive(Debug, Clone)]
pub struct BacktestStep {
    /// When it happened, where that was recorded.
    pub at: Option<Timestamp>,
    /// Whether this is a call that is proposed, and no result or anything else.
    pub is_proposed: bool,
    /// The call, where it is about one.
    pub call: Option<Call>,
    /// The strongest enforced answer that is sure.
    pub decision: Decision,
    /// Objections that are sure, enforced or only observed.
    pub objections: Vec<Violation>,
    /// Loops that were found here.
    pub loops: Vec<FoundLoop>,
    /// What can't be said.
    pub undecidable: Vec<Undecidable>,
    /// The code with which the session would have been stopped here, the first time.
    pub stop: Option<Stop>,
}

impl Backtest {
    /// Runs are decided as if the definition, all its rules and the loop guard
    /// were enforced, on trial or not. The workspace of `place` is for runs that
    /// don't name theirs.
    pub fn new(definition: &Definition, place: Place) -> Self {
        let mode = Mode::Enforce;
        let rules = definition.rules.iter().map(|rule| Rule { mode, ..rule.clone() });
        let rules = Rules::new(rules.collect());
        let loops = Loops { mode, ..definition.loops.clone() };
        let definition = Definition { mode, rules, loops, ..definition.clone() };
        Self { definition: Arc::new(definition), place: Arc::new(place) }
    }

    /// Begins with a run.
    pub fn start(&self) -> BacktestRun {
        BacktestRun {
            session: None,
            definition: Arc::clone(&self.definition),
            place: Arc::clone(&self.place),
            now: Timestamp::from_ms(0),
            outcome: BacktestOutcome::default(),
            decoder: Decoder::default(),
        }
    }
}

impl BacktestRun {
    /// Says what would have been decided on an event, and goes on as it went. The event
    /// loses its secrets. The memo may be that of other runs.
    pub fn event(&mut self, event: &mut Event, memo: &Memo) -> Result<BacktestStep, Fault> {
        catch_unwind(AssertUnwindSafe(|| self.decided(event, memo)))
            .map_err(|panic| Fault::Panic(panic_text(panic.as_ref())))
    }

    /// What would have become of the run.
    pub fn finish(self) -> BacktestOutcome {
        self.outcome
    }

    fn decided(&mut self, event: &mut Event, memo: &Memo) -> BacktestStep {
        let says = memo.redact(event, &self.definition);
        let of = self.session.as_ref().and_then(|session| session.tool_of(event));
        let decoded = self.decoder.decode(event, &self.definition, of);
        let observed = match says {
            Some(says) => observe_known(event, says),
            None => observe(event),
        };
        elide(event, &self.definition);
        self.now = event.at.unwrap_or(self.now);
        let mut facts = Facts::at(Now::wall(self.now));
        facts.observed = observed;
        facts.decoded = decoded;
        let (definition, place) = (&self.definition, &self.place);
        let session = self.session.get_or_insert_with(|| begin(definition, place, event));
        let judged = session.ground().understand(event, |understood| {
            let judged = judge(session, event, understood, &facts);
            let seq = session.seq() + 1;
            let mut verdict = Verdict {
                session: Some(event.session.clone()),
                seq: Some(seq),
                ..Verdict::allow()
            };
            remember(&mut verdict, event, definition, &judged);
            let record = Record { seq, event, facts: &facts, verdict: &verdict };
            session.apply_on(understood, &record);
            judged
        });
        self.note(event, judged)
    }

    fn note(&mut self, event: &Event, judged: Judged) -> BacktestStep {
        let Judged { objections, undecidable, stop, safety, .. } = judged;
        // The first of the strongest.
        let enforced = objections.iter().rev().filter(|objection| objection.enforced);
        let strongest = enforced.max_by_key(|objection| objection.decision);
        let decision = strongest.map_or(Decision::Allow, |objection| objection.decision);
        let loops = loops_in(&safety);
        let outcome = &mut self.outcome;
        let call = outcome.call(event);
        let is_proposed = matches!(event.kind, EventKind::ToolProposed(_));
        if let Some(Call { index, .. }) = call {
            outcome.loops(index, &loops);
            if is_proposed {
                outcome.proposed(index, decision, strongest);
            }
        }
        let stop = stop.filter(|_| outcome.stop.is_none());
        if stop.is_some() {
            outcome.stop.clone_from(&stop);
        }
        for one in &undecidable {
            if !outcome.undecidable.contains(&one.guard) {
                outcome.undecidable.insert(one.guard.clone());
            }
        }
        let at = event.at;
        BacktestStep { at, is_proposed, call, decision, objections, loops, undecidable, stop }
    }
}

/// What an objection comes from: a rule by its name, else the guard.
pub fn name_of(objection: &Violation) -> String {
    match objection.guard {
        GuardName::Rules => objection.subtype.to_string(),
        _ => objection.guard.to_string(),
    }
}

fn begin(definition: &Arc<Definition>, place: &Arc<Place>, event: &Event) -> Session {
    let place = match &event.kind {
        EventKind::SessionStarted(SessionStarted { workspace: workspace @ Some(_), .. }) => {
            Arc::new(Place { workspace: workspace.clone(), ..(**place).clone() })
        }
        _ => Arc::clone(place),
    };
    Session::new(Arc::clone(definition), place)
}
