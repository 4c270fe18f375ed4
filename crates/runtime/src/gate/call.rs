//! A call from its proposal to its result, and what the guards say of it.

use jackline_engine::event::Seen;
use jackline_engine::facts::OutputFact;
use jackline_engine::verdict::{Repair, ViolationType};
use jackline_engine::{Arguments, Decision, SessionId, Status, Verdict, Violation};
use serde::Serialize;
use serde_json::Value;

use super::texts::{self, reason_of};
use crate::asks::ask_code;

/// A call as the agent wants it.
#[derive(Debug, Clone)]
pub struct ProposedCall<'a> {
    /// The tool as the agent names it.
    pub tool: &'a str,
    /// The arguments, or text that should be arguments.
    pub args: Arguments,
    /// Stored with the record, and never decided on.
    pub meta: Option<Value>,
    /// What has to happen once a person has allowed the call, where the agent does not make
    /// it again by itself.
    pub once_allowed: Option<&'static str>,
}

impl<'a> ProposedCall<'a> {
    /// A call of a tool.
    pub fn new(tool: &'a str, args: Arguments) -> Self {
        Self { tool, args, meta: None, once_allowed: None }
    }
}

/// What becomes of a call.
#[derive(Debug)]
pub enum CallRuling {
    /// It runs.
    Run(CallPermit),
    /// It does not run; the agent may try something else.
    Refuse(CallRefusal),
    /// It does not run before a person has allowed it.
    Ask(CallRefusal, PendingAsk),
    /// It does not run, and nothing else does: the session is paused or over.
    Stop(CallRefusal),
}

impl CallRuling {
    /// The permit, or why there is none.
    pub fn permit(self) -> Result<CallPermit, CallRefusal> {
        match self {
            Self::Run(permit) => Ok(permit),
            Self::Refuse(refusal) | Self::Ask(refusal, _) | Self::Stop(refusal) => Err(refusal),
        }
    }
}

/// A call that runs.
#[derive(Debug)]
pub struct CallPermit {
    /// The number of the call in the session.
    pub number: u64,
    /// The arguments to use instead of those that were written.
    pub args: Option<Value>,
    /// What was decided; more than a rewrite is only observed.
    pub decision: Decision,
}

/// Why a call does not run, as a word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The guard is broken, and not the call.
    GuardBroken,
    /// A person has to allow it first.
    WaitsForPerson,
    /// The session is paused.
    Paused,
    /// The session is over.
    Stopped,
    /// There is no such tool.
    UnknownTool,
    /// The arguments are not what the tool takes.
    InvalidArguments,
    /// A guard objects.
    Denied,
    /// No tool can have this name.
    InvalidTool,
}

impl RefusalCode {
    fn of(verdict: &Verdict) -> Self {
        match verdict.decision {
            _ if verdict.error.is_some() => Self::GuardBroken,
            Decision::Ask => Self::WaitsForPerson,
            Decision::Pause => Self::Paused,
            Decision::Stop => Self::Stopped,
            _ if is_only(&verdict.violations, &ViolationType::UnknownTool) => Self::UnknownTool,
            _ if is_only(&verdict.violations, &ViolationType::SchemaViolation) => {
                Self::InvalidArguments
            }
            _ if is_about_arguments(&verdict.violations) => Self::InvalidArguments,
            Decision::Allow | Decision::Rewrite | Decision::Deny => Self::Denied,
        }
    }
}

/// Why a call does not run.
#[derive(Debug)]
pub struct CallRefusal {
    /// The reason as a word.
    pub code: RefusalCode,
    /// The reason in words.
    pub reason: String,
    /// What was decided.
    pub decision: Decision,
    /// Every objection.
    pub violations: Vec<Violation>,
    /// What was expected of the arguments, and how often they may be written again.
    pub repair: Option<Box<Repair>>,
    /// The stop code, where this call is what ended the session.
    pub ended: Option<String>,
}

impl CallRefusal {
    pub(super) fn of(verdict: Verdict) -> Self {
        let (code, reason) = (RefusalCode::of(&verdict), reason_of(&verdict));
        let was_over = is_only(&verdict.violations, &ViolationType::SessionOver);
        let ends = verdict.decision == Decision::Stop && !was_over;
        let ended = verdict.stop.filter(|_| ends).map(|stop| stop.to_string());
        let Verdict { decision, violations, repair, .. } = verdict;
        Self { code, reason, decision, violations, repair: repair.map(Box::new), ended }
    }

    /// A call whose tool has a name that no tool can have.
    pub(super) fn invalid_tool(reason: String) -> Self {
        let (code, decision) = (RefusalCode::InvalidTool, Decision::Deny);
        Self { code, reason, decision, violations: Vec::new(), repair: None, ended: None }
    }

    /// Whether the call is refused because there is no such tool, and for nothing else. Such a
    /// call may be what ended the session.
    pub fn is_about_unknown_tool(&self) -> bool {
        is_only(&self.violations, &ViolationType::UnknownTool)
    }

    /// What the agent is told.
    pub fn text(&self) -> String {
        texts::refused(&self.reason, self.code == RefusalCode::WaitsForPerson)
    }
}

/// A question to a person about exactly one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAsk {
    /// The code by which the person answers.
    pub code: String,
    /// What the guard wants the person to look at.
    pub question: String,
    tool: Option<String>,
    once_allowed: Option<&'static str>,
}

impl PendingAsk {
    pub(super) fn of(verdict: &Verdict, session: &SessionId, seq: u64) -> Self {
        let mut objections = verdict.violations.iter();
        let asking = objections.find(|it| it.enforced && it.decision == Decision::Ask);
        let question = asking.map_or_else(|| reason_of(verdict), |it| it.message.clone());
        Self { code: ask_code(session, seq), question, tool: None, once_allowed: None }
    }

    pub(super) fn of_call(self, tool: &str, once_allowed: Option<&'static str>) -> Self {
        Self { tool: Some(tool.to_owned()), once_allowed, ..self }
    }

    /// The commands by which the person answers.
    pub fn how_to_answer(&self) -> String {
        texts::how_to_answer(&self.code)
    }

    /// The whole question for the person. The agent is not told: it can't use a code.
    pub fn for_person(&self) -> String {
        let call = match &self.tool {
            Some(tool) => format!("a call of `{tool}`"),
            None => "a call".to_owned(),
        };
        let how = self.how_to_answer();
        let next = self.once_allowed.map_or_else(String::new, |next| format!("; then {next}"));
        format!("{call} waits for a person: {}; {how}{next}", texts::one_line(&self.question))
    }
}

/// How a call came back.
#[derive(Debug)]
pub struct CallResult {
    /// The number of the call in the session.
    pub number: u64,
    /// How it ended.
    pub status: Status,
    /// What it returned.
    pub text: Option<String>,
    /// The exit status of a command.
    pub exit_code: Option<i64>,
    /// Which parts of which files the agent is shown.
    pub seen: Vec<Seen>,
    /// Whether the work goes on behind the result.
    pub background: bool,
    /// The page that can be shown instead of all of it.
    pub page: Option<OutputFact>,
}

impl CallResult {
    /// The result of a call that returned nothing.
    pub fn new(number: u64, status: Status) -> Self {
        let (text, exit_code, seen) = (None, None, Vec::new());
        Self { number, status, text, exit_code, seen, background: false, page: None }
    }
}

/// Whether a call is refused because of its arguments: they do not fit the schema, and rules
/// could not be evaluated on them either.
fn is_about_arguments(violations: &[Violation]) -> bool {
    let mut enforced = violations.iter().filter(|it| it.enforced);
    enforced.next().is_some_and(|first| first.kind == ViolationType::SchemaViolation)
        && enforced.all(|it| it.kind == ViolationType::RuleBroken)
}

/// Whether all enforced violations are of one kind.
fn is_only(violations: &[Violation], kind: &ViolationType) -> bool {
    let mut enforced = violations.iter().filter(|it| it.enforced).peekable();
    enforced.peek().is_some() && enforced.all(|it| it.kind == *kind)
}
