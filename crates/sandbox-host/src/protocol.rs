//! The messages between the host and its worker: one line of JSON each.
//!
//! The host sends requests and the worker answers. Only while a program runs, the worker sends
//! requests, too, and waits for the answer. So at most one message is under way.

use jackline_attempt::SourceLocation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program_limits::ProgramLimits;

/// The protocol version. The host refuses a worker with another version.
pub const VERSION: u32 = 1;

/// A message from the host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Check a program without running it.
    Check(CheckRequest),
    /// Run a program.
    Run(Box<RunRequest>),
    /// The answer to the call for which the program waits.
    Answer(CallAnswer),
}

/// A message from the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The worker has started. Always its first message.
    Ready {
        /// The [`VERSION`] of the worker.
        version: u32,
    },
    /// All violations of a program.
    Objections(Vec<ProgramViolation>),
    /// The program calls the host and waits.
    Wants(HostRequest),
    /// The program has ended.
    Ended(Box<EndedProgram>),
}

/// A program to check.
#[derive(Debug, Serialize, Deserialize)]
pub struct CheckRequest {
    /// The source.
    pub source: String,
    /// What the program may call.
    pub known: Callables,
}

/// A program to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunRequest {
    /// The source.
    pub source: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The context. The worker adds the lists of tools and delegates.
    pub context: Map<String, Value>,
    /// What the program may call.
    pub known: Callables,
    /// The limits of the program.
    pub limits: ProgramLimits,
}

/// What a program may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callables {
    /// Callable with `tool`.
    pub tools: Vec<CallableSpec>,
    /// Callable with `delegate`.
    pub delegates: Vec<CallableSpec>,
}

/// A tool or a delegate, as programs see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallableSpec {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// Whether its answers contain external data, so that the program's answer must name sources.
    pub external: bool,
}

/// The answer to a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// The call succeeded with this value.
    Value(Value),
    /// The call was refused. The program gets a `PermissionError`.
    Refused(String),
    /// The call failed. The program gets a `RuntimeError`.
    Failed(String),
}

/// A call of the host by a program.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRequest {
    /// Call a tool.
    Tool {
        /// The name of the tool.
        name: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// Call a delegate.
    Delegate {
        /// The name of the delegate.
        name: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// Add a tool that the program wrote.
    Forge {
        /// The name of the tool.
        name: String,
        /// The description for models.
        description: String,
        /// The source.
        source: String,
        /// The violations of the source.
        objections: Vec<ProgramViolation>,
    },
}

/// The end of a program, with its output.
#[derive(Debug, Serialize, Deserialize)]
pub struct EndedProgram {
    /// How the program ended.
    pub end: ProgramEnd,
    /// The position at which it ended.
    pub at: Option<ProgramPosition>,
    /// Its printed output, up to the limit.
    pub printed: String,
    /// How many bytes it printed in total.
    pub printed_bytes: u64,
    /// Its context, if it succeeded and changed the context.
    pub context: Option<Map<String, Value>>,
}

/// How a program ended.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// It succeeded.
    Ok {
        /// The answer.
        value: Value,
        /// The sources of external data in the answer.
        sources: Vec<Value>,
    },
    /// It returned an error.
    Error {
        /// The error type.
        error_type: String,
        /// The error message.
        message: String,
        /// Whether another attempt may help.
        retriable: bool,
    },
    /// It passed on the outcome of a delegate. The number is the index of the call, from zero.
    HandedOn(usize),
    /// A call was refused, and the program did not catch the exception. The number is the index.
    Refused(usize),
    /// A call failed, and the program did not catch the exception. The number is the index.
    CallFailed(usize),
    /// It failed to run to its end.
    Failed {
        /// The kind of the failure.
        failure: ProgramFailure,
        /// The error message.
        message: String,
    },
}

/// Why a program failed to run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramFailure {
    /// It did not catch an exception, or ended without an answer.
    Execution,
    /// The source is not a valid program.
    InvalidCode,
    /// It exceeded its time limit.
    Timeout,
    /// It exceeded its memory limit.
    Memory,
    /// It exceeded the recursion limit.
    Recursion,
    /// It exceeded the limit on calls.
    BudgetExceeded,
    /// Its answer is not plain data.
    NonSerializableResult,
    /// The worker process ended.
    WorkerCrash,
}

impl ProgramFailure {
    /// The error type in traces.
    pub fn as_str(self) -> &'static str {
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

/// One violation of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramViolation {
    /// The JSON word of the subtype.
    pub subtype: String,
    /// The message.
    pub message: String,
    /// The position.
    pub at: ProgramPosition,
    /// A correction that is more specific than the one of the subtype, if there is one.
    pub correction: Option<String>,
}

/// A position in a program, counted from one. Columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProgramPosition {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl From<ProgramPosition> for SourceLocation {
    fn from(place: ProgramPosition) -> Self {
        Self { line: place.line, column: place.column }
    }
}
