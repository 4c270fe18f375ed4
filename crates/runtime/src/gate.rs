//! One session as an adapter sees it.
//!
//! Every surface that runs calls for an agent needs the same things: it numbers calls,
//! proposes them, reports how they came back, keeps what the agent must be told until there
//! is a place for it, and tells a person how to answer a question. The gate does this once,
//! so that all surfaces obey a verdict in the same way and in the same words.

mod answer;
mod call;
mod call_names;
mod fault;
mod stop;
mod texts;
mod views;

use jackline_engine::event::PromptSource;
use jackline_engine::{
    ActorId, Decision, Event, EventKind, Payload, PromptSubmitted, SessionId, SessionPhase,
    SessionStarted, StopProposed, ToolFinished, ToolName, ToolProposed, Verdict,
};
use jackline_journal::Note;

use crate::answer::{Answer, Deferred};
use crate::notify::Notice;
use crate::runtime::{Request, Runtime};

pub use answer::GateAnswer;
pub use call::{
    CallPermit, CallRefusal, CallResult, CallRuling, PendingAsk, ProposedCall, RefusalCode,
};
use call_names::CallNames;
pub use fault::GuardFault;
pub use stop::StopRuling;
pub use texts::{WAITS_FOR_PERSON, reason_of};

/// How many notices for the desktop wait at once.
const NOTICES_MAX: usize = 16;

/// The session front-end of every adapter.
///
/// ```
/// use jackline_engine::{Arguments, Definition, SessionId, SessionStarted, Status};
/// use jackline_host::HostAccess;
/// use jackline_journal::MemoryStore;
/// use jackline_runtime::{CallResult, CallRuling, Definitions, Gate, ProposedCall, Runtime};
///
/// let definitions = Definitions::made(Definition::default(), HostAccess::default())?;
/// let runtime = Runtime::new(MemoryStore::default(), definitions, std::env::temp_dir());
/// let mut gate = Gate::new(runtime, SessionId::parse("example")?);
/// gate.start(SessionStarted::default(), None);
///
/// let args = Arguments::Parsed(serde_json::json!({ "path": "notes.txt" }));
/// match gate.propose(ProposedCall::new("read_file", args)) {
///     CallRuling::Run(permit) => {
///         let text = Some("what the tool returned".to_owned());
///         gate.finish(CallResult { text, ..CallResult::new(permit.number, Status::Ok) });
///     }
///     CallRuling::Refuse(refusal) | CallRuling::Stop(refusal) => println!("{}", refusal.text()),
///     CallRuling::Ask(refusal, ask) => println!("{}; {}", refusal.text(), ask.for_person()),
/// }
/// let for_agent = gate.take_texts();
/// # assert_eq!(for_agent, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Gate {
    runtime: Runtime,
    session: SessionId,
    calls: CallNames,
    /// Texts for the agent that no result or prompt has carried yet.
    texts: Vec<String>,
    /// Texts for people.
    notes: Vec<String>,
    /// What the client may show on the person's desktop.
    notices: Vec<Notice>,
    /// Work that answers have left for later.
    deferred: Deferred,
    /// The last event that the guard could not answer.
    fault: Option<GuardFault>,
}

/// Whether a session belongs to the gate that asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRole {
    /// The gate started the session and ends it.
    Owner,
    /// Another process has the session under way: calls of this gate are a part of it.
    Guest,
}

impl Gate {
    /// A gate for one session, which may have begun or not.
    pub fn new(runtime: Runtime, session: SessionId) -> Self {
        Self {
            runtime,
            session,
            calls: CallNames::default(),
            texts: Vec::new(),
            notes: Vec::new(),
            notices: Vec::new(),
            deferred: Deferred::default(),
            fault: None,
        }
    }

    /// Saves states in [`Self::run_deferred`], and not before each answer: for a process that
    /// answers more than one event and calls it soon.
    #[must_use]
    pub fn saving_late(mut self) -> Self {
        self.runtime = self.runtime.saving_late();
        self
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Decides on an event and makes it durable. A panic goes through to the caller, who has
    /// to deny: this is for adapters with a door of their own around everything they do.
    pub fn submit(&mut self, request: impl Into<Request>) -> GateAnswer {
        let answer = self.runtime.answer(request);
        self.take_in(answer)
    }

    /// The same for adapters that answer many events: a panic becomes a denial.
    fn submit_safely(&mut self, request: impl Into<Request>) -> GateAnswer {
        let answer = self.runtime.answer_safely(request);
        self.take_in(answer)
    }

    fn take_in(&mut self, answer: Answer) -> GateAnswer {
        let Answer { verdict, outcome, warnings, notices, deferred, .. } = answer;
        self.notes.extend(warnings);
        let room = NOTICES_MAX.saturating_sub(self.notices.len());
        self.notices.extend(notices.into_iter().take(room));
        self.deferred.add(deferred);
        let answer = GateAnswer { verdict, outcome };
        if answer.is_broken() {
            self.fault = Some(GuardFault::of(&answer.verdict));
        }
        answer
    }

    /// Reports something that the agent did, or that was done for it.
    pub fn report(&mut self, kind: impl Into<EventKind>) -> GateAnswer {
        self.submit_safely(Event::new(self.session.clone(), kind))
    }

    /// Reports something that another actor did in the session.
    pub fn report_as(&mut self, actor: ActorId, kind: impl Into<EventKind>) -> GateAnswer {
        self.submit_safely(Event::new(self.session.clone(), kind).by(actor))
    }

    /// Reports something in another session, whose own process can't do so any more.
    pub fn report_in(&mut self, session: &SessionId, kind: impl Into<EventKind>) -> GateAnswer {
        self.submit_safely(Event::new(session.clone(), kind))
    }

    /// Starts the session, or says that its agent is back. `meta` is stored and never
    /// decided on.
    pub fn start(
        &mut self,
        started: SessionStarted,
        meta: Option<serde_json::Value>,
    ) -> GateAnswer {
        let event = Event::new(self.session.clone(), started).with_meta(meta);
        let answer = self.submit_safely(event);
        // A text about a session that is held is out of date once it goes on.
        if answer.is_allowed() && answer.verdict.concerns_agent() {
            self.keep_text(&answer);
        }
        answer
    }

    /// Starts the session, or joins it where another process has it under way. Calls go on
    /// with the numbers after those of earlier processes.
    pub fn start_or_join(&mut self, started: SessionStarted) -> SessionRole {
        let before = self.summary();
        if before
            .as_ref()
            .is_some_and(|it| ![SessionPhase::New, SessionPhase::Ended].contains(&it.phase))
        {
            self.calls = CallNames::of_guest(started.client.as_deref().unwrap_or("guest"));
            return SessionRole::Guest;
        }
        self.calls.continue_after(before.map_or(0, |it| it.invocations.proposed));
        self.start(started, None);
        SessionRole::Owner
    }

    /// Goes on with the numbers of calls where an earlier process ended.
    pub fn continue_call_numbers(&mut self) {
        let proposed = self.summary().map_or(0, |summary| summary.invocations.proposed);
        self.calls.continue_after(proposed);
    }

    /// Reports what the agent is asked to do, which the guards may refuse.
    pub fn prompt(&mut self, source: PromptSource, text: &str) -> GateAnswer {
        let text = Some(Payload::Inline(text.to_owned()));
        let answer = self.report(PromptSubmitted { source, text });
        // An agent whose prompt is refused or held hears nothing now.
        if answer.is_allowed() {
            self.keep_text(&answer);
        }
        answer
    }

    /// Asks whether a call may run.
    ///
    /// A name that no tool can have is refused without a decision; the next record notes it.
    pub fn propose(&mut self, call: ProposedCall<'_>) -> CallRuling {
        let ProposedCall { tool: written, args, meta, once_allowed } = call;
        let tool = match self.tool_name(written) {
            Ok(tool) => tool,
            Err(refusal) => return CallRuling::Refuse(refusal),
        };
        let number = self.calls.next_number();
        let call = self.calls.id(number);
        let kind = ToolProposed { call, tool, args, ..ToolProposed::default() };
        let event = Event::new(self.session.clone(), kind).with_meta(meta);
        let answer = self.submit_safely(event);
        if answer.is_allowed() {
            self.keep_text(&answer);
            let GateAnswer { verdict, .. } = answer;
            let (args, decision) = (verdict.args, verdict.decision);
            return CallRuling::Run(CallPermit { number, args, decision });
        }
        let holds = answer.holds_session();
        let ask = self.pending_ask(&answer.verdict).map(|ask| ask.of_call(written, once_allowed));
        let refusal = CallRefusal::of(answer.verdict);
        match ask {
            Some(ask) => {
                self.notes.push(ask.for_person());
                CallRuling::Ask(refusal, ask)
            }
            None if holds => CallRuling::Stop(refusal),
            None => CallRuling::Refuse(refusal),
        }
    }

    /// Refuses a call whose tool has a name that no tool can have, for an adapter that
    /// proposes only calls of tools that are there. None where the name is one.
    pub fn refuse_tool_name(&mut self, written: &str) -> Option<CallRefusal> {
        self.tool_name(written).err()
    }

    fn tool_name(&mut self, written: &str) -> Result<ToolName, CallRefusal> {
        ToolName::parse(written).map_err(|error| {
            let (line, reason) =
                (self.calls.next_number(), format!("the name of the tool {error}"));
            self.note(Note::Malformed { line, reason: reason.clone() });
            CallRefusal::invalid_tool(reason)
        })
    }

    /// The question to a person that an answer asks, if it asks one.
    pub fn pending_ask(&self, verdict: &Verdict) -> Option<PendingAsk> {
        let seq = verdict.seq.filter(|_| verdict.is_enforced(Decision::Ask))?;
        Some(PendingAsk::of(verdict, &self.session, seq))
    }

    /// Reports how a call came back. What the agent must know of it waits in
    /// [`Self::take_texts`].
    pub fn finish(&mut self, result: CallResult) -> GateAnswer {
        let CallResult { number, status, text, exit_code, seen, background, page } = result;
        let call = self.calls.id(number);
        let result = text.map(Payload::Inline);
        let finished = ToolFinished { call, status, result, exit_code, seen, background, of: None };
        let event = Event::new(self.session.clone(), finished);
        let answer = self.submit_safely(Request { event, offered_output: page });
        if answer.verdict.concerns_agent() {
            self.keep_text(&answer);
        }
        answer
    }

    /// Asks whether the agent may end its turn.
    pub fn propose_stop(&mut self, stop: StopProposed) -> StopRuling {
        let answer = self.report(stop);
        StopRuling::of(answer)
    }

    /// Keeps what a decision tells the agent for the next time it is told something. What
    /// says that the guard is broken is for people.
    pub fn keep_text(&mut self, answer: &GateAnswer) {
        if answer.is_decision() {
            self.texts.extend(answer.verdict.context.clone());
        }
    }

    /// Keeps a text for the next time the agent is told something.
    pub fn add_text(&mut self, text: String) {
        self.texts.push(text);
    }

    /// Takes what the agent must be told with the next result or prompt.
    pub fn take_texts(&mut self) -> Option<String> {
        let texts = std::mem::take(&mut self.texts);
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Keeps a text for people.
    pub fn add_note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Takes what people must be told.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Takes what the client may show on the person's desktop.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Has something written down with the next record.
    pub fn note(&mut self, note: Note) {
        self.runtime.note(note);
    }

    /// Does what may wait until an answer is out: saves states, sends notices, and removes
    /// sessions that are kept no longer.
    pub fn run_deferred(&mut self) {
        self.runtime.finish(std::mem::take(&mut self.deferred));
    }

    /// Sends notices to people: of all deferred work, what people wait for.
    pub fn send_notices(&mut self) {
        self.runtime.send_notices();
    }

    /// Why the guard could not answer an event, if there was one.
    pub fn fault(&self) -> Option<&GuardFault> {
        self.fault.as_ref()
    }
}
