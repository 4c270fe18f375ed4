//! The events that adapters report. Each is one thing that happened or is proposed.

mod kinds;
mod vocabulary;

use alloc::borrow::ToOwned;
use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{Digest, Digest128};
use crate::id::{ActorId, EventId, SessionId, ToolName};
use crate::time::Timestamp;

pub use kinds::{
    AdvisorAnswered, AttemptEnded, AttemptStage, AttemptStarted, CompactionFinished, Control,
    IterationEnded, ModelChanged, OutputProposed, PlanProposed, PromptSubmitted, SessionEnded,
    SessionStarted, StopProposed, ToolFinished, ToolProposed, UsageReported, WorkspaceChanged,
};
pub use vocabulary::{
    AttemptResult, CallStatus, ChangeReason, ControlAction, PromptSource, ReportedStage,
    RunFailure, Stage,
};

/// How many files a [`WorkspaceChanged`] may name.
pub const CHANGED_FILES_MAX: usize = 64;

/// One event of a session, in the form in which the journal stores it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The session it belongs to.
    pub session: SessionId,
    /// Makes it safe to send the event twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// When it happened, if the adapter reports a time; otherwise the runtime uses the current
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The actor: the main agent or a sub-agent.
    #[serde(skip_serializing_if = "ActorId::is_main")]
    pub actor: ActorId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Free data of the adapter. It is stored and never used for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// What happened or is proposed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// An agent began, or came back.
    SessionStarted(SessionStarted),
    /// The agent received a prompt.
    PromptSubmitted(PromptSubmitted),
    /// The agent wants to call a tool.
    ToolProposed(ToolProposed),
    /// A tool call finished.
    ToolFinished(ToolFinished),
    /// The agent wants to follow a plan.
    PlanProposed(PlanProposed),
    /// The agent wants to hand over structured output.
    OutputProposed(OutputProposed),
    /// The provider counted tokens.
    UsageReported(UsageReported),
    /// The agent's context was compacted.
    CompactionFinished(CompactionFinished),
    /// An autonomous run finished an iteration.
    IterationEnded(IterationEnded),
    /// Files changed, and no call shows it.
    WorkspaceChanged(WorkspaceChanged),
    /// The agent wants to end its turn.
    StopProposed(StopProposed),
    /// A validation-first attempt began.
    AttemptStarted(AttemptStarted),
    /// An attempt reached a stage.
    AttemptStage(AttemptStage),
    /// An attempt ended.
    AttemptEnded(AttemptEnded),
    /// An advisor was asked, out of band, because the session is stuck.
    AdvisorAnswered(AdvisorAnswered),
    /// Another model continues the work.
    ModelChanged(ModelChanged),
    /// A person controls the session from outside the agent.
    Control(Control),
    /// The agent process ended.
    SessionEnded(SessionEnded),
}

impl Event {
    /// An event of the main agent that happens now.
    pub fn new(session: SessionId, kind: impl Into<EventKind>) -> Self {
        let (actor, kind) = (ActorId::main(), kind.into());
        Self { session, id: None, at: None, actor, kind, meta: None }
    }

    /// The same event, of another actor.
    #[must_use]
    pub fn with_actor(self, actor: ActorId) -> Self {
        Self { actor, ..self }
    }

    /// The same event with free data that is never used for a decision.
    #[must_use]
    pub fn with_meta(self, meta: Option<Value>) -> Self {
        Self { meta, ..self }
    }
}

impl EventKind {
    /// The name of the event on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionStarted(_) => "session_started",
            Self::PromptSubmitted(_) => "prompt_submitted",
            Self::ToolProposed(_) => "tool_proposed",
            Self::ToolFinished(_) => "tool_finished",
            Self::PlanProposed(_) => "plan_proposed",
            Self::OutputProposed(_) => "output_proposed",
            Self::UsageReported(_) => "usage_reported",
            Self::CompactionFinished(_) => "compaction_finished",
            Self::IterationEnded(_) => "iteration_ended",
            Self::WorkspaceChanged(_) => "workspace_changed",
            Self::StopProposed(_) => "stop_proposed",
            Self::AttemptStarted(_) => "attempt_started",
            Self::AttemptStage(_) => "attempt_stage",
            Self::AttemptEnded(_) => "attempt_ended",
            Self::AdvisorAnswered(_) => "advisor_answered",
            Self::ModelChanged(_) => "model_changed",
            Self::Control(_) => "control",
            Self::SessionEnded(_) => "session_ended",
        }
    }

    /// Whether the agent wants to do something that a limit or a pause can block.
    pub(crate) fn is_work(&self) -> bool {
        matches!(self, Self::ToolProposed(_) | Self::PlanProposed(_) | Self::AttemptStarted(_))
    }

    /// Whether this uses a step, whatever the verdict is.
    pub(crate) fn uses_step(&self) -> bool {
        matches!(
            self,
            Self::ToolProposed(_)
                | Self::CompactionFinished(_)
                | Self::AttemptStarted(_)
                | Self::AdvisorAnswered(_)
                | Self::ModelChanged(_)
        )
    }

    /// Whether this event alone can end a session, whatever the guards answer.
    pub(crate) fn can_end_session(&self) -> bool {
        matches!(self, Self::SessionEnded(_) | Self::Control(_) | Self::AttemptEnded(_))
    }

    /// Whether this belongs to a turn, so that it reopens a finished turn.
    pub(crate) fn belongs_to_turn(&self) -> bool {
        self.is_work()
            || matches!(
                self,
                Self::OutputProposed(_)
                    | Self::StopProposed(_)
                    | Self::IterationEnded(_)
                    | Self::WorkspaceChanged(_)
                    | Self::PromptSubmitted(_)
            )
    }
}

/// The arguments of a call: parsed JSON, or text that must be parsed first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Arguments {
    /// A JSON object.
    #[serde(rename = "args")]
    Parsed(Value),
    /// Text as the model wrote it.
    #[serde(rename = "args_text")]
    Text(Payload),
}

impl Default for Arguments {
    /// No arguments.
    fn default() -> Self {
        Self::Parsed(Value::Object(serde_json::Map::new()))
    }
}

/// A reference to a call by its content, for results of clients without call ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallReference {
    /// The tool as the agent names it.
    pub tool: ToolName,
    /// The fingerprint of the canonical arguments.
    pub args: Digest128,
}

/// A text that may be too long for a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Payload {
    /// The text itself.
    Inline(String),
    /// The beginning and end of a text. The complete text is stored in a blob.
    Elided {
        /// The reference to the blob.
        elided: Elided,
    },
}

/// What a record stores of a text that is in a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elided {
    /// The length of the text.
    pub bytes: u64,
    /// The name of the blob.
    pub sha256: Digest,
    /// How the text begins.
    pub head: String,
    /// How the text ends.
    pub tail: String,
}

impl Payload {
    /// The text, or its beginning if it is elided.
    pub fn head(&self) -> &str {
        match self {
            Self::Inline(text) => text,
            Self::Elided { elided } => &elided.head,
        }
    }
}

/// Visits everything in an event that can be large or secret.
pub trait PayloadVisitor {
    /// A text of any length.
    fn visit_text(&mut self, text: &mut Payload);

    /// A JSON value.
    fn visit_value(&mut self, value: &mut Value);

    /// A short free text, such as a name or a reason.
    fn visit_short_text(&mut self, _word: &mut String) {}
}

impl Event {
    /// Passes everything that is free text to a visitor. Ids, tool names, directories and paths are
    /// not passed, because decisions depend on them.
    pub fn visit_payloads(&mut self, visitor: &mut impl PayloadVisitor) {
        match &mut self.kind {
            EventKind::SessionStarted(SessionStarted {
                client,
                model,
                prompt_hash,
                tools_hash,
                parameters_hash,
                role,
                compact_command,
                ..
            }) => {
                visit_optional_short_texts(visitor, [client, model, prompt_hash, tools_hash]);
                visit_optional_short_texts(visitor, [parameters_hash, role, compact_command]);
            }
            EventKind::PromptSubmitted(PromptSubmitted { text, .. }) => {
                visit_optional_text(visitor, text);
            }
            EventKind::ToolProposed(ToolProposed { args, .. }) => match args {
                Arguments::Parsed(value) => visitor.visit_value(value),
                Arguments::Text(text) => visitor.visit_text(text),
            },
            EventKind::ToolFinished(ToolFinished { result, .. }) => {
                visit_optional_text(visitor, result);
            }
            EventKind::PlanProposed(PlanProposed { plan, plan_text }) => {
                plan.iter_mut().for_each(|plan| visitor.visit_value(plan));
                visit_optional_text(visitor, plan_text);
            }
            EventKind::OutputProposed(OutputProposed { name, text, .. }) => {
                visit_optional_short_texts(visitor, [name]);
                visit_optional_text(visitor, text);
            }
            EventKind::UsageReported(UsageReported { model, .. }) => {
                visit_optional_short_texts(visitor, [model]);
            }
            EventKind::CompactionFinished(CompactionFinished { summary, .. }) => {
                visit_optional_text(visitor, summary);
            }
            EventKind::IterationEnded(IterationEnded { phase, task, build, error, .. }) => {
                visit_optional_short_texts(visitor, [phase, task, build]);
                visit_optional_text(visitor, error);
            }
            EventKind::StopProposed(StopProposed { reason, output, .. }) => {
                visit_optional_short_texts(visitor, [reason]);
                visit_optional_text(visitor, output);
            }
            EventKind::WorkspaceChanged(WorkspaceChanged { files, .. }) => {
                files.iter_mut().for_each(|file| visitor.visit_short_text(file));
            }
            EventKind::AttemptStage(AttemptStage { stage, .. }) => {
                if let ReportedStage::Other(word) = stage {
                    *stage = ReportedStage::parse(&visit_copy(visitor, word));
                }
            }
            EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }) => {
                visit_optional_short_texts(visitor, [model]);
                visit_optional_text(visitor, instruction);
                visit_optional_text(visitor, error);
            }
            EventKind::ModelChanged(ModelChanged { from, to, reason }) => {
                visit_optional_short_texts(visitor, [from]);
                visitor.visit_short_text(to);
                if let ChangeReason::Other(word) = reason {
                    *reason = ChangeReason::parse(&visit_copy(visitor, word));
                }
            }
            EventKind::Control(Control { by, why, .. }) => {
                visit_optional_short_texts(visitor, [by, why]);
            }
            EventKind::AttemptStarted(_)
            | EventKind::AttemptEnded(_)
            | EventKind::SessionEnded(_) => {}
        }
        self.meta.iter_mut().for_each(|meta| visitor.visit_value(meta));
    }
}

fn visit_optional_text(visitor: &mut impl PayloadVisitor, text: &mut Option<Payload>) {
    text.iter_mut().for_each(|text| visitor.visit_text(text));
}

/// Returns a word as the visitor changed it.
fn visit_copy(visitor: &mut impl PayloadVisitor, word: &str) -> String {
    let mut text = word.to_owned();
    visitor.visit_short_text(&mut text);
    text
}

fn visit_optional_short_texts<const N: usize>(
    visitor: &mut impl PayloadVisitor,
    words: [&mut Option<String>; N],
) {
    words.into_iter().flatten().for_each(|word| visitor.visit_short_text(word));
}

/// A range of lines of a file that the agent has received.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownLines {
    /// The file.
    pub path: String,
    /// The first line, counted from 1.
    pub from: u64,
    /// The last line.
    pub to: u64,
    /// How many lines the file has, if the adapter reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// The numbers of failed and passed tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedTests {
    /// Failed tests.
    pub failed: u64,
    /// Passed tests.
    pub passed: u64,
}
