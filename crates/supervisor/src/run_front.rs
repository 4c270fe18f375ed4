//! The session front-end of a run: its gate, its stop signals, and the receiver of its events.

use std::cell::RefCell;
use std::sync::Arc;

use jackline_engine::event::PromptSource;
use jackline_engine::{
    ActorId, Definition, EventKind, FaultKind, SessionId, SessionStarted, SessionSummary,
    StopProposed,
};
use jackline_journal::JournalNote;
use jackline_runtime::{
    CallResult, CallRuling, Gate, GateAnswer, GuardFault, ProposedCall, StopRuling,
};
use serde_json::Value;

use crate::run_event::RunEvent;
use crate::stop_signals::StopSignals;

/// The session of a run. The attempts of programs use the same gate.
pub(crate) struct RunFront<'h> {
    gate: &'h RefCell<Gate>,
    session: SessionId,
    pub(crate) stop_signals: Arc<StopSignals>,
    observer: &'h mut dyn FnMut(&RunEvent),
}

impl<'h> RunFront<'h> {
    pub(crate) fn new(
        gate: &'h RefCell<Gate>,
        lookout: Arc<StopSignals>,
        hear: &'h mut dyn FnMut(&RunEvent),
    ) -> Self {
        let session = gate.borrow().session().clone();
        Self { gate, session, stop_signals: lookout, observer: hear }
    }

    /// The gate, for attempts.
    pub(crate) fn gate(&self) -> &'h RefCell<Gate> {
        self.gate
    }

    /// Sends an event to the receiver of the run's events.
    pub(crate) fn emit(&mut self, event: &RunEvent) {
        (self.observer)(event);
    }

    /// Starts the session, or reports that its agent has resumed.
    pub(crate) fn start(&mut self, started: SessionStarted, meta: Value) -> GateAnswer {
        let answer = self.gate.borrow_mut().start(started, Some(meta));
        self.run_deferred();
        answer
    }

    /// Reports an event of the agent or of the supervisor.
    pub(crate) fn report(&mut self, kind: impl Into<EventKind>) -> GateAnswer {
        let answer = self.gate.borrow_mut().report(kind);
        self.run_deferred();
        answer
    }

    /// Reports an event of another actor.
    pub(crate) fn report_as(&mut self, actor: ActorId, kind: impl Into<EventKind>) -> GateAnswer {
        let answer = self.gate.borrow_mut().report_as(actor, kind);
        self.run_deferred();
        answer
    }

    /// Reports a prompt, which the guards may refuse.
    pub(crate) fn prompt(&mut self, source: PromptSource, text: &str) -> GateAnswer {
        let answer = self.gate.borrow_mut().prompt(source, text);
        self.run_deferred();
        answer
    }

    /// Asks whether a call may run.
    pub(crate) fn propose(&mut self, call: ProposedCall<'_>) -> CallRuling {
        let ruling = self.gate.borrow_mut().propose(call);
        match ruling {
            // The state is saved when the call has returned.
            CallRuling::Run(_) => self.emit_notes(),
            CallRuling::Refuse(_) | CallRuling::Ask(..) | CallRuling::Stop(_) => {
                self.run_deferred();
            }
        }
        ruling
    }

    /// Reports the result of a call.
    pub(crate) fn finish(&mut self, result: CallResult) -> GateAnswer {
        let answer = self.gate.borrow_mut().finish(result);
        self.run_deferred();
        answer
    }

    /// Asks whether the agent may stop.
    pub(crate) fn propose_stop(&mut self, stop: StopProposed) -> StopRuling {
        let ruling = self.gate.borrow_mut().propose_stop(stop);
        self.run_deferred();
        ruling
    }

    /// Records an internal failure as a note with the next record.
    pub(crate) fn note_fault(&self, kind: FaultKind, reason: String) {
        let note = JournalNote::Fault { kind, reason };
        self.gate.borrow_mut().add_journal_note(note);
    }

    /// Takes the texts that the agent must get with the next result or prompt.
    pub(crate) fn take_texts(&self) -> Option<String> {
        self.gate.borrow_mut().take_texts()
    }

    /// Stores the text of an answer for the next result or prompt.
    pub(crate) fn keep_text(&self, answer: &GateAnswer) {
        self.gate.borrow_mut().add_answer_text(answer);
    }

    /// Adds a text for the next result or prompt.
    pub(crate) fn add_text(&self, text: String) {
        self.gate.borrow_mut().add_text(text);
    }

    /// The current state of the session, with the records of other processes.
    pub(crate) fn summary(&self) -> Option<SessionSummary> {
        self.gate.borrow_mut().summary()
    }

    /// The definition in force, which a person may have changed.
    pub(crate) fn definition(&self) -> Option<Arc<Definition>> {
        self.gate.borrow_mut().definition()
    }

    /// The session id.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Sends an event with the used budgets.
    pub(crate) fn emit_budget_status(&mut self) {
        let Some(summary) = self.summary() else { return };
        let context_pct = summary.context.first().and_then(|context| context.pct);
        let (steps, budgets) = (summary.steps, summary.budgets);
        self.emit(&RunEvent::BudgetStatus { steps, budgets, context_pct });
    }

    /// Continues the call numbers of an earlier process.
    pub(crate) fn continue_call_numbers(&self) {
        self.gate.borrow_mut().continue_call_numbers();
    }

    /// Why the guard could not answer an event. Nothing may run after a fault.
    pub(crate) fn fault(&self) -> Option<GuardFault> {
        self.gate.borrow().fault().cloned()
    }

    /// Does the work that was deferred until after an answer, and sends the notes for people.
    fn run_deferred(&mut self) {
        self.gate.borrow_mut().run_deferred();
        self.emit_notes();
    }

    fn emit_notes(&mut self) {
        let notes = self.gate.borrow_mut().take_person_texts();
        for text in notes {
            self.emit(&RunEvent::Notification { text });
        }
    }
}
