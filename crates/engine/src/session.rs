//! One agent run: asks, decides, and remembers.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::definition::{Definition, Mode, PolicyRule};
use crate::digest::Digest;
use crate::event::{Action, Control, Event, EventKind, Seen, ToolFinished, ToolProposed};
use crate::facts::{Fact, Facts, Markers, Queries, Query, ROUNDS_MAX};
use crate::guards::limits::steps;
use crate::guards::{Answers, Fold, GUARDS, Look, Objection, control, feedback, protected, reads};
use crate::id::CallId;
use crate::lifecycle;
use crate::place::Place;
use crate::proposal::{Heard, Proposal};
use crate::reload;
use crate::state::{Clock, Key, Order, Phase, PolicyState, STATE_FORMAT, State, Summary};
use crate::time::Timestamp;
use crate::verdict::{
    Bypass, Class, Completion, Decision, GuardName, Stop, StopDetail, Verdict, ViolationSubtype,
    ViolationType,
};

/// One agent run under a definition.
///
/// ```
/// use std::sync::Arc;
///
/// use jackline_engine::wire::parse_line;
/// use jackline_engine::{Decision, Definition, Facts, Now, Place, Record, Session, SessionId, Timestamp};
///
/// let mut session = Session::new(Arc::new(Definition::default()), Arc::new(Place::default()));
/// let line = br#"{"event":"tool_proposed","call":"c1","tool":"echo","args":{}}"#;
/// let event = parse_line(line, Some(&SessionId::parse("s1")?))?;
///
/// // A caller answers the queries of `session.needs(&event, &facts)` first. Of a world without
/// // files there is nothing to answer.
/// let facts = Facts::at(Now::wall(Timestamp::from_ms(0)));
///
/// let verdict = session.decide(&event, &facts);
/// assert_eq!(verdict.decision, Decision::Allow);
/// // A caller makes the record durable before it shows the verdict.
/// session.apply(&Record { seq: 1, event: &event, facts: &facts, verdict: &verdict });
/// assert_eq!(session.seq(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    definition: Arc<Definition>,
    place: Arc<Place>,
    state: State,
}

/// An event with what was decided on it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Its place in the journal.
    pub seq: u64,
    /// What happened.
    pub event: &'a Event,
    /// What the decision rested on.
    pub facts: &'a Facts,
    /// What was decided.
    pub verdict: &'a Verdict,
}

/// What events are understood with. It is apart from the session, which changes
/// while an event is still the same.
#[derive(Debug, Clone)]
pub struct Ground {
    definition: Arc<Definition>,
    place: Arc<Place>,
}

/// An event that is understood, for whoever has more than one question about it.
#[derive(Debug)]
pub struct Understood<'a> {
    event: &'a Event,
    proposal: Option<Proposal<'a>>,
}

/// An event that was read. What is understood of it borrows from here.
#[derive(Debug)]
pub struct EventReading<'a> {
    ground: &'a Ground,
    event: &'a Event,
    heard: Option<Heard<'a>>,
}

impl EventReading<'_> {
    /// Understands the event.
    pub fn understand(&self) -> Understood<'_> {
        let Ground { definition, place } = self.ground;
        let proposal = self.heard.as_ref().map(|it| Proposal::of(definition, place, it));
        Understood { event: self.event, proposal }
    }
}

impl Ground {
    /// Reads an event: the first half of understanding it.
    pub fn read<'a>(&'a self, event: &'a Event) -> EventReading<'a> {
        EventReading { ground: self, event, heard: Heard::of(&self.definition, event) }
    }

    /// Understands an event, and does everything else with that.
    pub fn understand<T>(&self, event: &Event, then: impl FnOnce(&Understood<'_>) -> T) -> T {
        then(&self.read(event).understand())
    }

    /// Whether a session still understands its events with this: neither its definition nor
    /// its place was replaced.
    pub fn is_of(&self, session: &Session) -> bool {
        Arc::ptr_eq(&self.definition, &session.definition)
            && Arc::ptr_eq(&self.place, &session.place)
    }
}

impl<'a> Understood<'a> {
    /// The event.
    pub fn event(&self) -> &'a Event {
        self.event
    }

    /// What the event proposes.
    pub(crate) fn proposal(&self) -> Option<&Proposal<'a>> {
        self.proposal.as_ref()
    }
}

/// Why a saved state can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A newer Jackline wrote it.
    #[error(
        "the state has format {0}, and this jackline knows up to {STATE_FORMAT}; update jackline"
    )]
    Newer(u16),
    /// It is not a state.
    #[error("the state can't be read")]
    Unreadable,
}

impl Session {
    /// A session in which nothing has happened.
    pub fn new(definition: Arc<Definition>, place: Arc<Place>) -> Self {
        let mut state = State::default();
        state.policies = initial_policies(&definition);
        state.feedback = feedback::initial(&definition);
        Self { definition, place, state }
    }

    /// Brings a saved session back.
    pub fn restore(
        definition: Arc<Definition>,
        place: Arc<Place>,
        bytes: &[u8],
    ) -> Result<Self, StateError> {
        let (format, rest): (u16, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(|_| StateError::Unreadable)?;
        if format > STATE_FORMAT {
            return Err(StateError::Newer(format));
        }
        let state: State = postcard::from_bytes(rest).map_err(|_| StateError::Unreadable)?;
        let fits = state.policies.len() == definition.policies.len()
            && state.feedback.len() == definition.feedback.len();
        if format < STATE_FORMAT || !fits {
            return Err(StateError::Unreadable);
        }
        Ok(Self { definition, place, state })
    }

    /// Whether a call of its agent may have been at work on files after some time.
    pub fn worked_after(&self, time: Timestamp) -> bool {
        let known = self.state.watched.at_work_at;
        protected::is_suspected(&self.state) || known.is_some_and(|at| at > time)
    }

    /// Everything the session remembers, in a compact form with a format number.
    pub fn snapshot(&self) -> Vec<u8> {
        let format = postcard::to_allocvec(&STATE_FORMAT).unwrap_or_default();
        // Serialising plain data into memory has no way to fail.
        postcard::to_extend(&self.state, format).unwrap_or_default()
    }

    /// Everything it remembers.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Everything it remembers, for tests that begin in the middle.
    #[cfg(test)]
    pub(crate) fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The checksum of the definition in force, where it is not the one that the
    /// session was opened with.
    pub fn reloaded(&self) -> Option<Digest> {
        self.state.reloaded
    }

    /// The definition in force.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// Where the session works.
    pub fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// The last record that was applied.
    pub fn seq(&self) -> u64 {
        self.state.seq
    }

    /// The state in words for people.
    pub fn summary(&self) -> Summary {
        self.state.summary(&self.definition)
    }

    /// Whether counting a report on usage would change nothing: it is counted, the
    /// session is over, or had not begun when it was said.
    pub fn has_counted(&self, report: &Event, said: Option<crate::Timestamp>) -> bool {
        self.state.has_counted(report, said)
    }

    /// What its events are understood with, until the next one that reloads.
    pub fn ground(&self) -> Ground {
        let (definition, place) = (Arc::clone(&self.definition), Arc::clone(&self.place));
        Ground { definition, place }
    }

    /// The facts that a decision on `event` still lacks. Ask until it is empty.
    pub fn needs(&self, event: &Event, facts: &Facts) -> Queries {
        self.ground().understand(event, |understood| self.needs_of(understood, facts))
    }

    /// The same for an event that is understood.
    pub fn needs_of(&self, understood: &Understood<'_>, facts: &Facts) -> Queries {
        let event = understood.event;
        let mut queries = Queries::default();
        if self.terminal_for(event).is_some() {
            return queries;
        }
        let asks = self.state.seq == 0
            || matches!(event.kind, EventKind::SessionStarted(_) | EventKind::PromptSubmitted(_));
        if asks && facts.definition.is_none() {
            queries.ask(Query::Definition);
        }
        let clock = self.state.clock.after(event, facts);
        let look = self.look_at(understood, facts, &clock);
        GUARDS.iter().for_each(|guard| guard.needs(look, &mut queries));
        queries
    }

    /// Asks a world that need not know everything, for a bounded number of rounds. What it
    /// does not know stays open.
    pub fn gather_known(
        &self,
        understood: &Understood<'_>,
        facts: &mut Facts,
        mut ask: impl FnMut(&Query) -> Fact,
    ) {
        for _ in 0..ROUNDS_MAX {
            let mut learned = false;
            for query in self.needs_of(understood, facts).batch(facts) {
                learned |= facts.learn(&query, ask(&query)).is_ok();
            }
            // Without anything new the same queries come again.
            if !learned {
                break;
            }
        }
    }

    /// Answers an event. Changes nothing.
    pub fn decide(&self, event: &Event, facts: &Facts) -> Verdict {
        self.ground().understand(event, |understood| self.decide_on(understood, facts))
    }

    /// The same for an event that is understood.
    pub fn decide_on(&self, understood: &Understood<'_>, facts: &Facts) -> Verdict {
        let event = understood.event;
        let seq = self.state.seq + 1;
        let clock = self.state.clock.after(event, facts);
        let mut answers = Answers::new(self.definition.mode, facts, seq);
        if let Some(stop) = self.terminal_for(event) {
            self.decide_over(event, facts, &stop, &mut answers);
        } else {
            let look = self.look_at(understood, facts, &clock);
            GUARDS.iter().for_each(|guard| guard.decide(look, &mut answers));
            lifecycle::decide(look, &mut answers);
        }
        self.verdict(seq, event, answers)
    }

    /// Protected files that have to be given back because of this event, and
    /// the contents they had; none is a file that was not there.
    pub fn gives_back(&self, event: &Event, facts: &Facts) -> Vec<(String, Option<Digest>)> {
        if self.terminal_for(event).is_some() || facts.is_off() {
            return Vec::new();
        }
        let clock = self.state.clock.after(event, facts);
        protected::to_give_back(self.look(event, facts, &clock))
    }

    /// What has to be done about the reports for people once a record is folded,
    /// and where the session stands then. It is done before the record is written,
    /// which then says so in [`Facts::written`]: else nobody could tell a report
    /// that was never written from one that a person has removed.
    pub fn reports_after(
        &self,
        understood: &Understood<'_>,
        record: &Record<'_>,
    ) -> Option<(Vec<Order>, Summary)> {
        let verdict = record.verdict;
        // Most events concern no report, and those cost no copy of the state.
        let may = self.state.reports.may_change(verdict)
            || (verdict.decision >= Decision::Pause && verdict.enforced != Some(false));
        if !may || self.place.workspace.is_none() {
            return None;
        }
        let mut after = self.clone();
        after.apply_on(understood, record);
        let orders = after.state.orders();
        (!orders.is_empty()).then(|| (orders, after.summary()))
    }

    /// Folds a recorded verdict into the session.
    pub fn apply(&mut self, record: &Record<'_>) {
        self.ground().understand(record.event, |understood| self.apply_on(understood, record));
    }

    /// The same for an event that is understood.
    pub fn apply_on(&mut self, understood: &Understood<'_>, record: &Record<'_>) {
        let over = self.terminal_for(record.event).is_some();
        let (definition, state) = (&*self.definition, &mut self.state);
        let said = if over { None } else { control::said(state, record) };
        let proposal = understood.proposal.as_ref();
        let fold = Fold { definition, place: &self.place, record, proposal, said };
        state.clock = state.clock.after(record.event, record.facts);
        state.seq = record.seq;
        if over {
            // What comes after the end is written down and changes nothing, but
            // a call that was under way has come back all the same.
            if matches!(record.event.kind, EventKind::ToolFinished(_)) {
                lifecycle::calls(state, fold);
                state.keep_trail(fold);
            }
            state.note_reports(record);
            return;
        }
        if state.phase == Phase::New {
            state.phase = Phase::Running;
        }
        lifecycle::begin(state, fold);
        for guard in GUARDS {
            guard.apply(state, fold);
        }
        lifecycle::calls(state, fold);
        lifecycle::end(state, fold);
        state.keep_trail(fold);
        state.note_reports(record);
        if let Some(new) = record.reloads()
            && let Some(lowered) = new.lowered.definition()
        {
            let to = (lowered.as_ref(), new);
            reload::carry_over(state, (definition, &self.place), to, record.facts);
            self.place = Arc::new(new.place(&self.place));
            self.definition = Arc::clone(lowered);
        }
    }

    /// The tool whose result an event tells, by its declared name.
    pub fn tool_of(&self, event: &Event) -> Option<&str> {
        let call = self.state.in_flight.find(key(&self.definition, event))?;
        Some(call.tool.as_str())
    }

    /// What an open call shows of files, if all of its result is shown: for an adapter
    /// that shows it in pages, and says so when the last was turned.
    pub fn shows(&self, call: &CallId) -> Vec<Seen> {
        self.state.in_flight.find(Key::Id(call)).map_or_else(Vec::new, reads::shows)
    }

    fn look<'a>(&'a self, event: &'a Event, facts: &'a Facts, clock: &'a Clock) -> Look<'a> {
        let (definition, state, place) = (&self.definition, &self.state, &self.place);
        Look { definition, state, event, facts, clock, place, proposal: None }
    }

    fn look_at<'a>(
        &'a self,
        understood: &'a Understood<'a>,
        facts: &'a Facts,
        clock: &'a Clock,
    ) -> Look<'a> {
        let proposal = understood.proposal.as_ref();
        Look { proposal, ..self.look(understood.event, facts, clock) }
    }

    /// The stop that answers this event, where the session is over for it.
    fn terminal_for(&self, event: &Event) -> Option<Stop> {
        let reset = matches!(event.kind, EventKind::Control(Control { action: Action::Reset, .. }));
        // An agent that left may come back, and a person may keep it from that.
        let opens = event.actor.is_main()
            && matches!(event.kind, EventKind::SessionStarted(_) | EventKind::Control(_));
        match &self.state.phase {
            Phase::Stopped(ending) if !reset => Some(ending.into()),
            Phase::Ended(ending) if !opens => Some(ending.into()),
            _ => None,
        }
    }

    fn decide_over(&self, event: &Event, facts: &Facts, stop: &Stop, answers: &mut Answers) {
        answers.stop = Some(stop.clone());
        let stops = matches!(event.kind, EventKind::StopProposed(_));
        if stops && self.definition.completion.is_some() {
            let reason = stop.detail.as_ref().map_or(Bypass::Budget, StopDetail::bypass);
            answers.completion = Some(Completion::Bypassed { reason });
        }
        answers.insist(Objection {
            guard: GuardName::Session,
            kind: ViolationType::SessionOver,
            subtype: ViolationSubtype::SessionOver,
            class: Class::Terminal,
            decision: Decision::Stop,
            message: format!("this session is over: {stop}"),
            location: None,
            correction: Some(if facts.markers.stop {
                let file = Markers::STOP;
                format!("a person can remove `{file}` and open it anew with `jackline reset`")
            } else {
                "a person can open it anew with `jackline reset`".to_string()
            }),
        });
    }

    fn verdict(&self, seq: u64, event: &Event, answers: Answers) -> Verdict {
        let (decision, enforced) = answers.decision();
        let call = match &event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. })
            | EventKind::ToolFinished(ToolFinished { call, .. }) => call.clone(),
            _ => None,
        };
        // A code that somebody would only have ended with does not stand beside another answer.
        let ends = decision == Decision::Stop || event.kind.can_end();
        let mut verdict = Verdict {
            session: Some(event.session.clone()),
            seq: Some(seq),
            call,
            decision,
            enforced,
            context: render_context(&answers, self.definition.mode),
            violations: answers.violations,
            feedback: answers.feedback,
            constraints: answers.constraints,
            args: answers.args,
            output: answers.output,
            page: answers.page,
            repair: answers.repair,
            invalid_result: answers.invalid_result,
            completion: answers.completion,
            context_gate: answers.context_gate,
            stop: answers.stop.filter(|_| ends),
            safety: answers.safety,
            ..Verdict::allow()
        };
        let is_over = self.terminal_for(event).is_some();
        let spent = if is_over { 0 } else { steps(&event.kind, &verdict) };
        verdict.step = Some(self.state.spent.session.steps.saturating_add(spent));
        verdict
    }
}

impl<'a> Look<'a> {
    /// What a result says about its call.
    pub(crate) fn key(self) -> Key<'a> {
        key(self.definition, self.event)
    }
}

impl<'a> Record<'a> {
    /// What a result says about its call.
    pub(crate) fn key(&self, definition: &'a Definition) -> Key<'a> {
        key(definition, self.event)
    }
}

fn key<'a>(definition: &'a Definition, event: &'a Event) -> Key<'a> {
    match &event.kind {
        EventKind::ToolFinished(ToolFinished { call: Some(call), .. }) => Key::Id(call),
        EventKind::ToolFinished(ToolFinished { of: Some(called), .. }) => {
            Key::Called(definition.resolve(called.tool.as_str()).name, called.args)
        }
        _ => Key::Nothing,
    }
}

pub(crate) fn initial_policies(definition: &Definition) -> Vec<PolicyState> {
    let initial = |rule: &PolicyRule| match rule {
        PolicyRule::SequentialDependency(rule) => PolicyState::Sequential(rule.initial()),
        PolicyRule::ReadBeforeWrite { .. } => PolicyState::Stateless,
        PolicyRule::Custom { .. } => {
            PolicyState::Custom(crate::guards::custom::CustomState::default())
        }
    };
    definition.policies.iter().map(|policy| initial(&policy.rule)).collect()
}

/// The text for the model: enforced objections, then feedback. A definition
/// that only observes stays silent.
fn render_context(answers: &Answers, mode: Mode) -> Option<String> {
    let objections = answers.violations.iter().filter(|violation| violation.enforced).map(|v| {
        v.correction.as_ref().map_or_else(
            || v.message.clone(),
            |correction| format!("{}\n-> {correction}", v.message),
        )
    });
    let speaks = mode == Mode::Enforce;
    let feedback = answers.feedback.iter().filter(|_| speaks).map(crate::verdict::Feedback::render);
    let blocks: Vec<String> = objections.chain(feedback).collect();
    (!blocks.is_empty()).then(|| blocks.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Dependency, Need, Opaque, Policy, SequentialDependency, Shell};
    use crate::digest::Digest;
    use crate::facts::Now;
    use crate::time::Timestamp;
    use crate::wire::parse_line;

    fn definition() -> Arc<Definition> {
        let needs = Vec::from([Need { tool: "lint".to_string(), fresh: true }]);
        let dependency = Dependency { tool: "deploy".to_string(), needs };
        let rule = SequentialDependency::new(Vec::from([dependency]));
        let rule = PolicyRule::SequentialDependency(rule);
        Arc::new(Definition {
            policies: Vec::from([Policy { section: None, rule }]),
            shell: Shell { opaque: Opaque::Ask },
            ..Definition::default()
        })
    }

    /// A session that has touched every part of the state.
    fn busy() -> Session {
        let mut session = Session::new(definition(), Arc::default());
        let lines = [
            r#"{"event":"session_started","deadline":"2030-01-01T00:00:00Z"}"#,
            r#"{"event":"prompt_submitted","source":"human","text":"go"}"#,
            r#"{"event":"tool_proposed","call":"c1","tool":"lint","args":{}}"#,
            r#"{"event":"tool_finished","call":"c1","status":"ok"}"#,
            r#"{"event":"tool_proposed","actor":"sub","call":"c2","tool":"edit","args":{"a":1}}"#,
            r#"{"event":"tool_proposed","call":"c3","tool":"deploy","args":{}}"#,
            r#"{"event":"tool_proposed","call":"c4","tool":"Bash","args":{"command":"eval $X"}}"#,
            r#"{"event":"control","action":"refuse","ask":7}"#,
            r#"{"event":"tool_proposed","call":"c5","tool":"Bash","args":{"command":"eval $Y"}}"#,
            r#"{"event":"usage_reported","request":"r","input":1,"output":2}"#,
            r#"{"event":"attempt_started","attempt":"a1"}"#,
            r#"{"event":"control","action":"pause","by":"dana","why":"lunch"}"#,
        ];
        let id = crate::id::SessionId::parse("s").unwrap();
        for (line, seq) in lines.iter().zip(1..) {
            let event = parse_line(line.as_bytes(), Some(&id)).unwrap();
            let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000 * seq)));
            facts.observed = crate::observe(&event);
            let verdict = session.decide(&event, &facts);
            session.apply(&Record {
                seq: seq.unsigned_abs(),
                event: &event,
                facts: &facts,
                verdict: &verdict,
            });
        }
        session
    }

    #[test]
    fn a_restored_session_is_the_same() {
        let session = busy();
        let summary = session.summary();
        assert_eq!((summary.waiting.len(), summary.constraints.len()), (1, 1));
        let restored = Session::restore(definition(), Arc::default(), &session.snapshot()).unwrap();
        assert_eq!(restored.state, session.state);
    }

    #[test]
    fn the_format_of_the_state_is_pinned() {
        // If this differs, a state that is out there would be misread: bump
        // STATE_FORMAT, then pin the new digest.
        assert_eq!(
            (STATE_FORMAT, Digest::of(&busy().snapshot()).to_string().as_str()),
            (9, "5b8abc22e72a16354366ab4dacb27a1a4fba54a7ae20a0bcf5c3abc526842015")
        );
    }

    #[test]
    fn a_newer_or_broken_state_is_refused() {
        let mut bytes = busy().snapshot();
        assert_eq!(
            Session::restore(definition(), Arc::default(), b"").unwrap_err(),
            StateError::Unreadable
        );
        let half = bytes.get(..bytes.len() / 2).unwrap();
        assert_eq!(
            Session::restore(definition(), Arc::default(), half).unwrap_err(),
            StateError::Unreadable
        );
        bytes[0] = 10;
        assert_eq!(
            Session::restore(definition(), Arc::default(), &bytes).unwrap_err(),
            StateError::Newer(10)
        );
    }
}
