//! One agent run: asks for facts, decides, and updates its state.

mod result_pages;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::definition::{Definition, Mode, PolicyRule, RuleOutcome};
use crate::digest::Digest;
use crate::event::{Control, ControlAction, Event, EventKind, ToolFinished, ToolProposed};
use crate::facts::{ControlFiles, Fact, Facts, Queries, Query, ROUNDS_MAX};
use crate::guards::limits::count_steps;
use crate::guards::{
    FoldInput, GUARDS, GuardAnswers, GuardInput, ViolationDraft, control, feedback, protected,
    rules,
};
use crate::id::CallId;
use crate::lifecycle;
use crate::proposal::{Proposal, ProposalSource};
use crate::reload;
use crate::session_location::SessionLocation;
use crate::state::{
    CallKey, Phase, PolicyState, ReportChange, STATE_FORMAT, SessionClock, SessionState,
    SessionSummary,
};
use crate::time::Timestamp;
use crate::verdict::{
    BypassReason, CompletionResult, Decision, GuardName, SessionStop, StopDetail, Verdict,
    ViolationClass, ViolationSubtype, ViolationType,
};

/// One agent run under a definition.
///
/// ```
/// use std::sync::Arc;
///
/// use jackline_engine::wire::parse_line;
/// use jackline_engine::{
///     Decision, Definition, Facts, Now, Record, Session, SessionId, SessionLocation, Timestamp,
/// };
///
/// let location = Arc::new(SessionLocation::default());
/// let mut session = Session::new(Arc::new(Definition::default()), location);
/// let line = br#"{"event":"tool_proposed","call":"c1","tool":"echo","args":{}}"#;
/// let event = parse_line(line, Some(&SessionId::parse("s1")?))?;
///
/// // A caller answers the queries of `session.needs(&event, &facts)` first. Without files
/// // there are no queries to answer.
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
    location: Arc<SessionLocation>,
    state: SessionState,
}

/// An event and the verdict on it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The number of the record in the journal.
    pub seq: u64,
    /// The event.
    pub event: &'a Event,
    /// The facts of the decision.
    pub facts: &'a Facts,
    /// The verdict.
    pub verdict: &'a Verdict,
}

/// The data with which events are interpreted. It is separate from the session, so that it can be
/// borrowed while the session changes.
#[derive(Debug, Clone)]
pub struct EventInterpreter {
    definition: Arc<Definition>,
    location: Arc<SessionLocation>,
}

/// An interpreted event, for callers with more than one question about it.
#[derive(Debug)]
pub struct InterpretedEvent<'a> {
    event: &'a Event,
    proposal: Option<Proposal<'a>>,
}

/// The first step of interpreting an event. An [`InterpretedEvent`] borrows its texts from here.
#[derive(Debug)]
pub struct EventReading<'a> {
    interpreter: &'a EventInterpreter,
    event: &'a Event,
    source: Option<ProposalSource<'a>>,
}

impl EventReading<'_> {
    /// Interprets the event.
    pub fn interpret(&self) -> InterpretedEvent<'_> {
        let EventInterpreter { definition, location: place } = self.interpreter;
        let proposal = self.source.as_ref().map(|it| Proposal::of(definition, place, it));
        InterpretedEvent { event: self.event, proposal }
    }
}

impl EventInterpreter {
    /// Reads an event: the first step of interpreting it.
    pub fn read_event<'a>(&'a self, event: &'a Event) -> EventReading<'a> {
        EventReading {
            interpreter: self,
            event,
            source: ProposalSource::of(&self.definition, event),
        }
    }

    /// Interprets an event and passes it to a function.
    pub fn with_interpreted<T>(
        &self,
        event: &Event,
        then: impl FnOnce(&InterpretedEvent<'_>) -> T,
    ) -> T {
        then(&self.read_event(event).interpret())
    }

    /// Whether a session still interprets its events with this data: neither its definition nor its
    /// location was replaced.
    pub fn is_current_for(&self, session: &Session) -> bool {
        Arc::ptr_eq(&self.definition, &session.definition)
            && Arc::ptr_eq(&self.location, &session.location)
    }
}

impl<'a> InterpretedEvent<'a> {
    /// The event.
    pub fn event(&self) -> &'a Event {
        self.event
    }

    /// The proposed call, if the event proposes one.
    pub(crate) fn proposal(&self) -> Option<&Proposal<'a>> {
        self.proposal.as_ref()
    }
}

/// Why a saved state can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A newer Jackline wrote it.
    #[error(
        "the state has format {0}, but this jackline reads up to {STATE_FORMAT}; update jackline"
    )]
    NewerFormat(u16),
    /// It is not a state.
    #[error("the state can't be read")]
    Unreadable,
}

impl Session {
    /// A session without any events.
    pub fn new(definition: Arc<Definition>, place: Arc<SessionLocation>) -> Self {
        let mut state = SessionState::default();
        state.policies = initial_policies(&definition);
        state.feedback = feedback::initial_cadences(&definition);
        Self { definition, location: place, state }
    }

    /// Restores a session from a snapshot.
    pub fn restore(
        definition: Arc<Definition>,
        place: Arc<SessionLocation>,
        bytes: &[u8],
    ) -> Result<Self, StateError> {
        let (format, rest): (u16, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(|_| StateError::Unreadable)?;
        if format > STATE_FORMAT {
            return Err(StateError::NewerFormat(format));
        }
        let state: SessionState = postcard::from_bytes(rest).map_err(|_| StateError::Unreadable)?;
        let fits = state.policies.len() == definition.policies.len()
            && state.feedback.len() == definition.feedback.len();
        if format < STATE_FORMAT || !fits {
            return Err(StateError::Unreadable);
        }
        Ok(Self { definition, location: place, state })
    }

    /// Whether a call of its agent may have worked on files after this time.
    pub fn may_have_worked_after(&self, time: Timestamp) -> bool {
        let known = self.state.protected_files.worked_at;
        protected::may_agent_write(&self.state) || known.is_some_and(|at| at > time)
    }

    /// The whole state in a compact form, with a format number.
    pub fn snapshot(&self) -> Vec<u8> {
        let format = postcard::to_allocvec(&STATE_FORMAT).unwrap_or_default();
        // Serialising plain data into memory can't fail.
        postcard::to_extend(&self.state, format).unwrap_or_default()
    }

    /// The state.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// The state, for tests that modify it directly.
    #[cfg(test)]
    pub(crate) fn state_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }

    /// The checksum of the definition in force, if a reload replaced the definition with which the
    /// session was opened.
    pub fn reloaded_checksum(&self) -> Option<Digest> {
        self.state.reloaded
    }

    /// The definition in force.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// The location of the session.
    pub fn location(&self) -> &Arc<SessionLocation> {
        &self.location
    }

    /// The number of the last record that was applied.
    pub fn seq(&self) -> u64 {
        self.state.seq
    }

    /// A summary of the state for people.
    pub fn summary(&self) -> SessionSummary {
        self.state.summary(&self.definition)
    }

    /// Whether counting a usage report would change nothing: it was already counted, or the session
    /// has ended, or the report is older than the session.
    pub fn has_counted(&self, report: &Event, said: Option<crate::Timestamp>) -> bool {
        self.state.has_counted(report, said)
    }

    /// The data with which the events of this session are interpreted. It is valid until a record
    /// reloads the definition.
    pub fn event_interpreter(&self) -> EventInterpreter {
        let (definition, place) = (Arc::clone(&self.definition), Arc::clone(&self.location));
        EventInterpreter { definition, location: place }
    }

    /// The queries that a decision on `event` still needs. Ask until there are none.
    pub fn needs(&self, event: &Event, facts: &Facts) -> Queries {
        self.event_interpreter()
            .with_interpreted(event, |understood| self.needs_for(understood, facts))
    }

    /// The same for an interpreted event.
    pub fn needs_for(&self, understood: &InterpretedEvent<'_>, facts: &Facts) -> Queries {
        let event = understood.event;
        let mut queries = Queries::default();
        if self.final_stop_for(event).is_some() {
            return queries;
        }
        let asks = self.state.seq == 0
            || matches!(event.kind, EventKind::SessionStarted(_) | EventKind::PromptSubmitted(_));
        if asks && facts.definition.is_none() {
            queries.ask(Query::Definition);
        }
        let clock = self.state.clock.after(event, facts);
        let look = self.guard_input_for(understood, facts, &clock);
        GUARDS.iter().for_each(|guard| guard.needs(look, &mut queries));
        queries
    }

    /// Asks a source of facts that may not have all answers, in a limited number of rounds. Queries
    /// without an answer stay open.
    pub fn gather_facts(
        &self,
        understood: &InterpretedEvent<'_>,
        facts: &mut Facts,
        mut ask: impl FnMut(&Query) -> Fact,
    ) {
        for _ in 0..ROUNDS_MAX {
            let mut has_new_facts = false;
            for query in self.needs_for(understood, facts).into_batch(facts) {
                has_new_facts |= facts.add_answer(&query, ask(&query)).is_ok();
            }
            // Without a new fact, the next round would ask the same queries.
            if !has_new_facts {
                break;
            }
        }
    }

    /// Decides on an event. The session does not change.
    pub fn decide(&self, event: &Event, facts: &Facts) -> Verdict {
        self.event_interpreter()
            .with_interpreted(event, |understood| self.decide_interpreted(understood, facts))
    }

    /// The same for an interpreted event.
    pub fn decide_interpreted(&self, understood: &InterpretedEvent<'_>, facts: &Facts) -> Verdict {
        let event = understood.event;
        let seq = self.state.seq + 1;
        let clock = self.state.clock.after(event, facts);
        let mut answers = GuardAnswers::new(self.definition.mode, facts, seq);
        if let Some(stop) = self.final_stop_for(event) {
            self.decide_after_end(event, facts, &stop, &mut answers);
        } else {
            let look = self.guard_input_for(understood, facts, &clock);
            GUARDS.iter().for_each(|guard| guard.decide(look, &mut answers));
            lifecycle::decide(look, &mut answers);
        }
        self.build_verdict(seq, event, answers)
    }

    /// The outcomes of the rules that match a proposed call or can't be evaluated for it, by name.
    pub fn rule_outcomes(
        &self,
        understood: &InterpretedEvent<'_>,
        facts: &Facts,
    ) -> Vec<(String, RuleOutcome)> {
        let clock = self.state.clock.after(understood.event, facts);
        rules::rule_outcomes(self.guard_input_for(understood, facts, &clock))
    }

    /// The protected files that have to be restored because of this event, with the digest of the
    /// content to restore. `None` means that the file did not exist.
    pub fn files_to_restore(&self, event: &Event, facts: &Facts) -> Vec<(String, Option<Digest>)> {
        if self.final_stop_for(event).is_some() || facts.is_off() {
            return Vec::new();
        }
        let clock = self.state.clock.after(event, facts);
        protected::files_to_restore(self.guard_input(event, facts, &clock))
    }

    /// The changes to the reports for people that a record makes necessary, and the summary of the
    /// session after the record. The runtime applies the changes before it writes the record, and
    /// lists them in [`Facts::written`]. Otherwise a report that was never written could not be
    /// distinguished from one that a person removed.
    pub fn report_changes_after(
        &self,
        understood: &InterpretedEvent<'_>,
        record: &Record<'_>,
    ) -> Option<(Vec<ReportChange>, SessionSummary)> {
        let verdict = record.verdict;
        // Most events concern no report. For these, the state is not cloned.
        let may = self.state.reports.may_need_change(verdict)
            || (verdict.decision >= Decision::Pause && verdict.enforced != Some(false));
        if !may || self.location.workspace.is_none() {
            return None;
        }
        let mut after = self.clone();
        after.apply_interpreted(understood, record);
        let orders = after.state.pending_report_changes();
        (!orders.is_empty()).then(|| (orders, after.summary()))
    }

    /// Applies a recorded verdict to the session.
    pub fn apply(&mut self, record: &Record<'_>) {
        self.event_interpreter().with_interpreted(record.event, |understood| {
            self.apply_interpreted(understood, record);
        });
    }

    /// The same for an interpreted event.
    pub fn apply_interpreted(&mut self, understood: &InterpretedEvent<'_>, record: &Record<'_>) {
        let has_ended = self.final_stop_for(record.event).is_some();
        let (definition, state) = (&*self.definition, &mut self.state);
        let said = if has_ended { None } else { control::person_action(state, record) };
        let proposal = understood.proposal.as_ref();
        let fold =
            FoldInput { definition, place: &self.location, record, proposal, person_action: said };
        state.clock = state.clock.after(record.event, record.facts);
        state.seq = record.seq;
        if has_ended {
            // Events after the end are recorded and change nothing, except that the result of an
            // open call closes the call.
            if matches!(record.event.kind, EventKind::ToolFinished(_)) {
                lifecycle::apply_call(state, fold);
                state.record_action(fold);
            }
            state.apply_report_changes(record);
            return;
        }
        if state.phase == Phase::New {
            state.phase = Phase::Running;
        }
        lifecycle::apply_turn(state, fold);
        for guard in GUARDS {
            guard.apply(state, fold);
        }
        lifecycle::apply_call(state, fold);
        lifecycle::apply_session_end(state, fold);
        state.record_action(fold);
        state.expire_pause_report();
        state.apply_report_changes(record);
        if let Some(new) = record.reloaded_definition()
            && let Some(lowered) = new.lowered.definition()
        {
            let to = (lowered.as_ref(), new);
            reload::carry_over_state(state, (definition, &self.location), to, record.facts);
            self.location = Arc::new(new.location(&self.location));
            self.definition = Arc::clone(lowered);
        }
    }

    /// The declared name of the tool whose result an event reports.
    pub fn finished_tool(&self, event: &Event) -> Option<&str> {
        let call = self.state.in_flight.find(call_key(&self.definition, event))?;
        Some(call.tool.as_str())
    }

    /// Whether the client asks a person about this call now.
    pub fn is_asked_in_client(&self, call: &CallId) -> bool {
        self.state.in_flight.is_asked_in_client(call)
    }

    fn guard_input<'a>(
        &'a self,
        event: &'a Event,
        facts: &'a Facts,
        clock: &'a SessionClock,
    ) -> GuardInput<'a> {
        let (definition, state, place) = (&self.definition, &self.state, &self.location);
        GuardInput { definition, state, event, facts, clock, place, proposal: None }
    }

    fn guard_input_for<'a>(
        &'a self,
        understood: &'a InterpretedEvent<'a>,
        facts: &'a Facts,
        clock: &'a SessionClock,
    ) -> GuardInput<'a> {
        let proposal = understood.proposal.as_ref();
        GuardInput { proposal, ..self.guard_input(understood.event, facts, clock) }
    }

    /// The stop that answers this event, if the session has ended for it.
    fn final_stop_for(&self, event: &Event) -> Option<SessionStop> {
        let reset =
            matches!(event.kind, EventKind::Control(Control { action: ControlAction::Reset, .. }));
        // An agent that left may start again, and a person may control the session before that.
        let opens = event.actor.is_main()
            && matches!(event.kind, EventKind::SessionStarted(_) | EventKind::Control(_));
        match &self.state.phase {
            Phase::Stopped(ending) if !reset => Some(ending.into()),
            Phase::Ended(ending) if !opens => Some(ending.into()),
            _ => None,
        }
    }

    fn decide_after_end(
        &self,
        event: &Event,
        facts: &Facts,
        stop: &SessionStop,
        answers: &mut GuardAnswers,
    ) {
        answers.stop = Some(stop.clone());
        let stops = matches!(event.kind, EventKind::StopProposed(_));
        if stops && self.definition.completion.is_some() {
            let reason = stop.detail.as_ref().map_or(BypassReason::Budget, StopDetail::bypass);
            answers.completion = Some(CompletionResult::Bypassed { reason });
        }
        answers.add_enforced_violation(ViolationDraft {
            guard: GuardName::Session,
            kind: ViolationType::SessionOver,
            subtype: ViolationSubtype::SessionOver,
            class: ViolationClass::Terminal,
            decision: Decision::Stop,
            message: format!("this session has ended: {stop}"),
            location: None,
            correction: Some(if facts.control_files.stop {
                let file = ControlFiles::STOP;
                format!("a person can remove `{file}` and reopen the session with `jackline reset`")
            } else {
                "a person can reopen it with `jackline reset`".to_string()
            }),
        });
    }

    fn build_verdict(&self, seq: u64, event: &Event, answers: GuardAnswers) -> Verdict {
        let (decision, enforced) = answers.decision();
        let call = match &event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. })
            | EventKind::ToolFinished(ToolFinished { call, .. }) => call.clone(),
            _ => None,
        };
        // The verdict has a stop code only if the session really ends.
        let ends = decision == Decision::Stop || event.kind.can_end_session();
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
        let is_over = self.final_stop_for(event).is_some();
        let spent = if is_over { 0 } else { count_steps(&event.kind, &verdict) };
        verdict.step = Some(self.state.spent.session.steps.saturating_add(spent));
        verdict
    }
}

impl<'a> GuardInput<'a> {
    /// The call to which a result belongs.
    pub(crate) fn call_key(self) -> CallKey<'a> {
        call_key(self.definition, self.event)
    }
}

impl<'a> Record<'a> {
    /// The call to which a result belongs.
    pub(crate) fn call_key(&self, definition: &'a Definition) -> CallKey<'a> {
        call_key(definition, self.event)
    }
}

fn call_key<'a>(definition: &'a Definition, event: &'a Event) -> CallKey<'a> {
    match &event.kind {
        EventKind::ToolFinished(ToolFinished { call: Some(call), .. }) => CallKey::Id(call),
        EventKind::ToolFinished(ToolFinished { of: Some(called), .. }) => {
            CallKey::ToolAndArgs(definition.resolve_tool(called.tool.as_str()).name, called.args)
        }
        _ => CallKey::Unknown,
    }
}

pub(crate) fn initial_policies(definition: &Definition) -> Vec<PolicyState> {
    let initial = |rule: &PolicyRule| match rule {
        PolicyRule::SequentialDependency(rule) => PolicyState::Sequential(rule.initial()),
        PolicyRule::ReadBeforeWrite { .. } => PolicyState::Stateless,
        PolicyRule::Custom { .. } => {
            PolicyState::Custom(crate::guards::custom::CustomPolicyState::default())
        }
    };
    definition.policies.iter().map(|policy| initial(&policy.rule)).collect()
}

/// The text for the model: the enforced violations, then the feedback. It contains no feedback if
/// the definition only observes.
fn render_context(answers: &GuardAnswers, mode: Mode) -> Option<String> {
    let violations = answers.violations.iter().filter(|violation| violation.enforced).map(|v| {
        v.correction.as_ref().map_or_else(
            || v.message.clone(),
            |correction| format!("{}\n-> {correction}", v.message),
        )
    });
    let speaks = mode == Mode::Enforce;
    let feedback = answers.feedback.iter().filter(|_| speaks).map(crate::verdict::Feedback::render);
    let blocks: Vec<String> = violations.chain(feedback).collect();
    (!blocks.is_empty()).then(|| blocks.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{
        OpaquePolicy, Policy, Prerequisite, SequentialDependency, ShellSettings, ToolDependency,
    };
    use crate::digest::Digest;
    use crate::facts::Now;
    use crate::time::Timestamp;
    use crate::wire::parse_line;

    fn definition() -> Arc<Definition> {
        let needs = Vec::from([Prerequisite { tool: "lint".to_string(), fresh: true }]);
        let dependency = ToolDependency { tool: "deploy".to_string(), needs };
        let rule = SequentialDependency::new(Vec::from([dependency]));
        let rule = PolicyRule::SequentialDependency(rule);
        Arc::new(Definition {
            policies: Vec::from([Policy { section: None, rule }]),
            shell: ShellSettings { opaque: OpaquePolicy::Ask },
            ..Definition::default()
        })
    }

    /// A session with a value in every part of the state.
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
        // If this assertion fails, existing states would be misread. Increase `STATE_FORMAT`, then
        // pin the new digest.
        assert_eq!(
            (STATE_FORMAT, Digest::of(&busy().snapshot()).to_string().as_str()),
            (11, "aeb5449161d16168e0631f80400e66f943b126df379b86745a9e7615b4b7005e")
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
        let newer = u8::try_from(STATE_FORMAT + 1).unwrap();
        bytes[0] = newer;
        assert_eq!(
            Session::restore(definition(), Arc::default(), &bytes).unwrap_err(),
            StateError::NewerFormat(newer.into())
        );
    }
}
