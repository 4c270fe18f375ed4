//! The content of each kind of event: one struct for each variant of [`EventKind`].

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::Value;

use super::vocabulary::{
    AttemptResult, CallStatus, ChangeReason, ControlAction, PromptSource, ReportedStage, RunFailure,
};
use super::{Arguments, CallReference, EventKind, Payload, ReportedTests, ShownLines};
use crate::id::{AttemptId, CallId, RequestId, SessionId, ToolName};
use crate::time::Timestamp;

/// An agent began, or came back.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SessionStarted {
    /// The directory the agent works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The program that runs the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The model that the agent uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The hash of its system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<String>,
    /// The hash of the schemas of its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_hash: Option<String>,
    /// The hash of the parameters of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters_hash: Option<String>,
    /// When the work must be finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The session this one was started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The role the agent acts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The command with which a person compacts the context in this client, such as `/compact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_command: Option<String>,
}

/// The agent received a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PromptSubmitted {
    /// Whether a person or a program wrote it.
    pub source: PromptSource,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Payload>,
}

/// The agent wants to call a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolProposed {
    /// The call; clients without call ids leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The tool as the agent names it.
    pub tool: ToolName,
    /// The arguments, or text that should be arguments.
    #[serde(flatten)]
    pub args: Arguments,
    /// The directory the call works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether the client itself asks the person if the verdict is `ask`. The question then ends
    /// with the call.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub asks_person: bool,
}

/// A tool call finished.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolFinished {
    /// The call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The tool and arguments of the call, if the client has no call ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<CallReference>,
    /// How it ended.
    pub status: CallStatus,
    /// What the tool returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
    /// The exit status of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Which parts of which files the agent was shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<ShownLines>,
    /// Whether the work continues in the background.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub background: bool,
}

/// The agent wants to follow a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanProposed {
    /// The plan, already parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
    /// The plan as the model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_text: Option<Payload>,
}

/// The agent wants to hand over structured output.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OutputProposed {
    /// Which output of the definition it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The output as the model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Payload>,
    /// Whether the model's output was cut off.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub truncated: bool,
}

/// The provider counted tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageReported {
    /// The request. A later report for the same request replaces this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Input tokens.
    pub input: u64,
    /// Input tokens that came from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Input tokens that were written to the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_creation: u64,
    /// Output tokens.
    pub output: u64,
    /// The model's context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The cost in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Whether there are counts that can't be read. That is not the same as no counts.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub unknown: bool,
}

/// The agent's context was compacted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompactionFinished {
    /// Tokens freed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freed: Option<u64>,
    /// The summary that replaces the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Payload>,
}

/// An autonomous run finished an iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IterationEnded {
    /// The phase of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Test counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<ReportedTests>,
    /// How the build ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// How many files changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<u64>,
    /// The error of the iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Payload>,
}

/// The agent wants to end its turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StopProposed {
    /// Why it stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its final message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Payload>,
    /// How many background tasks still run.
    #[serde(skip_serializing_if = "is_zero")]
    pub background: u64,
}

/// The adapter compared the workspace with an earlier state, because a program ran whose calls no
/// guard sees, and files differ.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkspaceChanged {
    /// The files that differ, at most `CHANGED_FILES_MAX` of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether more files differ, or may differ.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub more: bool,
}

/// A validation-first attempt began.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AttemptStarted {
    /// The attempt.
    pub attempt: AttemptId,
}

/// An attempt reached a stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AttemptStage {
    /// The attempt.
    pub attempt: AttemptId,
    /// The stage.
    pub stage: ReportedStage,
}

/// An attempt ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AttemptEnded {
    /// The attempt.
    pub attempt: AttemptId,
    /// Whether its changes stay or are undone.
    pub result: AttemptResult,
}

/// An advisor was asked, out of band, because the session is stuck.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AdvisorAnswered {
    /// The model that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The instruction for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<Payload>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Payload>,
}

/// Another model continues the work.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelChanged {
    /// The model before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The model that continues.
    pub to: String,
    /// The reason: one of the listed words, or a word of the adapter.
    pub reason: ChangeReason,
}

/// A person controls the session from outside the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Control {
    /// The command.
    pub action: ControlAction,
    /// The name of the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason the person gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The call that is granted or refused; if missing, the last one that a person was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The same call, by the number of the record that asked the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<u64>,
    /// How long a grant is valid, in seconds; if missing, for one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// The id of the constraint that is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
}

/// The agent process ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SessionEnded {
    /// The reason the supervisor gave up, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<RunFailure>,
}

macro_rules! into_kind {
    ($($name:ident)*) => {$(
        impl From<$name> for EventKind {
            fn from(it: $name) -> Self {
                Self::$name(it)
            }
        }
    )*};
}

into_kind! {
    SessionStarted PromptSubmitted ToolProposed ToolFinished PlanProposed OutputProposed
    UsageReported CompactionFinished IterationEnded WorkspaceChanged StopProposed AttemptStarted AttemptStage
    AttemptEnded AdvisorAnswered ModelChanged Control SessionEnded
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
