//! Events that a run reports while an agent works, for people and programs that watch it.

use jackline_engine::CallStatus;
use jackline_engine::summary::BudgetSummary;
use serde::Serialize;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run has started or resumed.
    Started {
        /// The id of the session.
        session: String,
        /// The workspace directory.
        workspace: String,
        /// The engine that works first.
        model: String,
        /// Whether the run was resumed.
        resumed: bool,
    },
    /// An iteration begins.
    Iteration {
        /// The number of the iteration, from one.
        number: u64,
    },
    /// An engine is asked.
    Asking {
        /// The label of the engine.
        model: String,
    },
    /// The agent wrote text.
    #[serde(rename = "said")]
    AgentText {
        /// The start of the text.
        text: String,
    },
    /// The guards decided on a tool call, and the call has returned if it ran.
    #[serde(rename = "called")]
    ToolCall {
        /// The tool.
        tool: String,
        /// What the call does: its command line or its file.
        does: String,
        /// The decision of the guards.
        decision: String,
        /// The reason or feedback of the guards, if there is any.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// The status of the result, if the call ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<CallStatus>,
        /// The exit code, if the tool ran a command.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// How long the call took.
        ms: u64,
    },
    /// Progress of a program that the agent wrote.
    Program {
        /// The event of the attempt.
        step: jackline_task::AttemptEvent,
    },
    /// The agent proposed to stop.
    Stopping {
        /// Whether it may stop.
        allowed: bool,
        /// Why it may not stop, or how the guards count the stop.
        why: String,
    },
    /// An iteration has ended.
    IterationEnded {
        /// The number of the iteration.
        number: u64,
        /// Why the iteration made no progress, if it made none.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// The run waits.
    Waiting {
        /// The reason for the wait.
        #[serde(flatten)]
        waits: WaitReason,
    },
    /// The run continues after a pause.
    #[serde(rename = "goes_on")]
    Resumed {},
    /// Another engine takes over.
    #[serde(rename = "changed")]
    EngineChanged {
        /// The label of the engine that worked before.
        from: String,
        /// The label of the engine that works now.
        to: String,
        /// The reason for the change.
        reason: String,
    },
    /// An advisor was asked.
    Advised {
        /// The label of the advisor.
        model: String,
        /// The advice; `None` if the advisor did not answer.
        instruction: Option<String>,
    },
    /// The conversation was full and restarts with a briefing.
    Restarted {
        /// How full the conversation was, in percent.
        pct: Option<u64>,
    },
    /// How much of the budgets is used up.
    #[serde(rename = "standing")]
    BudgetStatus {
        /// Steps taken.
        steps: u64,
        /// Each limit, and how much of it is used.
        budgets: Vec<BudgetSummary>,
        /// How full the conversation is, in percent.
        #[serde(skip_serializing_if = "Option::is_none")]
        context_pct: Option<u64>,
    },
    /// A notification for a person.
    #[serde(rename = "aside")]
    Notification {
        /// The text.
        text: String,
    },
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitReason {
    /// A person has to decide how to continue.
    Person {
        /// Why the session is paused.
        why: String,
        /// The commands that help.
        how: String,
    },
    /// The engine does not answer at the moment.
    Model {
        /// The error of the engine.
        why: String,
        /// How long the run waits, in milliseconds.
        ms: u64,
    },
    /// A verification command is running.
    Verification {},
}
