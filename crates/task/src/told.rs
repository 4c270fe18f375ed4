//! What is told while a task is done, for those who watch and repair. It is of the inside:
//! whoever asked gets the public outcome, and nothing of this.

use jackline_attempt::Violation;
use serde::Serialize;

/// Something that happened in an attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    /// The call that the attempt is of.
    pub call: String,
    /// The name of its task.
    pub name: String,
    /// How deep it is; whoever asked is above 0.
    pub depth: u32,
    /// Which attempt of the call, from one.
    pub attempt: u32,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The attempt has begun.
    Started {
        /// Its number in the session, as `jackline undo` names it.
        number: u32,
    },
    /// The model has written something.
    Generated {
        /// How many lines it has.
        lines: usize,
    },
    /// The model has written nothing that can be used.
    NotGenerated {
        /// A word for it.
        error_type: String,
        /// What happened.
        message: String,
    },
    /// Somebody objects, before it ran, while it ran, or to its answer.
    Objected {
        /// The objections.
        violations: Vec<Violation>,
    },
    /// It did not run to its end.
    Failed {
        /// A word for it.
        error_type: String,
        /// What happened.
        message: String,
    },
    /// It says itself that it did not succeed.
    Answered {
        /// A word for it.
        error_type: String,
        /// What it says.
        message: String,
        /// Whether another try may help.
        retriable: bool,
    },
    /// What it did is undone.
    RolledBack {
        /// Files that are as they were.
        restored: Vec<String>,
        /// Files that somebody else has changed meanwhile, and that are left alone.
        kept: Vec<String>,
        /// What can't be undone.
        not_undoable: Vec<String>,
    },
    /// It could not be undone, and this is how things are.
    NotRolledBack {
        /// Which file is in which state.
        reason: String,
    },
    /// What it did stays.
    Committed {
        /// Files that are otherwise than before.
        files: Vec<String>,
        /// Tools that it forged.
        tools: Vec<String>,
    },
    /// Something that a person should know.
    Aside {
        /// In words.
        text: String,
    },
}
