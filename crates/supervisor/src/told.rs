//! What is told while an agent works, for those who watch.

use jackline_engine::Status;
use jackline_engine::summary::BudgetSummary;
use serde::Serialize;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Told {
    /// It has begun, or goes on.
    Started {
        /// Its session.
        session: String,
        /// Where it works.
        workspace: String,
        /// Who works.
        model: String,
        /// Whether it was begun before.
        resumed: bool,
    },
    /// An iteration begins.
    Iteration {
        /// Counts from one.
        number: u64,
    },
    /// A model is asked.
    Asking {
        /// Which.
        model: String,
    },
    /// The agent says something.
    Said {
        /// What.
        text: String,
    },
    /// A call was decided on, and came back where it ran.
    Called {
        /// The tool.
        tool: String,
        /// What it does: the command line, or the file.
        does: String,
        /// What was decided.
        decision: String,
        /// Why, where somebody objects or has something to say.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// How it came back, where it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<Status>,
        /// The exit code of a command.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// How long it took.
        ms: u64,
    },
    /// Something became of a program that the agent wrote.
    Program {
        /// What, and of which attempt.
        step: jackline_task::Told,
    },
    /// The agent wants to stop.
    Stopping {
        /// Whether it may.
        allowed: bool,
        /// Why not, or as what it counts.
        why: String,
    },
    /// An iteration is over.
    IterationEnded {
        /// Which.
        number: u64,
        /// Why it brought nothing, where that is so.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// Nothing goes on for now.
    Waiting {
        /// What for.
        #[serde(flatten)]
        waits: Waits,
    },
    /// It goes on.
    GoesOn {},
    /// Another model, or worker, takes over.
    Changed {
        /// Who worked.
        from: String,
        /// Who works.
        to: String,
        /// Why.
        reason: String,
    },
    /// An advisor was asked.
    Advised {
        /// Who.
        model: String,
        /// What it says; none where it did not answer.
        instruction: Option<String>,
    },
    /// The conversation was full, and begins anew with a briefing.
    Restarted {
        /// How full it was, in percent.
        pct: Option<u64>,
    },
    /// How much is used up.
    Standing {
        /// Steps taken.
        steps: u64,
        /// Every limit, and what was used of it.
        budgets: Vec<BudgetSummary>,
        /// How full the conversation is, in percent.
        #[serde(skip_serializing_if = "Option::is_none")]
        context_pct: Option<u64>,
    },
    /// Something that a person should know.
    Aside {
        /// In words.
        text: String,
    },
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Waits {
    /// A person has to say how it goes on.
    Person {
        /// Why.
        why: String,
        /// What they can do.
        how: String,
    },
    /// A model does not answer now.
    Model {
        /// Why.
        why: String,
        /// For how long.
        ms: u64,
    },
    /// A check by command is at work.
    Verification {},
}
