//! What is said between the host and its worker: one line of JSON each.
//!
//! The host asks, and the worker answers; only while a program runs the worker asks, too,
//! and then it waits. So there is never more than one line under way.

use jackline_attempt::Location;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::Limits;

/// Both sides must say the same number; a worker of another build is not used.
pub const VERSION: u32 = 1;

/// What the host says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Look at a program without running it.
    Check(Check),
    /// Run a program.
    Run(Box<Run>),
    /// What came of a call, for the program that waits for it.
    Answer(Answer),
}

/// What the worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// It is there. Said once, first.
    Ready {
        /// Its [`VERSION`].
        version: u32,
    },
    /// Everything that is wrong with a program.
    Objections(Vec<Objection>),
    /// The program wants something, and waits.
    Wants(Wanted),
    /// The program has ended.
    Ended(Box<Ended>),
}

/// A program to look at.
#[derive(Debug, Serialize, Deserialize)]
pub struct Check {
    /// Its text.
    pub source: String,
    /// What it may call.
    pub known: Known,
}

/// A program to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// Its text.
    pub source: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
    /// What it remembers; what it may call is added to it.
    pub context: Map<String, Value>,
    /// What it may call.
    pub known: Known,
    /// What it may use up.
    pub limits: Limits,
}

/// What a program may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// By `tool`.
    pub tools: Vec<Named>,
    /// By `delegate`.
    pub delegates: Vec<Named>,
}

/// A tool or a delegate, as programs know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What it does, in words.
    pub description: String,
    /// Whether what it answers comes from outside, so that an answer has to say from where.
    pub external: bool,
}

/// What came of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done.
    Value(Value),
    /// It was refused: a `PermissionError` in the program.
    Refused(String),
    /// It was done, and failed: a `RuntimeError` in the program.
    Failed(String),
}

/// What a program wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// A call of a tool.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// That somebody else does something.
    Delegate {
        /// Who.
        name: String,
        /// What.
        arguments: Map<String, Value>,
    },
    /// A tool that is not there yet.
    Forge {
        /// Its name.
        name: String,
        /// What it does, in words.
        description: String,
        /// Its program.
        source: String,
        /// Everything that is wrong with it.
        objections: Vec<Objection>,
    },
}

/// How a program ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The end itself.
    pub end: End,
    /// Where that was.
    pub at: Option<Place>,
    /// What it printed, at most as much as its limits allow.
    pub printed: String,
    /// How much it printed.
    pub printed_bytes: u64,
    /// What it remembers, where that has changed and it did what it was asked for.
    pub context: Option<Map<String, Value>>,
}

/// How a program ended.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It did what it was asked for.
    Ok {
        /// Its answer.
        value: Value,
        /// Where that is from.
        sources: Vec<Value>,
    },
    /// It did not, and says so.
    Error {
        /// A word for programs.
        error_type: String,
        /// What happened.
        message: String,
        /// Whether another try may help.
        retriable: bool,
    },
    /// It hands on what a delegate ended with: which call of all, counted from zero.
    HandedOn(usize),
    /// A call was refused, and it had nothing to say to that.
    Refused(usize),
    /// A call failed, and it had nothing to say to that.
    CallFailed(usize),
    /// It did not run to its end.
    Failed {
        /// Why.
        failure: Failure,
        /// What happened.
        message: String,
    },
}

/// Why a program did not run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// It raised what nobody caught, or has no answer.
    Execution,
    /// It is no program.
    InvalidCode,
    /// It ran too long.
    Timeout,
    /// It wanted too much memory.
    Memory,
    /// It went too deep.
    Recursion,
    /// It called too often.
    BudgetExceeded,
    /// It answered with something that is no data.
    NonSerializableResult,
    /// The worker is gone.
    WorkerCrash,
}

impl Failure {
    /// Its word, as traces have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::InvalidCode => "invalid_code",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Recursion => "recursion",
            Self::BudgetExceeded => "budget_exceeded",
            Self::NonSerializableResult => "non_serializable_result",
            Self::WorkerCrash => "worker_crash",
        }
    }
}

/// One thing that is wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// The word of its subtype.
    pub subtype: String,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub at: Place,
    /// What passes instead, where that can be said better than for the whole subtype.
    pub correction: Option<String>,
}

/// A place in a program, counted from one; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl From<Place> for Location {
    fn from(place: Place) -> Self {
        Self { line: place.line, column: place.column }
    }
}
