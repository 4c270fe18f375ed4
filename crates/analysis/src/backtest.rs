//! Decides recorded events again with another definition, without the machine on which they
//! happened.
//!
//! A backtest keeps the recorded course of events: calls that ran count as run, and refused calls
//! count as refused, whatever the new definition would decide. Neither the new definition nor the
//! recorded one pauses or stops the session; only people end and open it. The machine is not
//! available, so no file can be read and no repository asked. If a decision depends on a fact that
//! was not recorded, it is *undecidable*. It is listed as undecidable and never guessed.

mod gzip;
mod journal;
mod judge;
mod lines;
mod outcome;
mod recorded_course;
mod recorded_run;
mod result_memo;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jackline_decode::EventDecoder;
use jackline_engine::definition::{LoopSettings, Rule, Rules};
use jackline_engine::observe::{elide, observe_with_result};
use jackline_engine::verdict::{GuardName, SessionStop};
use jackline_engine::{
    Decision, Definition, Event, EventKind, Facts, Mode, Now, Record, Session, SessionLocation,
    SessionStarted, Timestamp, ToolProposed, Verdict, Violation, observe,
};

pub use journal::BacktestJournal;
pub use judge::{Undecidable, UnrecordedFact};
pub use lines::{BacktestInput, LINE_BYTES_MAX, LineEnd, open_lines, read_line};
pub use outcome::{BacktestCall, BacktestLoop, BacktestOutcome};
pub use recorded_run::RecordedRun;
pub use result_memo::ResultMemo;

use jackline_runtime::{AdapterTools, RuntimeFault, panic_text};
use judge::{BacktestDecision, judge};
use outcome::loops_in;
use recorded_course::add_remembered_parts;

/// Decides recorded runs with one definition, as if it were enforced.
#[derive(Debug, Clone)]
pub struct Backtest {
    definition: Arc<Definition>,
    place: Arc<SessionLocation>,
    tools_of_client: fn(&str) -> AdapterTools,
}

/// One backtest run. The caller passes the events in order.
#[derive(Debug)]
pub struct BacktestRun {
    /// `None` until the first event, which names the workspace.
    session: Option<Session>,
    definition: Arc<Definition>,
    place: Arc<SessionLocation>,
    now: Timestamp,
    outcome: BacktestOutcome,
    decoder: EventDecoder,
    /// The tools of the client that made the run, and how to get them.
    tools: AdapterTools,
    tools_of_client: fn(&str) -> AdapterTools,
}

/// The result for one event.
#[derive(Debug, Clone)]
pub struct BacktestStep {
    /// When the event happened, if this is recorded.
    pub at: Option<Timestamp>,
    /// Whether this is a proposed call.
    pub is_proposed: bool,
    /// The call, if the event belongs to one.
    pub call: Option<BacktestCall>,
    /// The strongest certain enforced decision.
    pub decision: Decision,
    /// The certain violations, enforced or only observed.
    pub violations: Vec<Violation>,
    /// The loops that were found at this event.
    pub loops: Vec<BacktestLoop>,
    /// The guards and rules without a certain result.
    pub undecidable: Vec<Undecidable>,
    /// The stop code with which the session would have been stopped here, the first time.
    pub stop: Option<SessionStop>,
}

impl Backtest {
    /// Decides as if the definition, all its rules and the loop guard were enforced, also if they
    /// only observe. The workspace of `place` is for runs that do not name theirs.
    pub fn new(definition: &Definition, place: SessionLocation) -> Self {
        let mode = Mode::Enforce;
        let rules = definition.rules.iter().map(|rule| Rule { mode, ..rule.clone() });
        let rules = Rules::new(rules.collect());
        let loops = LoopSettings { mode, ..definition.loops.clone() };
        let definition = Definition { mode, rules, loops, ..definition.clone() };
        Self {
            definition: Arc::new(definition),
            place: Arc::new(place),
            tools_of_client: |_| AdapterTools::default(),
        }
    }

    /// Sets how to get the tools of a client that made a run.
    #[must_use]
    pub fn with_client_tools(self, tools_of_client: fn(&str) -> AdapterTools) -> Self {
        Self { tools_of_client, ..self }
    }

    /// Starts a run.
    pub fn start(&self) -> BacktestRun {
        BacktestRun {
            session: None,
            definition: Arc::clone(&self.definition),
            place: Arc::clone(&self.place),
            now: Timestamp::from_ms(0),
            outcome: BacktestOutcome::default(),
            decoder: EventDecoder::default(),
            tools: AdapterTools::default(),
            tools_of_client: self.tools_of_client,
        }
    }
}

impl BacktestRun {
    /// Decides on an event, and then applies it as it was recorded. This removes the secrets of the
    /// event. Several runs may share a memo.
    pub fn event(
        &mut self,
        event: &mut Event,
        memo: &ResultMemo,
    ) -> Result<BacktestStep, RuntimeFault> {
        catch_unwind(AssertUnwindSafe(|| self.decide(event, memo)))
            .map_err(|panic| RuntimeFault::Panic(panic_text(panic.as_ref())))
    }

    /// The result of the run.
    pub fn finish(self) -> BacktestOutcome {
        self.outcome
    }

    fn decide(&mut self, event: &mut Event, memo: &ResultMemo) -> BacktestStep {
        let known_result = memo.redact(event, &self.definition);
        let of = self.session.as_ref().and_then(|session| session.finished_tool(event));
        let decoded = self.decoder.decode(event, &self.definition, of);
        let observed = match known_result {
            Some(known_result) => observe_with_result(event, known_result),
            None => observe(event),
        };
        elide(event, &self.definition);
        self.now = event.at.unwrap_or(self.now);
        let mut facts = Facts::at(Now::wall(self.now));
        facts.observed = observed;
        facts.decoded = decoded;
        facts.tools = self.existing_tools(event);
        let (definition, place) = (&self.definition, &self.place);
        let session = self.session.get_or_insert_with(|| begin_session(definition, place, event));
        let judged = session.event_interpreter().with_interpreted(event, |understood| {
            let judged = judge(session, event, understood, &facts);
            let seq = session.seq() + 1;
            let mut verdict = Verdict {
                session: Some(event.session.clone()),
                seq: Some(seq),
                ..Verdict::allow()
            };
            add_remembered_parts(&mut verdict, event, definition, &judged);
            let record = Record { seq, event, facts: &facts, verdict: &verdict };
            session.apply_interpreted(understood, &record);
            judged
        });
        self.add_to_outcome(event, judged)
    }

    /// The tools that exist as far as the client of the run is known.
    fn existing_tools(&mut self, event: &Event) -> Vec<String> {
        match &event.kind {
            EventKind::SessionStarted(SessionStarted { client: Some(client), .. }) => {
                self.tools = (self.tools_of_client)(client);
                Vec::new()
            }
            EventKind::ToolProposed(ToolProposed { tool, .. }) => {
                self.tools.facts_about(tool.as_str(), &self.definition)
            }
            _ => Vec::new(),
        }
    }

    fn add_to_outcome(&mut self, event: &Event, judged: BacktestDecision) -> BacktestStep {
        let BacktestDecision { violations: objections, undecidable, stop, safety, .. } = judged;
        // The first of the strongest violations.
        let enforced = objections.iter().rev().filter(|violation| violation.enforced);
        let strongest = enforced.max_by_key(|violation| violation.decision);
        let decision = strongest.map_or(Decision::Allow, |violation| violation.decision);
        let loops = loops_in(&safety);
        let outcome = &mut self.outcome;
        let call = outcome.call_of(event);
        let is_proposed = matches!(event.kind, EventKind::ToolProposed(_));
        if let Some(BacktestCall { index, .. }) = call {
            outcome.count_loops(index, &loops);
            if is_proposed {
                outcome.count_decision(index, decision, strongest);
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
        BacktestStep {
            at,
            is_proposed,
            call,
            decision,
            violations: objections,
            loops,
            undecidable,
            stop,
        }
    }
}

/// The source of a violation: the name of a rule, else the guard.
pub fn violation_source(violation: &Violation) -> String {
    match violation.guard {
        GuardName::Rules => violation.subtype.to_string(),
        _ => violation.guard.to_string(),
    }
}

fn begin_session(
    definition: &Arc<Definition>,
    place: &Arc<SessionLocation>,
    event: &Event,
) -> Session {
    let place = match &event.kind {
        EventKind::SessionStarted(SessionStarted { workspace: workspace @ Some(_), .. }) => {
            Arc::new(SessionLocation { workspace: workspace.clone(), ..(**place).clone() })
        }
        _ => Arc::clone(place),
    };
    Session::new(Arc::clone(definition), place)
}
