//! The session front-end of a task: a gate, the stages of attempts, and why calls must stop.

use std::cell::RefCell;

use jackline_attempt::{AttemptViolation, GuardrailCause, Subtype};
use jackline_engine::event::{
    AttemptEnded, AttemptResult, AttemptStage, AttemptStarted, PromptSource, ReportedStage, Stage,
    UsageReported,
};
use jackline_engine::id::AttemptId;
use jackline_engine::verdict::{CompletionResult, SessionStop};
use jackline_engine::{
    Arguments, Decision, EventKind, FaultKind, Payload, SessionEnded, SessionId, SessionStarted,
    StopProposed, Verdict, nearest_name,
};
use jackline_journal::JournalNote;
use jackline_runtime::{
    CallPermit, CallRefusal, CallResult, CallRuling, Gate, GateAnswer, ProposedCall, RefusalCode,
    StopRuling,
};
use serde_json::Value;

/// How many existing tools a violation lists.
const TOOLS_LISTED_MAX: usize = 12;

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
    pub(crate) fn refuse_unknown_tool(
        &mut self,
        name: &str,
        existing: &[&str],
    ) -> Vec<AttemptViolation> {
        let unknown = || {
            let message = format!("tool `{name}` does not exist");
            let correction = existing_tools_text(name, existing);
            vec![AttemptViolation::new(Subtype::UnknownTool, message).with_correction(correction)]
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
            // It is unknown which effects of commands stay.
            let ended = AttemptEnded { attempt, result: AttemptResult::PartialRollback };
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

    /// Asks whether the session counts as complete. Waits for verification commands with `wait`,
    /// which returns false if the task is cancelled meanwhile. Returns why it does not, if so.
    pub(crate) fn propose_stop(
        &mut self,
        answer: &Value,
        mut wait: impl FnMut() -> bool,
    ) -> Result<(), StopRefusal> {
        let text = answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned);
        loop {
            let output = Some(Payload::Inline(text.clone()));
            let stop = StopProposed { output, ..StopProposed::default() };
            let answer = self.gate.borrow_mut().report(stop);
            let guardrail = leading_violation(&answer.verdict);
            let reason = match StopRuling::of(answer) {
                StopRuling::End(completion) => {
                    return match completion.as_ref().and_then(unfinished_reason) {
                        Some(reason) => Err(StopRefusal { reason, guardrail }),
                        None => Ok(()),
                    };
                }
                StopRuling::Wait(_) if wait() => continue,
                StopRuling::Wait(reason)
                | StopRuling::Continue(reason)
                | StopRuling::Blocked(reason) => reason,
            };
            return Err(StopRefusal { reason, guardrail });
        }
    }

    /// Ends the session. Returns its stop code.
    pub(crate) fn end_session(&mut self) -> Option<SessionStop> {
        self.report(SessionEnded::default()).verdict.stop
    }

    /// Adds a text for people.
    pub(crate) fn add_person_text(&mut self, text: String) {
        self.gate.borrow_mut().add_person_text(text);
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

/// Why the session does not count as complete.
pub(crate) struct StopRefusal {
    pub(crate) reason: String,
    /// The violation behind it, if there is one.
    pub(crate) guardrail: Option<GuardrailCause>,
}

/// The first violation that a verdict enforces.
fn leading_violation(verdict: &Verdict) -> Option<GuardrailCause> {
    let violation = verdict.violations.iter().find(|violation| violation.enforced)?;
    Some(GuardrailCause { class: violation.class, subtype: violation.subtype.to_string() })
}

/// Why an allowed stop does not count as complete; `None` if it does, or if nothing is enforced.
fn unfinished_reason(completion: &CompletionResult) -> Option<String> {
    match completion {
        CompletionResult::Complete | CompletionResult::Incomplete { .. } => None,
        CompletionResult::Bypassed { .. } => Some("a limit ended the session".to_owned()),
        CompletionResult::Capped { feedback, .. } => Some(feedback.clone()),
        CompletionResult::Unverified { reason } => Some(reason.clone()),
    }
}

/// Checks an event that has already happened, so that the guards can't refuse it.
fn check_accepted(answer: &GateAnswer) -> Result<(), String> {
    if answer.is_accepted() { Ok(()) } else { Err(answer.reason()) }
}

fn attempt_id(number: u32) -> Result<AttemptId, String> {
    AttemptId::parse(format!("a{number}")).map_err(|error| error.to_string())
}

/// Names the tool that was probably meant, and the existing ones.
fn existing_tools_text(name: &str, existing: &[&str]) -> String {
    if existing.is_empty() {
        return "No tool exists; leave the call out.".to_owned();
    }
    let meant = nearest_name(name, existing.iter().copied());
    let meant = meant.map_or_else(String::new, |meant| format!("Did you mean `{meant}`? "));
    let names: Vec<&str> = existing.iter().take(TOOLS_LISTED_MAX).copied().collect();
    let more = if existing.len() > TOOLS_LISTED_MAX { ", …" } else { "" };
    format!("{meant}Call only what exists: {}{more}.", names.join(", "))
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
