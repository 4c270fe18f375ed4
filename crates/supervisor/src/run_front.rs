//! The session of a run: a gate, what a person or a signal may end, and those who watch.

use std::cell::RefCell;
use std::sync::Arc;

use jackline_engine::event::PromptSource;
use jackline_engine::{
    ActorId, Definition, EventKind, FaultKind, SessionId, SessionStarted, StopProposed, Summary,
};
use jackline_journal::Note;
use jackline_runtime::{
    CallResult, CallRuling, Gate, GateAnswer, GuardFault, ProposedCall, StopRuling,
};
use serde_json::Value;

use crate::lookout::Lookout;
use crate::told::Told;

/// The session of a run. Attempts of programs are made over the same gate.
pub(crate) struct RunFront<'h> {
    gate: &'h RefCell<Gate>,
    session: SessionId,
    pub(crate) lookout: Arc<Lookout>,
    hear: &'h mut dyn FnMut(&Told),
}

impl<'h> RunFront<'h> {
    pub(crate) fn new(
        gate: &'h RefCell<Gate>,
        lookout: Arc<Lookout>,
        hear: &'h mut dyn FnMut(&Told),
    ) -> Self {
        let session = gate.borrow().session().clone();
        Self { gate, session, lookout, hear }
    }

    /// The gate, for attempts that are made over it.
    pub(crate) fn gate(&self) -> &'h RefCell<Gate> {
        self.gate
    }

    /// Says something to those who watch.
    pub(crate) fn say(&mut self, told: &Told) {
        (self.hear)(told);
    }

    /// Starts the session, or says that its agent is back.
    pub(crate) fn start(&mut self, started: SessionStarted, meta: Value) -> GateAnswer {
        let answer = self.gate.borrow_mut().start(started, Some(meta));
        self.run_deferred();
        answer
    }

    /// Reports something that the agent did, or that was done for it.
    pub(crate) fn report(&mut self, kind: impl Into<EventKind>) -> GateAnswer {
        let answer = self.gate.borrow_mut().report(kind);
        self.run_deferred();
        answer
    }

    /// Reports what another actor did for the agent.
    pub(crate) fn report_as(&mut self, actor: ActorId, kind: impl Into<EventKind>) -> GateAnswer {
        let answer = self.gate.borrow_mut().report_as(actor, kind);
        self.run_deferred();
        answer
    }

    /// Reports what the agent is asked to do, which the guards may refuse.
    pub(crate) fn prompt(&mut self, source: PromptSource, text: &str) -> GateAnswer {
        let answer = self.gate.borrow_mut().prompt(source, text);
        self.run_deferred();
        answer
    }

    /// Asks whether a call may run.
    pub(crate) fn propose(&mut self, call: ProposedCall<'_>) -> CallRuling {
        let ruling = self.gate.borrow_mut().propose(call);
        match ruling {
            // Its state is saved when it has come back.
            CallRuling::Run(_) => self.say_notes(),
            CallRuling::Refuse(_) | CallRuling::Ask(..) | CallRuling::Stop(_) => {
                self.run_deferred();
            }
        }
        ruling
    }

    /// Reports how a call came back.
    pub(crate) fn finish(&mut self, result: CallResult) -> GateAnswer {
        let answer = self.gate.borrow_mut().finish(result);
        self.run_deferred();
        answer
    }

    /// Asks whether the agent may end its turn.
    pub(crate) fn propose_stop(&mut self, stop: StopProposed) -> StopRuling {
        let ruling = self.gate.borrow_mut().propose_stop(stop);
        self.run_deferred();
        ruling
    }

    /// Has something that failed on our side written down with the next record.
    pub(crate) fn note_fault(&self, kind: FaultKind, reason: String) {
        let note = Note::Fault { kind, reason };
        self.gate.borrow_mut().note(note);
    }

    /// Takes what the agent must be told with the next result or prompt.
    pub(crate) fn take_texts(&self) -> Option<String> {
        self.gate.borrow_mut().take_texts()
    }

    /// Keeps what an answer tells the agent for the next time.
    pub(crate) fn keep_text(&self, answer: &GateAnswer) {
        self.gate.borrow_mut().keep_text(answer);
    }

    /// Keeps a text for the next time the agent is told something.
    pub(crate) fn add_text(&self, text: String) {
        self.gate.borrow_mut().add_text(text);
    }

    /// Where the session stands, with what others have written meanwhile.
    pub(crate) fn summary(&self) -> Option<Summary> {
        self.gate.borrow_mut().summary()
    }

    /// The definition in force, which a person may have changed.
    pub(crate) fn definition(&self) -> Option<Arc<Definition>> {
        self.gate.borrow_mut().definition()
    }

    /// The session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Tells those who watch how much is used up.
    pub(crate) fn say_standing(&mut self) {
        let Some(summary) = self.summary() else { return };
        let context_pct = summary.context.first().and_then(|context| context.pct);
        let (steps, budgets) = (summary.steps, summary.budgets);
        self.say(&Told::Standing { steps, budgets, context_pct });
    }

    /// Goes on with the numbers of calls where an earlier process ended.
    pub(crate) fn continue_call_numbers(&self) {
        self.gate.borrow_mut().continue_call_numbers();
    }

    /// Why the guard could not answer an event, so that nothing goes on.
    pub(crate) fn fault(&self) -> Option<GuardFault> {
        self.gate.borrow().fault().cloned()
    }

    /// Does what may wait until an answer is out, and tells those who watch what people must
    /// know.
    fn run_deferred(&mut self) {
        self.gate.borrow_mut().run_deferred();
        self.say_notes();
    }

    fn say_notes(&mut self) {
        let notes = self.gate.borrow_mut().take_notes();
        for text in notes {
            self.say(&Told::Aside { text });
        }
    }
}
