//! What adapters report: one event is one thing that happened or is proposed.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{Digest, Digest128};
use crate::id::{ActorId, AttemptId, CallId, EventId, RequestId, SessionId, ToolName};
use crate::time::Timestamp;

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
    SessionStarted {
        /// The directory the agent works in.
        #[serde(skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// The program that runs the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        /// The model behind the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The hash of its system prompt.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_hash: Option<String>,
        /// The hash of the schemas of its tools.
        #[serde(skip_serializing_if = "Option::is_none")]
        tools_hash: Option<String>,
        /// The hash of the parameters of its model.
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters_hash: Option<String>,
        /// When the work must be over.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// The session this one was started from.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<SessionId>,
        /// The role the agent acts in.
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<String>,
    },
    /// Somebody gave the agent a task.
    PromptSubmitted {
        /// Who wrote it.
        source: PromptSource,
        /// What they wrote.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Payload>,
    },
    /// The agent wants to call a tool.
    ToolProposed {
        /// The call; clients without call ids leave it out.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The tool as the agent names it.
        tool: ToolName,
        /// The arguments, or text that should be arguments.
        #[serde(flatten)]
        args: Arguments,
        /// The directory the call works in.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// A call came back.
    ToolFinished {
        /// The call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// What was called, where the client has no call ids.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<Called>,
        /// How it ended.
        status: Status,
        /// What it returned.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Payload>,
        /// The exit status of a command.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// Which parts of which files the agent was shown.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        seen: Vec<Seen>,
        /// Whether the work goes on behind the result.
        #[serde(skip_serializing_if = "core::ops::Not::not")]
        background: bool,
    },
    /// The agent wants to follow a plan.
    PlanProposed {
        /// The plan, already parsed.
        #[serde(skip_serializing_if = "Option::is_none")]
        plan: Option<Value>,
        /// The plan as the model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_text: Option<Payload>,
    },
    /// The agent wants to hand over structured output.
    OutputProposed {
        /// Which output of the definition it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The output as the model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Payload>,
        /// Whether the model was cut short.
        #[serde(skip_serializing_if = "core::ops::Not::not")]
        truncated: bool,
    },
    /// The provider counted tokens.
    UsageReported {
        /// The request, so that a later report replaces this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
        /// The model that answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Tokens read.
        input: u64,
        /// Tokens read from the provider's cache.
        #[serde(skip_serializing_if = "is_zero")]
        cache_read: u64,
        /// Tokens written to the provider's cache.
        #[serde(skip_serializing_if = "is_zero")]
        cache_creation: u64,
        /// Tokens written.
        output: u64,
        /// The model's context window.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
        /// What it cost, in millionths of a dollar.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_micros: Option<u64>,
        /// Whether the counts are there and nobody can read them: not the same as none.
        #[serde(skip_serializing_if = "core::ops::Not::not")]
        unknown: bool,
    },
    /// The agent's context was compacted.
    CompactionFinished {
        /// Tokens freed.
        #[serde(skip_serializing_if = "Option::is_none")]
        freed: Option<u64>,
        /// What is left of the context.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<Payload>,
    },
    /// An autonomous run finished an iteration.
    IterationEnded {
        /// The phase of the task.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
        /// The task.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// Test counts.
        #[serde(skip_serializing_if = "Option::is_none")]
        tests: Option<Tests>,
        /// How the build ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        build: Option<String>,
        /// How many files changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        files_changed: Option<u64>,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Payload>,
    },
    /// The agent wants to end its turn.
    StopProposed {
        /// Why it stops.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What it says at the end.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Payload>,
        /// How many background tasks still run.
        #[serde(skip_serializing_if = "is_zero")]
        background: u64,
    },
    /// A validation-first attempt began.
    AttemptStarted {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An attempt reached a stage.
    AttemptStage {
        /// The attempt.
        attempt: AttemptId,
        /// The stage.
        stage: String,
    },
    /// An attempt ended.
    AttemptEnded {
        /// The attempt.
        attempt: AttemptId,
        /// Whether its work stays.
        result: AttemptResult,
    },
    /// An advisor was asked, out of band, because the session is stuck.
    AdvisorAnswered {
        /// The model that was asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What it wants the agent to do.
        #[serde(skip_serializing_if = "Option::is_none")]
        instruction: Option<Payload>,
        /// Why there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Payload>,
    },
    /// Another model goes on with the work.
    ModelChanged {
        /// The one before.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// The one that goes on.
        to: String,
        /// Why: a word, of which some are known.
        reason: String,
    },
    /// Somebody outside the agent steers.
    Control {
        /// What they want.
        action: Action,
        /// Who they are.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why they want it.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// The call that is granted or refused; the last that was asked about if left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The same, by the number of the record in which a person was asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        ask: Option<u64>,
        /// How long a grant holds; once where it is left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
        /// The constraint that is ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        constraint: Option<String>,
    },
    /// The agent is gone.
    SessionEnded {
        /// What kept it from going on, where whoever runs it gave up.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
}

impl EventKind {
    /// The name of the event on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionStarted { .. } => "session_started",
            Self::PromptSubmitted { .. } => "prompt_submitted",
            Self::ToolProposed { .. } => "tool_proposed",
            Self::ToolFinished { .. } => "tool_finished",
            Self::PlanProposed { .. } => "plan_proposed",
            Self::OutputProposed { .. } => "output_proposed",
            Self::UsageReported { .. } => "usage_reported",
            Self::CompactionFinished { .. } => "compaction_finished",
            Self::IterationEnded { .. } => "iteration_ended",
            Self::StopProposed { .. } => "stop_proposed",
            Self::AttemptStarted { .. } => "attempt_started",
            Self::AttemptStage { .. } => "attempt_stage",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::AdvisorAnswered { .. } => "advisor_answered",
            Self::ModelChanged { .. } => "model_changed",
            Self::Control { .. } => "control",
            Self::SessionEnded { .. } => "session_ended",
        }
    }

    /// Whether the agent wants to do something that a limit or a pause can hold.
    pub(crate) fn is_work(&self) -> bool {
        matches!(
            self,
            Self::ToolProposed { .. } | Self::PlanProposed { .. } | Self::AttemptStarted { .. }
        )
    }

    /// Whether this spends a step, whatever is decided.
    pub(crate) fn is_step(&self) -> bool {
        matches!(
            self,
            Self::ToolProposed { .. }
                | Self::CompactionFinished { .. }
                | Self::AttemptStarted { .. }
                | Self::AdvisorAnswered { .. }
                | Self::ModelChanged { .. }
        )
    }

    /// Whether this ends a session by itself, whatever the guards answer.
    pub(crate) fn can_end(&self) -> bool {
        matches!(self, Self::SessionEnded { .. } | Self::Control { .. } | Self::AttemptEnded { .. })
    }

    /// Whether this is part of a turn, so that a finished turn goes on.
    pub(crate) fn is_of_turn(&self) -> bool {
        self.is_work()
            || matches!(
                self,
                Self::OutputProposed { .. }
                    | Self::StopProposed { .. }
                    | Self::IterationEnded { .. }
                    | Self::PromptSubmitted { .. }
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
            EventKind::SessionStarted {
                client,
                model,
                prompt_hash,
                tools_hash,
                parameters_hash,
                role,
                ..
            } => {
                each_word(visitor, [client, model, prompt_hash, tools_hash, parameters_hash, role]);
            }
            EventKind::PromptSubmitted { text, .. } => each_text(visitor, text),
            EventKind::ToolProposed { args, .. } => match args {
                Arguments::Parsed(value) => visitor.value(value),
                Arguments::Text(text) => visitor.text(text),
            },
            EventKind::ToolFinished { result, .. } => each_text(visitor, result),
            EventKind::PlanProposed { plan, plan_text } => {
                plan.iter_mut().for_each(|plan| visitor.value(plan));
                each_text(visitor, plan_text);
            }
            EventKind::OutputProposed { name, text, .. } => {
                each_word(visitor, [name]);
                each_text(visitor, text);
            }
            EventKind::UsageReported { model, .. } => each_word(visitor, [model]),
            EventKind::CompactionFinished { summary, .. } => each_text(visitor, summary),
            EventKind::IterationEnded { phase, task, build, error, .. } => {
                each_word(visitor, [phase, task, build]);
                each_text(visitor, error);
            }
            EventKind::StopProposed { reason, output, .. } => {
                each_word(visitor, [reason]);
                each_text(visitor, output);
            }
            EventKind::AttemptStage { stage, .. } => visitor.word(stage),
            EventKind::AdvisorAnswered { model, instruction, error } => {
                each_word(visitor, [model]);
                each_text(visitor, instruction);
                each_text(visitor, error);
            }
            EventKind::ModelChanged { from, to, reason } => {
                each_word(visitor, [from]);
                visitor.word(to);
                visitor.word(reason);
            }
            EventKind::Control { by, why, .. } => each_word(visitor, [by, why]),
            EventKind::AttemptStarted { .. }
            | EventKind::AttemptEnded { .. }
            | EventKind::SessionEnded { .. } => {}
        }
        self.meta.iter_mut().for_each(|meta| visitor.value(meta));
    }
}

fn each_text(visitor: &mut impl Payloads, text: &mut Option<Payload>) {
    text.iter_mut().for_each(|text| visitor.text(text));
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

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every value by its word on the wire.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];

            /// The word on the wire.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    )*};
}

words! {
    /// What kept a run from going on.
    Failure {
        /// No model answers.
        Model = "model",
        /// The agent's program can't be run.
        Worker = "worker",
        /// The workspace was deleted.
        Workspace = "workspace",
    }
    /// Who wrote a prompt.
    PromptSource {
        /// A person.
        Human = "human",
        /// The program that runs the agent.
        Harness = "harness",
    }
    /// How a call ended.
    Status {
        /// It did what it should.
        Ok = "ok",
        /// It failed.
        Error = "error",
        /// It ran out of time.
        Timeout = "timeout",
        /// The tool itself died.
        Crashed = "crashed",
        /// It did not run, or was broken off.
        Cancelled = "cancelled",
    }
    /// Whether an attempt's work stays.
    AttemptResult {
        /// It stays.
        Commit = "commit",
        /// It is undone.
        Rollback = "rollback",
        /// It is neither: undoing it failed, so nothing may go on.
        Stuck = "stuck",
    }
    /// What a person can do to a session.
    Action {
        /// End it for good.
        Stop = "stop",
        /// Hold every call.
        Pause = "pause",
        /// Go on.
        Resume = "resume",
        /// Extend an iteration cap.
        Acknowledge = "acknowledge",
        /// Remove a blocker.
        ClearBlocker = "clear_blocker",
        /// Forget failed iterations.
        ResetFailures = "reset_failures",
        /// Open the session anew.
        Reset = "reset",
        /// Complete without tests.
        SkipDirtyBits = "skip_dirty_bits",
        /// End a constraint.
        ExpireConstraint = "expire_constraint",
        /// Allow exactly one call.
        Grant = "grant",
        /// Refuse exactly one call.
        Refuse = "refuse",
        /// Switch the guard off for a while.
        Off = "off",
        /// Use the changed definition.
        Reload = "reload",
    }
}

impl Action {
    /// Whether this can only tighten: anybody may say it, the agent included.
    pub fn closes(self) -> bool {
        matches!(self, Self::Stop | Self::Pause | Self::Refuse)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
