//! The session of a task: a gate, the stages of attempts, and whether nothing may go on.

use std::cell::RefCell;

use jackline_attempt::{Subtype, Violation};
use jackline_engine::event::{
    AttemptEnded, AttemptResult, AttemptStage, AttemptStarted, PromptSource, ReportedStage, Stage,
    UsageReported,
};
use jackline_engine::id::AttemptId;
use jackline_engine::{
    Arguments, Decision, EventKind, FaultKind, SessionEnded, SessionId, SessionStarted,
    StopProposed,
};
use jackline_journal::Note;
use jackline_runtime::{
    CallPermit, CallRefusal, CallResult, CallRuling, Gate, GateAnswer, ProposedCall, RefusalCode,
};
use serde_json::Value;

/// The name under which sessions are started.
const CLIENT: &str = "attempt";

/// The session of a task, or the part of a run's session that a task is.
pub(crate) struct TaskFront<'r> {
    gate: &'r RefCell<Gate>,
    /// What has to happen once a person has allowed a call.
    once_allowed: Option<&'static str>,
    /// Why nothing may go on: the session is over or paused.
    held: Option<String>,
}

impl<'r> TaskFront<'r> {
    pub(crate) fn new(gate: &'r RefCell<Gate>, once_allowed: Option<&'static str>) -> Self {
        Self { gate, once_allowed, held: None }
    }

    /// Starts the session with what is asked for. Without a record nothing starts.
    pub(crate) fn start(
        &mut self,
        workspace: &str,
        model: String,
        prompt: &str,
    ) -> Result<(), String> {
        let started = SessionStarted {
            workspace: Some(workspace.to_owned()),
            client: Some(CLIENT.to_owned()),
            model: Some(model),
            ..SessionStarted::default()
        };
        let answer = self.gate.borrow_mut().start(started, None);
        self.allowed(&answer)?;
        let answer = self.gate.borrow_mut().prompt(PromptSource::Human, prompt);
        self.allowed(&answer)
    }

    /// Asks whether a call may run, or gives the objections.
    pub(crate) fn propose(
        &mut self,
        tool: &str,
        args: Value,
    ) -> Result<CallPermit, Vec<Violation>> {
        let args = Arguments::Parsed(args);
        let call =
            ProposedCall { once_allowed: self.once_allowed, ..ProposedCall::new(tool, args) };
        let ruling = self.gate.borrow_mut().propose(call);
        if let CallRuling::Stop(refusal) = &ruling {
            self.held = Some(refusal.reason.clone());
        }
        ruling.permit().map_err(|refusal| match refusal.code {
            RefusalCode::InvalidTool => vec![invalid_tool(refusal)],
            _ => objections(&refusal.violations, refusal.reason),
        })
    }

    /// Objects to a call of a tool that is not there. A name that no tool can have is noted.
    pub(crate) fn refuse_unknown_tool(&mut self, name: &str) -> Vec<Violation> {
        let unknown =
            || vec![Violation::new(Subtype::UnknownTool, format!("there is no tool `{name}`"))];
        let refusal = self.gate.borrow_mut().refuse_tool_name(name);
        refusal.map_or_else(unknown, |refusal| vec![invalid_tool(refusal)])
    }

    /// Reports how a call came back.
    pub(crate) fn finish(&mut self, result: CallResult) {
        let answer = self.gate.borrow_mut().finish(result);
        self.note_hold(&answer);
    }

    /// Starts an attempt, unless the guards object.
    pub(crate) fn attempt_started(&mut self, number: u32) -> Result<(), String> {
        let answer = self.report(AttemptStarted { attempt: attempt_id(number)? });
        self.allowed(&answer)
    }

    /// Writes down how far an attempt has come.
    pub(crate) fn stage(&mut self, number: u32, stage: Stage) -> Result<(), String> {
        let (attempt, stage) = (attempt_id(number)?, ReportedStage::Known(stage));
        let answer = self.report(AttemptStage { attempt, stage });
        accepted(&answer)
    }

    /// Writes down what became of an attempt.
    pub(crate) fn attempt_ended(
        &mut self,
        number: u32,
        result: AttemptResult,
    ) -> Result<(), String> {
        let answer = self.report(AttemptEnded { attempt: attempt_id(number)?, result });
        accepted(&answer)
    }

    /// Writes down in the session of another process, which is gone, that an attempt was
    /// rolled back.
    pub(crate) fn attempt_ended_in(&mut self, session: &SessionId, number: u32) {
        // A session that takes nothing any more has nothing that could be wrong with it.
        if let Ok(attempt) = attempt_id(number) {
            let ended = AttemptEnded { attempt, result: AttemptResult::Rollback };
            self.gate.borrow_mut().report_in(session, ended);
        }
    }

    /// Writes down what an answer of the model has cost.
    pub(crate) fn report_usage(&mut self, model: String, input: u64, output: u64) {
        let model = Some(model);
        self.report(UsageReported { model, input, output, ..UsageReported::default() });
    }

    /// Ends the session because an attempt is neither done nor undone.
    pub(crate) fn stuck(&mut self, number: u32, reason: &str) {
        let note = Note::Fault { kind: FaultKind::Rollback, reason: reason.to_owned() };
        self.gate.borrow_mut().note(note);
        // Where not even that can be written down, nothing goes on all the same.
        let _ = self.attempt_ended(number, AttemptResult::Stuck);
        self.held = Some(reason.to_owned());
    }

    /// Why nothing may go on, if so.
    pub(crate) fn held(&self) -> Option<&str> {
        self.held.as_deref()
    }

    /// Takes what the model must be told with the next question.
    pub(crate) fn take_texts(&mut self) -> Option<String> {
        self.gate.borrow_mut().take_texts()
    }

    /// Does what may wait; gives what people must be told.
    pub(crate) fn run_deferred(&mut self) -> Vec<String> {
        let mut gate = self.gate.borrow_mut();
        gate.run_deferred();
        gate.take_notes()
    }

    /// Ends the session. A task that is done asks first whether it may end as done.
    pub(crate) fn end(&mut self, is_done: bool) {
        if is_done {
            let mut gate = self.gate.borrow_mut();
            let ruling = gate.propose_stop(StopProposed::default());
            if let Some(why) = ruling.objection() {
                gate.add_note(format!("the session does not count as complete: {why}"));
            }
        }
        self.report(SessionEnded::default());
    }

    fn report(&mut self, kind: impl Into<EventKind>) -> GateAnswer {
        let answer = self.gate.borrow_mut().report(kind);
        self.note_hold(&answer);
        answer
    }

    /// An event that the guards may refuse.
    fn allowed(&mut self, answer: &GateAnswer) -> Result<(), String> {
        self.note_hold(answer);
        if answer.is_allowed() { Ok(()) } else { Err(answer.reason()) }
    }

    fn note_hold(&mut self, answer: &GateAnswer) {
        if answer.holds_session() {
            self.held = Some(answer.reason());
        }
    }
}

/// An event that has happened, whatever the guards think of it.
fn accepted(answer: &GateAnswer) -> Result<(), String> {
    if answer.is_accepted() { Ok(()) } else { Err(answer.reason()) }
}

fn attempt_id(number: u32) -> Result<AttemptId, String> {
    AttemptId::parse(format!("a{number}")).map_err(|error| error.to_string())
}

/// The objection to a name that no tool can have.
fn invalid_tool(refusal: CallRefusal) -> Violation {
    Violation::new(Subtype::UnknownTool, refusal.reason)
}

/// The objections to a call, as attempts have them.
pub(crate) fn objections(
    violations: &[jackline_engine::Violation],
    reason: String,
) -> Vec<Violation> {
    let holds = |it: &&jackline_engine::Violation| it.enforced && it.decision > Decision::Rewrite;
    let enforced: Vec<Violation> = violations.iter().filter(holds).map(Violation::from).collect();
    if enforced.is_empty() { vec![Violation::new(Subtype::ToolDenied, reason)] } else { enforced }
}
