//! What adapters report: one event is one thing that happened or is proposed.

mod kinds;
mod words;

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
    SessionStarted, StopProposed, ToolFinished, ToolProposed, UsageReported,
};
pub use words::{
    Action, AttemptResult, ChangeReason, Failure, PromptSource, ReportedStage, Stage, Status,
};

/// One event of a session, in the shape the journal keeps it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The session it belongs to.
    pub session: SessionId,
    /// Makes a resend idempotent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// When it happened, where the adapter says so; else the runtime's now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Who acts.
    #[serde(skip_serializing_if = "ActorId::is_main")]
    pub actor: ActorId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Stored, never decided on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// What happened or is proposed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// An agent began, or came back.
    SessionStarted(SessionStarted),
    /// The agent got a task.
    PromptSubmitted(PromptSubmitted),
    /// The agent wants to call a tool.
    ToolProposed(ToolProposed),
    /// A call came back.
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
    /// Another model goes on with the work.
    ModelChanged(ModelChanged),
    /// A person steers from outside the agent.
    Control(Control),
    /// The agent is gone.
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
    pub fn by(self, actor: ActorId) -> Self {
        Self { actor, ..self }
    }

    /// The same event with values that are stored and never decided on.
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

    /// Whether the agent wants to do something that a limit or a pause can hold.
    pub(crate) fn is_work(&self) -> bool {
        matches!(self, Self::ToolProposed(_) | Self::PlanProposed(_) | Self::AttemptStarted(_))
    }

    /// Whether this spends a step, whatever is decided.
    pub(crate) fn is_step(&self) -> bool {
        matches!(
            self,
            Self::ToolProposed(_)
                | Self::CompactionFinished(_)
                | Self::AttemptStarted(_)
                | Self::AdvisorAnswered(_)
                | Self::ModelChanged(_)
        )
    }

    /// Whether this ends a session by itself, whatever the guards answer.
    pub(crate) fn can_end(&self) -> bool {
        matches!(self, Self::SessionEnded(_) | Self::Control(_) | Self::AttemptEnded(_))
    }

    /// Whether this is part of a turn, so that a finished turn goes on.
    pub(crate) fn is_of_turn(&self) -> bool {
        self.is_work()
            || matches!(
                self,
                Self::OutputProposed(_)
                    | Self::StopProposed(_)
                    | Self::IterationEnded(_)
                    | Self::PromptSubmitted(_)
            )
    }
}

/// The arguments of a call: parsed, or text that has to be parsed first.
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

/// What was called, for results of clients without call ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Called {
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
    /// What is left of a text that lies in a blob.
    Elided {
        /// Where the rest is.
        elided: Elided,
    },
}

/// What a record keeps of a text that lies in a blob.
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
    /// The text, or how it begins.
    pub fn head(&self) -> &str {
        match self {
            Self::Inline(text) => text,
            Self::Elided { elided } => &elided.head,
        }
    }
}

/// Looks at everything in an event that can be large or secret.
pub trait Payloads {
    /// A text of any length.
    fn text(&mut self, text: &mut Payload);

    /// A JSON value.
    fn value(&mut self, value: &mut Value);

    /// A name, a reason.
    fn word(&mut self, _word: &mut String) {}
}

impl Event {
    /// Shows everything that is free text to a visitor. Ids, the tool's name and
    /// directories and paths are not: they are what decisions hang on.
    pub fn visit(&mut self, visitor: &mut impl Payloads) {
        match &mut self.kind {
            EventKind::SessionStarted(SessionStarted {
                client,
                model,
                prompt_hash,
                tools_hash,
                parameters_hash,
                role,
                ..
            }) => {
                each_word(visitor, [client, model, prompt_hash, tools_hash, parameters_hash, role]);
            }
            EventKind::PromptSubmitted(PromptSubmitted { text, .. }) => each_text(visitor, text),
            EventKind::ToolProposed(ToolProposed { args, .. }) => match args {
                Arguments::Parsed(value) => visitor.value(value),
                Arguments::Text(text) => visitor.text(text),
            },
            EventKind::ToolFinished(ToolFinished { result, .. }) => each_text(visitor, result),
            EventKind::PlanProposed(PlanProposed { plan, plan_text }) => {
                plan.iter_mut().for_each(|plan| visitor.value(plan));
                each_text(visitor, plan_text);
            }
            EventKind::OutputProposed(OutputProposed { name, text, .. }) => {
                each_word(visitor, [name]);
                each_text(visitor, text);
            }
            EventKind::UsageReported(UsageReported { model, .. }) => each_word(visitor, [model]),
            EventKind::CompactionFinished(CompactionFinished { summary, .. }) => {
                each_text(visitor, summary);
            }
            EventKind::IterationEnded(IterationEnded { phase, task, build, error, .. }) => {
                each_word(visitor, [phase, task, build]);
                each_text(visitor, error);
            }
            EventKind::StopProposed(StopProposed { reason, output, .. }) => {
                each_word(visitor, [reason]);
                each_text(visitor, output);
            }
            EventKind::AttemptStage(AttemptStage { stage, .. }) => {
                if let ReportedStage::Other(word) = stage {
                    *stage = ReportedStage::parse(&visited(visitor, word));
                }
            }
            EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }) => {
                each_word(visitor, [model]);
                each_text(visitor, instruction);
                each_text(visitor, error);
            }
            EventKind::ModelChanged(ModelChanged { from, to, reason }) => {
                each_word(visitor, [from]);
                visitor.word(to);
                if let ChangeReason::Other(word) = reason {
                    *reason = ChangeReason::parse(&visited(visitor, word));
                }
            }
            EventKind::Control(Control { by, why, .. }) => each_word(visitor, [by, why]),
            EventKind::AttemptStarted(_)
            | EventKind::AttemptEnded(_)
            | EventKind::SessionEnded(_) => {}
        }
        self.meta.iter_mut().for_each(|meta| visitor.value(meta));
    }
}

fn each_text(visitor: &mut impl Payloads, text: &mut Option<Payload>) {
    text.iter_mut().for_each(|text| visitor.text(text));
}

/// A word as a visitor leaves it.
fn visited(visitor: &mut impl Payloads, word: &str) -> String {
    let mut text = word.to_owned();
    visitor.word(&mut text);
    text
}

fn each_word<const N: usize>(visitor: &mut impl Payloads, words: [&mut Option<String>; N]) {
    words.into_iter().flatten().for_each(|word| visitor.word(word));
}

/// A part of a file that the agent was shown, in lines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// The file.
    pub path: String,
    /// The first line shown, from 1.
    pub from: u64,
    /// The last line shown.
    pub to: u64,
    /// How many lines the file has, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// How many tests failed and passed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tests {
    /// Failed tests.
    pub failed: u64,
    /// Passed tests.
    pub passed: u64,
}
