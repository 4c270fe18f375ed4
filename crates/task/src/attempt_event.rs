//! Events that a task reports while it runs, with internal details. The caller of the task gets
//! only the public outcome.

use jackline_attempt::AttemptViolation;
use serde::Serialize;

/// An event of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptEvent {
    /// The id of the call.
    pub call: String,
    /// The name of its task.
    pub name: String,
    /// How deeply the call is nested; 0 for the call of the task itself.
    pub depth: u32,
    /// The number of the attempt within the call, from one.
    pub attempt: u32,
    /// The event.
    #[serde(flatten)]
    pub kind: AttemptEventKind,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AttemptEventKind {
    /// The attempt has started.
    Started {
        /// Its number in the session, as `jackline undo` takes it.
        number: u32,
    },
    /// The model has written an artifact.
    Generated {
        /// How many lines it has.
        lines: usize,
    },
    /// The model has written no usable artifact.
    NotGenerated {
        /// The error type.
        error_type: String,
        /// The error message.
        message: String,
    },
    /// Violations were raised before the run, during it, or for its answer.
    #[serde(rename = "objected")]
    ViolationsRaised {
        /// The violations.
        violations: Vec<AttemptViolation>,
    },
    /// The artifact failed to run to its end.
    Failed {
        /// The error type.
        error_type: String,
        /// The error message.
        message: String,
    },
    /// The artifact ran and returned an error.
    #[serde(rename = "answered")]
    ErrorReturned {
        /// The error type.
        error_type: String,
        /// The error message.
        message: String,
        /// Whether another attempt may help.
        retriable: bool,
    },
    /// The changes of the attempt were undone.
    RolledBack {
        /// The files that were restored.
        restored: Vec<String>,
        /// The files that another program has changed since. They were not restored.
        kept: Vec<String>,
        /// What can't be undone.
        not_undoable: Vec<String>,
    },
    /// The changes could not be undone.
    NotRolledBack {
        /// The state of the files.
        reason: String,
    },
    /// The changes of the attempt were committed.
    Committed {
        /// The files that changed.
        files: Vec<String>,
        /// The tools that it generated.
        tools: Vec<String>,
    },
    /// A notification for a person.
    #[serde(rename = "aside")]
    Notification {
        /// The text.
        text: String,
    },
}
