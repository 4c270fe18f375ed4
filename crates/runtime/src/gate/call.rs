//! A call from its proposal to its result, and the decision of the guards on it.

use jackline_engine::event::ShownLines;
use jackline_engine::facts::OutputFact;
use jackline_engine::verdict::{RepairReport, ViolationType};
use jackline_engine::{Arguments, CallStatus, Decision, SessionId, Verdict, Violation};
use serde::Serialize;
use serde_json::Value;

use super::texts::{self, reason_of};
use crate::open_questions::approval_code;

/// A call as the agent proposes it.
#[derive(Debug, Clone)]
pub struct ProposedCall<'a> {
    /// The tool name as the agent wrote it.
    pub tool: &'a str,
    /// The arguments, or text that should be arguments.
    pub args: Arguments,
    /// Stored with the record; no decision uses it.
    pub meta: Option<Value>,
    /// The next step after a person has allowed the call, if the agent does not repeat the call
    /// itself.
    pub once_allowed: Option<&'static str>,
}

impl<'a> ProposedCall<'a> {
    /// A call of a tool.
    pub fn new(tool: &'a str, args: Arguments) -> Self {
        Self { tool, args, meta: None, once_allowed: None }
    }
}

/// The decision on a call.
#[derive(Debug)]
pub enum CallRuling {
    /// The call runs.
    Run(CallPermit),
    /// The call does not run; the agent may try something else.
    Refuse(CallRefusal),
    /// The call does not run until a person has allowed it.
    Ask(CallRefusal, ApprovalRequest),
    /// The call does not run, and no other call does: the session is paused or stopped.
    Stop(CallRefusal),
}

impl CallRuling {
    /// The permit, or the refusal.
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
    /// The arguments to use instead of those that were proposed.
    pub args: Option<Value>,
    /// The decision. A decision stronger than a rewrite is only observed here.
    pub decision: Decision,
}

/// The reason for a refusal, as a code for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The guard is broken; the call may be fine.
    GuardBroken,
    /// A person must allow the call first.
    WaitsForPerson,
    /// The session is paused.
    Paused,
    /// The session is stopped.
    Stopped,
    /// No such tool exists.
    UnknownTool,
    /// The arguments do not fit the tool.
    InvalidArguments,
    /// A guard found a violation.
    Denied,
    /// The name is not a valid tool name.
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
    /// The reason as a code.
    pub code: RefusalCode,
    /// The reason as text.
    pub reason: String,
    /// The decision.
    pub decision: Decision,
    /// All violations.
    pub violations: Vec<Violation>,
    /// The expected arguments, and how often the agent may write them again.
    pub repair: Option<Box<RepairReport>>,
    /// The stop code, if this call ended the session.
    pub stop_code: Option<String>,
}

impl CallRefusal {
    pub(super) fn of(verdict: Verdict) -> Self {
        let (code, reason) = (RefusalCode::of(&verdict), reason_of(&verdict));
        let was_over = is_only(&verdict.violations, &ViolationType::SessionOver);
        let ends = verdict.decision == Decision::Stop && !was_over;
        let ended = verdict.stop.filter(|_| ends).map(|stop| stop.to_string());
        let Verdict { decision, violations, repair, .. } = verdict;
        Self { code, reason, decision, violations, repair: repair.map(Box::new), stop_code: ended }
    }

    /// Refuses a call whose tool name is not valid.
    pub(super) fn invalid_tool(reason: String) -> Self {
        let (code, decision) = (RefusalCode::InvalidTool, Decision::Deny);
        Self { code, reason, decision, violations: Vec::new(), repair: None, stop_code: None }
    }

    /// Whether the only reason is that no such tool exists. Such a call may also have ended the
    /// session.
    pub fn is_about_unknown_tool(&self) -> bool {
        is_only(&self.violations, &ViolationType::UnknownTool)
    }

    /// The text for the agent.
    pub fn text(&self) -> String {
        texts::refusal_text(&self.reason, self.code == RefusalCode::WaitsForPerson)
    }
}

/// A request for a person's approval of exactly one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The code by which the person answers.
    pub code: String,
    /// The text that the person must judge.
    pub question: String,
    tool: Option<String>,
    once_allowed: Option<&'static str>,
}

impl ApprovalRequest {
    pub(super) fn of(verdict: &Verdict, session: &SessionId, seq: u64) -> Self {
        let mut violations = verdict.violations.iter();
        let asking = violations.find(|it| it.enforced && it.decision == Decision::Ask);
        let question = asking.map_or_else(|| reason_of(verdict), |it| it.message.clone());
        Self { code: approval_code(session, seq), question, tool: None, once_allowed: None }
    }

    pub(super) fn of_call(self, tool: &str, once_allowed: Option<&'static str>) -> Self {
        Self { tool: Some(tool.to_owned()), once_allowed, ..self }
    }

    /// The commands by which the person answers.
    pub fn answer_commands(&self) -> String {
        texts::how_to_answer(&self.code)
    }

    /// The whole question for the person. The agent does not get it, because it can't use the code.
    pub fn for_person(&self) -> String {
        let call = match &self.tool {
            Some(tool) => format!("a call of `{tool}`"),
            None => "a call".to_owned(),
        };
        let how = self.answer_commands();
        let next = self.once_allowed.map_or_else(String::new, |next| format!("; then {next}"));
        format!("{call} waits for a person: {}; {how}{next}", texts::one_line(&self.question))
    }
}

/// The result of a call.
#[derive(Debug)]
pub struct CallResult {
    /// The number of the call in the session.
    pub number: u64,
    /// The status of the call.
    pub status: CallStatus,
    /// The output of the call.
    pub text: Option<String>,
    /// The exit status of a command.
    pub exit_code: Option<i64>,
    /// The parts of files that the agent was shown.
    pub seen: Vec<ShownLines>,
    /// Whether the call continues in the background after this result.
    pub background: bool,
    /// The page that can be shown instead of the whole output.
    pub page: Option<OutputFact>,
}

impl CallResult {
    /// The result of a call without output.
    pub fn new(number: u64, status: CallStatus) -> Self {
        let (text, exit_code, seen) = (None, None, Vec::new());
        Self { number, status, text, exit_code, seen, background: false, page: None }
    }
}

/// Whether a call is refused because of its arguments: they do not fit the schema, and so rules
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
