//! The session front-end that all adapters share.
//!
//! Every adapter that runs calls for an agent does the same work: it numbers calls, proposes them,
//! reports their results, stores texts for the agent until a result or prompt can carry them, and
//! tells a person how to answer a question. The gate does this once, so that all adapters apply a
//! verdict in the same way and with the same words.

mod answer;
mod call;
mod call_ids;
mod fault;
mod stop;
mod texts;
mod views;

use jackline_engine::event::PromptSource;
use jackline_engine::{
    ActorId, Decision, Event, EventKind, Payload, PromptSubmitted, SessionId, SessionPhase,
    SessionStarted, StopProposed, ToolFinished, ToolName, ToolProposed, Verdict,
};
use jackline_journal::JournalNote;

use crate::adapter_tools::AdapterTools;
use crate::answer::{DeferredWork, RuntimeAnswer};
use crate::notify::PersonNotification;
use crate::runtime::{EventRequest, Runtime};

pub use answer::GateAnswer;
pub use call::{
    ApprovalRequest, CallPermit, CallRefusal, CallResult, CallRuling, ProposedCall, RefusalCode,
};
use call_ids::CallIds;
pub use fault::GuardFault;
pub use stop::StopRuling;
pub use texts::{WAITS_FOR_PERSON_TEXT, reason_of};

/// The largest number of desktop notifications that wait.
const NOTIFICATIONS_MAX: usize = 16;

/// The session front-end of every adapter.
///
/// ```
/// use jackline_engine::{Arguments, Definition, SessionId, SessionStarted, CallStatus};
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
///         gate.finish(CallResult { text, ..CallResult::new(permit.number, CallStatus::Ok) });
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
    calls: CallIds,
    /// Texts for the agent that no result or prompt has carried yet.
    texts: Vec<String>,
    /// Texts for people.
    person_texts: Vec<String>,
    /// Notifications that the client may show on the person's desktop.
    notifications: Vec<PersonNotification>,
    /// Deferred work of earlier answers.
    deferred: DeferredWork,
    /// The last fault of the guard.
    fault: Option<GuardFault>,
}

/// Whether a gate owns its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRole {
    /// The gate started the session and ends it.
    Owner,
    /// Another process has started the session. The calls of this gate are part of it.
    Guest,
}

impl Gate {
    /// A gate for one session, which may exist already.
    pub fn new(runtime: Runtime, session: SessionId) -> Self {
        Self {
            runtime,
            session,
            calls: CallIds::default(),
            texts: Vec::new(),
            person_texts: Vec::new(),
            notifications: Vec::new(),
            deferred: DeferredWork::default(),
            fault: None,
        }
    }

    /// Saves states in [`Self::run_deferred`] instead of before each answer. Use this in a process
    /// that answers more than one event and calls `run_deferred` soon.
    #[must_use]
    pub fn with_deferred_saving(mut self) -> Self {
        self.runtime = self.runtime.with_deferred_saving();
        self
    }

    /// Replaces the tools that the adapter knows.
    pub fn set_tools(&mut self, tools: AdapterTools) {
        self.runtime.set_tools(tools);
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Decides on an event and makes the record durable. A panic propagates to the caller, who must
    /// deny. Use this in adapters with their own panic guard.
    pub fn submit(&mut self, request: impl Into<EventRequest>) -> GateAnswer {
        let answer = self.runtime.answer(request);
        self.store_answer(answer)
    }

    /// Decides like [`Self::submit`], but turns a panic into a denial. Use this in adapters that
    /// answer many events.
    fn submit_safely(&mut self, request: impl Into<EventRequest>) -> GateAnswer {
        let answer = self.runtime.answer_safely(request);
        self.store_answer(answer)
    }

    fn store_answer(&mut self, answer: RuntimeAnswer) -> GateAnswer {
        let RuntimeAnswer { verdict, outcome, warnings, notices, deferred, .. } = answer;
        self.person_texts.extend(warnings);
        let room = NOTIFICATIONS_MAX.saturating_sub(self.notifications.len());
        self.notifications.extend(notices.into_iter().take(room));
        self.deferred.merge(deferred);
        let answer = GateAnswer { verdict, outcome };
        if answer.is_broken() {
            self.fault = Some(GuardFault::of(&answer.verdict));
        }
        answer
    }

    /// Reports an action of the agent, or an action for the agent.
    pub fn report(&mut self, kind: impl Into<EventKind>) -> GateAnswer {
        self.submit_safely(Event::new(self.session.clone(), kind))
    }

    /// Reports an action of another actor in the session.
    pub fn report_as(&mut self, actor: ActorId, kind: impl Into<EventKind>) -> GateAnswer {
        self.submit_safely(Event::new(self.session.clone(), kind).with_actor(actor))
    }

    /// Reports an event in another session whose own process can no longer report it.
    pub fn report_in(&mut self, session: &SessionId, kind: impl Into<EventKind>) -> GateAnswer {
        self.submit_safely(Event::new(session.clone(), kind))
    }

    /// Starts the session, or reports that its agent has resumed. `meta` is stored, but no decision
    /// uses it.
    pub fn start(
        &mut self,
        started: SessionStarted,
        meta: Option<serde_json::Value>,
    ) -> GateAnswer {
        let event = Event::new(self.session.clone(), started).with_meta(meta);
        let answer = self.submit_safely(event);
        // The text about a paused session is outdated when the session resumes, so it is not
        // stored.
        if answer.is_allowed() && answer.verdict.concerns_agent() {
            self.add_answer_text(&answer);
        }
        answer
    }

    /// Starts the session, or joins it if another process has started it. Call numbers continue
    /// after those of earlier processes.
    pub fn start_or_join(&mut self, started: SessionStarted) -> SessionRole {
        let before = self.summary();
        if before
            .as_ref()
            .is_some_and(|it| ![SessionPhase::New, SessionPhase::Ended].contains(&it.phase))
        {
            self.calls = CallIds::of_guest(started.client.as_deref().unwrap_or("guest"));
            return SessionRole::Guest;
        }
        self.calls.continue_after(before.map_or(0, |it| it.invocations.proposed));
        self.start(started, None);
        SessionRole::Owner
    }

    /// Continues call numbers after those of an earlier process.
    pub fn continue_call_numbers(&mut self) {
        let proposed = self.summary().map_or(0, |summary| summary.invocations.proposed);
        self.calls.continue_after(proposed);
    }

    /// Reports a prompt for the agent, which the guards may refuse.
    pub fn prompt(&mut self, source: PromptSource, text: &str) -> GateAnswer {
        let text = Some(Payload::Inline(text.to_owned()));
        let answer = self.report(PromptSubmitted { source, text });
        // An agent whose prompt is refused or paused gets no texts now.
        if answer.is_allowed() {
            self.add_answer_text(&answer);
        }
        answer
    }

    /// Asks whether a call may run.
    ///
    /// A name that is not a valid tool name is refused without a decision. The next record notes
    /// it.
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
            self.add_answer_text(&answer);
            let GateAnswer { verdict, .. } = answer;
            let (args, decision) = (verdict.args, verdict.decision);
            return CallRuling::Run(CallPermit { number, args, decision });
        }
        let blocks_session = answer.blocks_session();
        let ask =
            self.approval_request(&answer.verdict).map(|ask| ask.of_call(written, once_allowed));
        let refusal = CallRefusal::of(answer.verdict);
        match ask {
            Some(ask) => {
                self.person_texts.push(ask.for_person());
                CallRuling::Ask(refusal, ask)
            }
            None if blocks_session => CallRuling::Stop(refusal),
            None => CallRuling::Refuse(refusal),
        }
    }

    /// Refuses a call with an invalid tool name, for an adapter that proposes only calls of tools
    /// that exist. Returns `None` if the name is valid.
    pub fn refuse_tool_name(&mut self, written: &str) -> Option<CallRefusal> {
        self.tool_name(written).err()
    }

    fn tool_name(&mut self, written: &str) -> Result<ToolName, CallRefusal> {
        ToolName::parse(written).map_err(|error| {
            let (line, reason) =
                (self.calls.next_number(), format!("the name of the tool {error}"));
            self.add_journal_note(JournalNote::Malformed { line, reason: reason.clone() });
            CallRefusal::invalid_tool(reason)
        })
    }

    /// The request for a person's approval in a verdict, if there is one.
    pub fn approval_request(&self, verdict: &Verdict) -> Option<ApprovalRequest> {
        let seq = verdict.seq.filter(|_| verdict.is_enforced(Decision::Ask))?;
        Some(ApprovalRequest::of(verdict, &self.session, seq))
    }

    /// Reports the result of a call. Texts for the agent are then available from
    /// [`Self::take_texts`].
    pub fn finish(&mut self, result: CallResult) -> GateAnswer {
        let CallResult { number, status, text, exit_code, seen, background, page } = result;
        let call = self.calls.id(number);
        let result = text.map(Payload::Inline);
        let finished = ToolFinished { call, status, result, exit_code, seen, background, of: None };
        let event = Event::new(self.session.clone(), finished);
        let answer = self.submit_safely(EventRequest { event, offered_output: page });
        if answer.verdict.concerns_agent() {
            self.add_answer_text(&answer);
        }
        answer
    }

    /// Asks whether the agent may end its turn.
    pub fn propose_stop(&mut self, stop: StopProposed) -> StopRuling {
        let answer = self.report(stop);
        StopRuling::of(answer)
    }

    /// Stores the text of a decision for the agent. Texts about a broken guard are for people and
    /// are not stored.
    pub fn add_answer_text(&mut self, answer: &GateAnswer) {
        if answer.is_decision() {
            self.texts.extend(answer.verdict.context.clone());
        }
    }

    /// Stores a text for the agent until the next result or prompt.
    pub fn add_text(&mut self, text: String) {
        self.texts.push(text);
    }

    /// Takes the texts for the agent, to send them with the next result or prompt.
    pub fn take_texts(&mut self) -> Option<String> {
        let texts = std::mem::take(&mut self.texts);
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Stores a text for people.
    pub fn add_person_text(&mut self, text: String) {
        self.person_texts.push(text);
    }

    /// Takes the texts for people.
    pub fn take_person_texts(&mut self) -> Vec<String> {
        std::mem::take(&mut self.person_texts)
    }

    /// Takes the notifications that the client may show on the person's desktop.
    pub fn take_notifications(&mut self) -> Vec<PersonNotification> {
        std::mem::take(&mut self.notifications)
    }

    /// Adds a note to the next record in the journal.
    pub fn add_journal_note(&mut self, note: JournalNote) {
        self.runtime.add_journal_note(note);
    }

    /// Does the deferred work after an answer was shown: saves states, sends notifications, and
    /// removes old sessions.
    pub fn run_deferred(&mut self) {
        self.runtime.finish(std::mem::take(&mut self.deferred));
    }

    /// Sends notifications to people. This is the only urgent part of the deferred work.
    pub fn send_notifications(&mut self) {
        self.runtime.send_notifications();
    }

    /// Why the guard could not answer an event, if this happened.
    pub fn fault(&self) -> Option<&GuardFault> {
        self.fault.as_ref()
    }
}
