//! The session of a task: every call is proposed to the guards, every result and every
//! stage of an attempt is told to them.

use std::cell::RefCell;

use jackline_attempt::{Subtype, Violation};
use jackline_engine::{
    Arguments, AttemptEnded, AttemptId, AttemptResult, AttemptStage, AttemptStarted, Decision,
    EventKind, FaultKind, Payload, PromptSource, PromptSubmitted, Seen, SessionEnded, SessionId,
    SessionStarted, Status, StopProposed, ToolFinished, ToolName, ToolProposed, UsageReported,
    Verdict,
};
use jackline_journal::Note;
use jackline_runtime::{Outcome, Reporter, ask_code};
use serde_json::Value;

/// The name under which sessions are started.
const CLIENT: &str = "attempt";

/// The guards of one session, which may be somebody else's as well.
pub(crate) struct Guard<'r> {
    reporter: &'r RefCell<Reporter>,
    /// What has to be done once a person has let a call pass.
    once_allowed: &'static str,
    /// What the model is to be told with the next question.
    owed: Vec<String>,
    /// What people are to be told.
    aside: Vec<String>,
    /// Why nothing may go on: the session is stopped or paused.
    held: Option<String>,
}

/// A call that may run.
pub(crate) struct Permit {
    pub(crate) number: u64,
    /// What it is called with instead, where the guards say so.
    pub(crate) args: Option<Value>,
}

/// How a call came back.
pub(crate) struct CameBack {
    pub(crate) number: u64,
    pub(crate) status: Status,
    pub(crate) text: String,
    pub(crate) exit_code: Option<i64>,
    pub(crate) seen: Vec<Seen>,
}

impl<'r> Guard<'r> {
    pub(crate) fn new(reporter: &'r RefCell<Reporter>, once_allowed: &'static str) -> Self {
        let (owed, aside) = (Vec::new(), Vec::new());
        Self { reporter, once_allowed, owed, aside, held: None }
    }

    /// Begins the session with what is asked for. Without a record nothing begins.
    pub(crate) fn begin(
        &mut self,
        workspace: &str,
        model: String,
        prompt: &str,
    ) -> Result<(), String> {
        let started = EventKind::SessionStarted(SessionStarted {
            workspace: Some(workspace.to_owned()),
            client: Some(CLIENT.to_owned()),
            model: Some(model),
            ..SessionStarted::default()
        });
        self.demand(started)?;
        let text = Some(Payload::Inline(prompt.to_owned()));
        self.demand(EventKind::PromptSubmitted(PromptSubmitted {
            source: PromptSource::Human,
            text,
        }))
    }

    /// Asks whether a call may run, or says who objects.
    pub(crate) fn propose(&mut self, tool: &str, args: Value) -> Result<Permit, Vec<Violation>> {
        let number = self.reporter.borrow_mut().next_call();
        let Ok(name) = ToolName::parse(tool) else {
            let message = format!("`{tool}` is no name of a tool");
            return Err(vec![Violation::new(Subtype::UnknownTool, message)]);
        };
        let (call, args) = (Reporter::call_id(number), Arguments::Parsed(args));
        let kind = EventKind::ToolProposed(ToolProposed {
            call,
            tool: name,
            args,
            ..ToolProposed::default()
        });
        let (verdict, outcome) = self.tell(kind);
        if outcome == Outcome::Passed || (outcome == Outcome::Decided && verdict.lets_run()) {
            self.owed.extend(verdict.context);
            return Ok(Permit { number, args: verdict.args });
        }
        if verdict.is_enforced(Decision::Ask)
            && let Some(seq) = verdict.seq
        {
            let code = ask_code(self.reporter.borrow().session(), seq);
            let once_allowed = self.once_allowed;
            self.aside.push(format!(
                "a call of `{tool}` needs a person: `jackline allow {code}` lets exactly this call \
                 pass once, then {once_allowed}"
            ));
        }
        Err(objections(&verdict))
    }

    /// Tells how a call came back.
    pub(crate) fn finish(&mut self, back: CameBack) {
        let CameBack { number, status, text, exit_code, seen } = back;
        let (verdict, outcome) = self.tell(EventKind::ToolFinished(ToolFinished {
            call: Reporter::call_id(number),
            status,
            result: Some(Payload::Inline(text)),
            exit_code,
            seen,
            ..ToolFinished::default()
        }));
        if outcome == Outcome::Decided && verdict.concerns_agent() {
            self.owed.extend(verdict.context);
        }
    }

    /// Begins an attempt, unless the guards hold it.
    pub(crate) fn attempt_started(&mut self, number: u32) -> Result<(), String> {
        self.demand(EventKind::AttemptStarted(AttemptStarted { attempt: attempt_id(number)? }))
    }

    /// Writes down how far an attempt has come.
    pub(crate) fn stage(&mut self, number: u32, stage: &str) -> Result<(), String> {
        let (attempt, stage) = (attempt_id(number)?, stage.to_owned());
        self.record(EventKind::AttemptStage(AttemptStage { attempt, stage }))
    }

    /// Writes down what became of an attempt.
    pub(crate) fn attempt_ended(
        &mut self,
        number: u32,
        result: AttemptResult,
    ) -> Result<(), String> {
        self.record(EventKind::AttemptEnded(AttemptEnded { attempt: attempt_id(number)?, result }))
    }

    /// The same in the session of another process, which did not come to it.
    pub(crate) fn attempt_ended_elsewhere(&mut self, session: &SessionId, number: u32) {
        // A session that takes nothing any more has nothing that could be wrong with it.
        if let Ok(attempt) = attempt_id(number) {
            let result = AttemptResult::Rollback;
            let ended = EventKind::AttemptEnded(AttemptEnded { attempt, result });
            self.reporter.borrow_mut().tell_of(session, ended);
        }
    }

    /// Writes down what an answer of the model has cost.
    pub(crate) fn used(&mut self, model: String, input: u64, output: u64) {
        self.tell(EventKind::UsageReported(UsageReported {
            model: Some(model),
            input,
            output,
            ..UsageReported::default()
        }));
    }

    /// Ends the session because an attempt is neither done nor undone.
    pub(crate) fn stuck(&mut self, number: u32, reason: &str) {
        let note = Note::Fault { kind: FaultKind::Rollback, reason: reason.to_owned() };
        self.reporter.borrow_mut().runtime().note(note);
        // Where not even that can be written down, nothing goes on all the same.
        let _ = self.attempt_ended(number, AttemptResult::Stuck);
        self.held = Some(reason.to_owned());
    }

    /// Why nothing may go on, if that is so.
    pub(crate) fn held(&self) -> Option<&str> {
        self.held.as_deref()
    }

    /// What the model is to be told since this was last asked.
    pub(crate) fn take_owed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.owed)
    }

    /// What people are to be told since this was last asked; does what may wait as well.
    pub(crate) fn tidy(&mut self) -> Vec<String> {
        let mut reporter = self.reporter.borrow_mut();
        reporter.runtime().tidy();
        let mut aside = std::mem::take(&mut self.aside);
        aside.extend(reporter.runtime().take_warnings());
        aside
    }

    /// Ends the session. Where the task is done, it is asked whether it may end as done.
    pub(crate) fn end(&mut self, is_done: bool) {
        if is_done {
            let kind = EventKind::StopProposed(StopProposed::default());
            let (verdict, _) = self.tell(kind);
            if !verdict.lets_run() {
                let why = verdict.context.unwrap_or_default();
                self.aside.push(format!("the session does not count as complete: {why}"));
            }
        }
        self.tell(EventKind::SessionEnded(SessionEnded::default()));
    }

    /// Writes something down that the guards may refuse.
    fn demand(&mut self, kind: EventKind) -> Result<(), String> {
        let (verdict, outcome) = self.tell(kind);
        match outcome {
            Outcome::Passed => Ok(()),
            Outcome::Decided if verdict.lets_run() => Ok(()),
            _ => Err(why(&verdict)),
        }
    }

    /// Writes something down that has happened, whatever the guards think of it.
    fn record(&mut self, kind: EventKind) -> Result<(), String> {
        match self.tell(kind) {
            (_, Outcome::Decided | Outcome::Passed) => Ok(()),
            (verdict, _) => Err(why(&verdict)),
        }
    }

    fn tell(&mut self, kind: EventKind) -> (Verdict, Outcome) {
        let (verdict, outcome) = self.reporter.borrow_mut().tell(kind);
        if verdict.is_enforced(Decision::Stop) || verdict.is_enforced(Decision::Pause) {
            self.held = Some(why(&verdict));
        }
        (verdict, outcome)
    }
}

fn attempt_id(number: u32) -> Result<AttemptId, String> {
    AttemptId::parse(format!("a{number}")).map_err(|error| error.to_string())
}

/// Why an event is refused, in words.
fn why(verdict: &Verdict) -> String {
    let fault = verdict.error.as_ref().map(|error| error.reason.clone());
    let said = verdict.context.clone().or(fault);
    let stop = verdict.stop.as_ref().map(ToString::to_string);
    said.or(stop).unwrap_or_else(|| "refused by the guards".to_owned())
}

/// The objections to a call, as attempts have them.
pub(crate) fn objections(verdict: &Verdict) -> Vec<Violation> {
    let holds = |it: &&jackline_engine::Violation| it.enforced && it.decision > Decision::Rewrite;
    let found: Vec<Violation> =
        verdict.violations.iter().filter(holds).map(Violation::from).collect();
    if !found.is_empty() {
        return found;
    }
    vec![Violation::new(Subtype::ToolDenied, why(verdict))]
}
