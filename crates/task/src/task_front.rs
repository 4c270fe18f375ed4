//! The session front-end of a task: a gate, the stages of attempts, and why calls must stop.

use std::cell::RefCell;

use jackline_attempt::{AttemptViolation, Subtype};
use jackline_engine::event::{
    AttemptEnded, AttemptResult, AttemptStage, AttemptStarted, PromptSource, ReportedStage, Stage,
    UsageReported,
};
use jackline_engine::id::AttemptId;
use jackline_engine::{
    Arguments, Decision, EventKind, FaultKind, SessionEnded, SessionId, SessionStarted,
    StopProposed,
};
use jackline_journal::JournalNote;
use jackline_runtime::{
    CallPermit, CallRefusal, CallResult, CallRuling, Gate, GateAnswer, ProposedCall, RefusalCode,
};
use serde_json::Value;

/// The client name in the journals of tasks.
const CLIENT: &str = "attempt";

/// The session of a task, or the part of a run's session that belongs to a task.
pub(crate) struct TaskFront<'r> {
    gate: &'r RefCell<Gate>,
    /// What a person has to do after allowing a call, if there is anything.
    once_allowed: Option<&'static str>,
    /// Why no call may run: the session is paused or has ended.
    hold_reason: Option<String>,
}

impl<'r> TaskFront<'r> {
    pub(crate) fn new(gate: &'r RefCell<Gate>, once_allowed: Option<&'static str>) -> Self {
        Self { gate, once_allowed, hold_reason: None }
    }

    /// Starts the session with its prompt. Fails if it can't be recorded.
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
        self.check_allowed(&answer)?;
        let answer = self.gate.borrow_mut().prompt(PromptSource::Human, prompt);
        self.check_allowed(&answer)
    }

    /// Asks whether a call may run. Returns the violations if it may not.
    pub(crate) fn propose(
        &mut self,
        tool: &str,
        args: Value,
    ) -> Result<CallPermit, Vec<AttemptViolation>> {
        let args = Arguments::Parsed(args);
        let call =
            ProposedCall { once_allowed: self.once_allowed, ..ProposedCall::new(tool, args) };
        let ruling = self.gate.borrow_mut().propose(call);
        if let CallRuling::Stop(refusal) = &ruling {
            self.hold_reason = Some(refusal.reason.clone());
        }
        ruling.permit().map_err(|refusal| match refusal.code {
            RefusalCode::InvalidTool => vec![invalid_tool(refusal)],
            _ => attempt_violations(&refusal.violations, refusal.reason),
        })
    }

    /// The violations for a call of a tool that does not exist. An invalid tool name is recorded.
    pub(crate) fn refuse_unknown_tool(&mut self, name: &str) -> Vec<AttemptViolation> {
        let unknown = || {
            vec![AttemptViolation::new(
                Subtype::UnknownTool,
                format!("tool `{name}` does not exist"),
            )]
        };
        let refusal = self.gate.borrow_mut().refuse_tool_name(name);
        refusal.map_or_else(unknown, |refusal| vec![invalid_tool(refusal)])
    }

    /// Reports the result of a call.
    pub(crate) fn finish(&mut self, result: CallResult) {
        let answer = self.gate.borrow_mut().finish(result);
        self.record_hold(&answer);
    }

    /// Starts an attempt, unless the guards refuse it.
    pub(crate) fn attempt_started(&mut self, number: u32) -> Result<(), String> {
        let answer = self.report(AttemptStarted { attempt: attempt_id(number)? });
        self.check_allowed(&answer)
    }

    /// Records a stage of an attempt.
    pub(crate) fn record_stage(&mut self, number: u32, stage: Stage) -> Result<(), String> {
        let (attempt, stage) = (attempt_id(number)?, ReportedStage::Builtin(stage));
        let answer = self.report(AttemptStage { attempt, stage });
        check_accepted(&answer)
    }

    /// Records the end of an attempt.
    pub(crate) fn attempt_ended(
        &mut self,
        number: u32,
        result: AttemptResult,
    ) -> Result<(), String> {
        let answer = self.report(AttemptEnded { attempt: attempt_id(number)?, result });
        check_accepted(&answer)
    }

    /// Records in the session of a process that has ended that an attempt was rolled back.
    pub(crate) fn attempt_ended_in(&mut self, session: &SessionId, number: u32) {
        // A session that accepts no events needs no record.
        if let Ok(attempt) = attempt_id(number) {
            let ended = AttemptEnded { attempt, result: AttemptResult::Rollback };
            self.gate.borrow_mut().report_in(session, ended);
        }
    }

    /// Records the usage of an answer of the model.
    pub(crate) fn report_usage(&mut self, model: String, input: u64, output: u64) {
        let model = Some(model);
        self.report(UsageReported { model, input, output, ..UsageReported::default() });
    }

    /// Ends the session because an attempt could not be undone.
    pub(crate) fn record_rollback_failure(&mut self, number: u32, reason: &str) {
        let note = JournalNote::Fault { kind: FaultKind::Rollback, reason: reason.to_owned() };
        self.gate.borrow_mut().add_journal_note(note);
        // If this can't be recorded either, the reason below still stops all calls.
        let _ = self.attempt_ended(number, AttemptResult::Stuck);
        self.hold_reason = Some(reason.to_owned());
    }

    /// Why no call may run, if that is so.
    pub(crate) fn hold_reason(&self) -> Option<&str> {
        self.hold_reason.as_deref()
    }

    /// Takes the texts that the model must get with the next request.
    pub(crate) fn take_texts(&mut self) -> Option<String> {
        self.gate.borrow_mut().take_texts()
    }

    /// Does deferred work. Returns notes for people.
    pub(crate) fn run_deferred(&mut self) -> Vec<String> {
        let mut gate = self.gate.borrow_mut();
        gate.run_deferred();
        gate.take_person_texts()
    }

    /// Ends the session. If the task is done, first asks whether it counts as complete.
    pub(crate) fn end_session(&mut self, is_done: bool) {
        if is_done {
            let mut gate = self.gate.borrow_mut();
            let ruling = gate.propose_stop(StopProposed::default());
            if let Some(why) = ruling.refusal_reason() {
                gate.add_person_text(format!("the session does not count as complete: {why}"));
            }
        }
        self.report(SessionEnded::default());
    }

    fn report(&mut self, kind: impl Into<EventKind>) -> GateAnswer {
        let answer = self.gate.borrow_mut().report(kind);
        self.record_hold(&answer);
        answer
    }

    /// Checks an event that the guards may refuse.
    fn check_allowed(&mut self, answer: &GateAnswer) -> Result<(), String> {
        self.record_hold(answer);
        if answer.is_allowed() { Ok(()) } else { Err(answer.reason()) }
    }

    fn record_hold(&mut self, answer: &GateAnswer) {
        if answer.blocks_session() {
            self.hold_reason = Some(answer.reason());
        }
    }
}

/// Checks an event that has already happened, so that the guards can't refuse it.
fn check_accepted(answer: &GateAnswer) -> Result<(), String> {
    if answer.is_accepted() { Ok(()) } else { Err(answer.reason()) }
}

fn attempt_id(number: u32) -> Result<AttemptId, String> {
    AttemptId::parse(format!("a{number}")).map_err(|error| error.to_string())
}

/// The violation for a name that is not a valid tool name.
fn invalid_tool(refusal: CallRefusal) -> AttemptViolation {
    AttemptViolation::new(Subtype::UnknownTool, refusal.reason)
}

/// The violations for a call, in the form of attempts.
pub(crate) fn attempt_violations(
    violations: &[jackline_engine::Violation],
    reason: String,
) -> Vec<AttemptViolation> {
    let holds = |it: &&jackline_engine::Violation| it.enforced && it.decision > Decision::Rewrite;
    let enforced: Vec<AttemptViolation> =
        violations.iter().filter(holds).map(AttemptViolation::from).collect();
    if enforced.is_empty() {
        vec![AttemptViolation::new(Subtype::ToolDenied, reason)]
    } else {
        enforced
    }
}
