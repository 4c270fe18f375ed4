//! A session, as the hook server uses it.

use jackline_engine::event::{Control, UsageReported};
use jackline_engine::facts::OutputFact;
use jackline_engine::verdict::ContextLevel;
use jackline_engine::{
    ActorId, CallId, ControlAction, Event, FaultKind, SessionId, SessionSummary, Timestamp, Verdict,
};
use jackline_host::environment::user_name;
use jackline_runtime::surfaces::SurfaceProfile;
use jackline_runtime::{
    AnswerKind, ApprovalRequest, EventRequest, Gate, GateAnswer, OutputBounds, PersonNotification,
    Runtime, SessionRunState, spool_fault,
};

use crate::dialect::{ReplacedOutput, StoredOutput, ToolOutput, UsageSource};
use crate::file_write::FileWrite;

/// A session that is open for one hook call.
pub(super) struct HookSession {
    gate: Gate,
}

impl HookSession {
    /// Opens a session.
    pub(super) fn new(runtime: Runtime, surface: &SurfaceProfile, id: SessionId) -> Self {
        Self { gate: Gate::new(runtime.with_surface(surface), id) }
    }

    /// The session id.
    pub(super) fn id(&self) -> &SessionId {
        self.gate.session()
    }

    /// Decides on an event. `offered` describes a possible replacement of the tool output.
    pub(super) fn submit(
        &mut self,
        event: Event,
        offered: Option<OutputFact>,
    ) -> (Verdict, AnswerKind) {
        let GateAnswer { verdict, outcome } =
            self.gate.submit(EventRequest { event, offered_output: offered });
        (verdict, outcome)
    }

    /// The question to a person, if the verdict asks one.
    pub(super) fn pending_ask(&self, verdict: &Verdict) -> Option<ApprovalRequest> {
        self.gate.approval_request(verdict)
    }

    /// A summary of the session.
    pub(super) fn summary(&mut self) -> Option<SessionSummary> {
        self.gate.summary()
    }

    /// Whether the session is running, paused or stopped.
    pub(super) fn run_state(&mut self) -> Option<SessionRunState> {
        self.gate.session_run_state()
    }

    /// Whether the conversation of the main agent is full and a new one must start with a briefing.
    pub(super) fn is_context_full(&mut self) -> bool {
        let contexts = self.summary().map(|summary| summary.context).unwrap_or_default();
        let main = contexts.iter().find(|context| context.actor.is_main());
        main.is_some_and(|main| main.level >= ContextLevel::Compact)
    }

    /// Counts the token usage since the last count. This decides nothing now: an exceeded limit
    /// takes effect at the next gate.
    pub(super) fn count_usage(&mut self, actor: &ActorId, source: &dyn UsageSource) {
        let session = self.id().clone();
        let event = |used: &UsageReported| {
            Event::new(session.clone(), used.clone()).with_actor(actor.clone())
        };
        let mut is_counted = |used: &UsageReported, at: Option<Timestamp>| {
            !self.gate.lacks_usage_report(&event(used), at)
        };
        let used = source.uncounted_usage(&mut is_counted);
        for used in &used {
            self.submit(event(used), None);
        }
    }

    /// Ends the questions about calls that a person refused in the client.
    pub(super) fn withdraw_questions(&mut self, refused: &[CallId]) {
        for call in refused {
            if self.gate.is_asked_in_client(call) {
                let control = Control {
                    action: ControlAction::Withdraw,
                    by: Some(user_name()),
                    why: Some("answered No in the client".to_owned()),
                    call: Some(call.clone()),
                    ..Control::default()
                };
                self.submit(Event::new(self.id().clone(), control), None);
            }
        }
    }

    /// The replacement for a tool output, if one is needed.
    pub(super) fn replace_output(&mut self, output: Box<dyn ToolOutput>) -> Option<ReplacedOutput> {
        if !output.may_need_replacement() {
            return None;
        }
        let bounds = self.gate.output_bounds()?;
        output.replace(&bounds, &mut |text| self.store_output(&bounds, text))
    }

    fn store_output(&mut self, bounds: &OutputBounds, text: &str) -> StoredOutput {
        if !bounds.enforced {
            return Ok(None);
        }
        let stored = self.gate.store_output(text);
        stored.map(|path| Some(path.display().to_string()))
    }

    /// Saves the file that a call overwrites, so that a person can undo the call.
    pub(super) fn save_for_undo(
        &mut self,
        write: FileWrite,
        verdict: &Verdict,
        outcome: AnswerKind,
    ) {
        if !write.may_write(verdict, outcome) {
            return;
        }
        let Some(directory) = self.gate.session_directory() else { return };
        if let Err(reason) = write.save_for_undo(&directory) {
            spool_fault(Some(self.id()), FaultKind::Undo, &reason, false);
        }
    }

    /// Messages for the person that are new since the last call.
    pub(super) fn take_person_messages(&mut self) -> Vec<String> {
        self.gate.take_person_texts()
    }

    /// Notifications that are about to be sent.
    pub(super) fn take_notices(&mut self) -> Vec<PersonNotification> {
        self.gate.take_notifications()
    }

    /// Does the deferred work, after the answer is printed. `stopped`: the agent stops although no
    /// guard checked the stop.
    pub(super) fn finish(mut self, stopped: bool) {
        self.gate.run_deferred();
        self.gate.close(stopped);
    }
}
