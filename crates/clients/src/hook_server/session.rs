//! One session as the hook server uses it.

use jackline_engine::event::UsageReported;
use jackline_engine::facts::OutputFact;
use jackline_engine::verdict::ContextLevel;
use jackline_engine::{ActorId, Event, FaultKind, SessionId, Summary, Timestamp, Verdict};
use jackline_runtime::{
    Bounds, Gate, GateAnswer, Notice, Outcome, PendingAsk, Request, Runtime, Standing, keep_fault,
};

use crate::dialect::{KeptOutput, ReplacedOutput, ToolOutput, UsageSource};
use crate::file_write::FileWrite;

/// One session, open for one hook call.
pub(super) struct HookSession {
    gate: Gate,
}

impl HookSession {
    /// Opens a session.
    pub(super) fn new(runtime: Runtime, id: SessionId) -> Self {
        // What the client calls a tool with stays as it is.
        Self { gate: Gate::new(runtime.keeping_arguments(), id) }
    }

    /// Which session it is.
    pub(super) fn id(&self) -> &SessionId {
        self.gate.session()
    }

    /// Decides on an event. `offered` is what can be shown in the place of an output.
    pub(super) fn submit(
        &mut self,
        event: Event,
        offered: Option<OutputFact>,
    ) -> (Verdict, Outcome) {
        let GateAnswer { verdict, outcome } =
            self.gate.submit(Request { event, offered_output: offered });
        (verdict, outcome)
    }

    /// The question to a person that a verdict asks, if it asks one.
    pub(super) fn pending_ask(&self, verdict: &Verdict) -> Option<PendingAsk> {
        self.gate.pending_ask(verdict)
    }

    /// Where the session stands.
    pub(super) fn summary(&mut self) -> Option<Summary> {
        self.gate.summary()
    }

    /// Whether the session may go on.
    pub(super) fn standing(&mut self) -> Option<Standing> {
        self.gate.standing()
    }

    /// Whether the conversation of the main agent has to begin again with a briefing.
    pub(super) fn is_full(&mut self) -> bool {
        let contexts = self.summary().map(|summary| summary.context).unwrap_or_default();
        let main = contexts.iter().find(|context| context.actor.is_main());
        main.is_some_and(|main| main.level >= ContextLevel::Compact)
    }

    /// Counts what the model's answers have used since the last count. That observes; what it does
    /// to limits shows at the next gate.
    pub(super) fn count_usage(&mut self, actor: &ActorId, source: &dyn UsageSource) {
        let session = self.id().clone();
        let event =
            |used: &UsageReported| Event::new(session.clone(), used.clone()).by(actor.clone());
        let mut is_counted =
            |used: &UsageReported, at: Option<Timestamp>| !self.gate.lacks(&event(used), at);
        let used = source.uncounted(&mut is_counted);
        for used in &used {
            self.submit(event(used), None);
        }
    }

    /// What can be shown in the place of an output.
    pub(super) fn replace_output(&mut self, output: Box<dyn ToolOutput>) -> Option<ReplacedOutput> {
        if !output.may_differ() {
            return None;
        }
        let bounds = self.gate.bounds()?;
        output.replace(&bounds, &mut |text| self.keep_output(&bounds, text))
    }

    fn keep_output(&mut self, bounds: &Bounds, text: &str) -> KeptOutput {
        if !bounds.enforced {
            return Ok(None);
        }
        let kept = self.gate.keep_output(text);
        kept.map(|path| Some(path.display().to_string()))
    }

    /// Keeps what a call writes over, so that a person can undo it.
    pub(super) fn note_write(&mut self, write: FileWrite, verdict: &Verdict, outcome: Outcome) {
        if !write.may_happen(verdict, outcome) {
            return;
        }
        let Some(directory) = self.gate.session_directory() else { return };
        if let Err(reason) = write.note(&directory) {
            keep_fault(Some(self.id()), FaultKind::Undo, &reason, false);
        }
    }

    /// What a person should be told, since it was last asked.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        self.gate.take_notes()
    }

    /// The notices that are about to be sent to people.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        self.gate.take_notices()
    }

    /// Does what may wait until the answer is out. `stopped`: the agent stops although no guard
    /// could look.
    pub(super) fn finish(mut self, stopped: bool) {
        self.gate.run_deferred();
        self.gate.close(stopped);
    }
}
