//! The interface of agent programs that work without a person in a supervised run.

use std::path::Path;

/// Starts the program of one agent client as a worker, and reads its output.
pub trait WorkerProgram: Sync {
    /// The name of the client on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Variables with API keys that the program needs. The commands that the program runs should
    /// not see them.
    fn key_variables(&self) -> &'static [&'static str];

    /// Checks that the program can be run. The error says why it can't.
    fn check_installed(&self) -> Result<(), String>;

    /// The command line without the prompt. The caller appends the prompt as the last word.
    fn command_line(&self, start: &WorkerStart<'_>) -> Result<Vec<String>, String>;

    /// Parses the report in the output of the program; `None` if it prints only text.
    fn parse_output(&self, output: &str) -> Option<WorkerReport>;

    /// Whether a text says that the conversation to resume does not exist.
    fn is_conversation_lost(&self, text: &str) -> bool;
}

/// The parameters with which a worker starts.
#[derive(Debug, Clone, Copy)]
pub struct WorkerStart<'a> {
    /// The session of the run; the worker's calls belong to it.
    pub session: &'a str,
    /// The directory of that session, for files that the worker needs.
    pub directory: &'a Path,
    /// The model to use, if one is named.
    pub model: Option<&'a str>,
    /// The conversation to start or resume.
    pub conversation: WorkerConversation<'a>,
}

/// The conversation of a worker, by the client's id for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerConversation<'a> {
    /// Start a new conversation.
    New(&'a str),
    /// Resume this conversation.
    Resumed(&'a str),
}

/// The report of a worker about its work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerReport {
    /// The conversation to resume next time.
    pub conversation: Option<String>,
    /// The last text of the worker. If it is missing, the whole output is the text.
    pub text: Option<String>,
    /// Whether the worker reports a failure.
    pub failed: bool,
    /// The HTTP status with which the model provider refused.
    pub status: Option<u16>,
    /// The error code of the provider for that refusal.
    pub code: String,
    /// Whether the conversation is too long for the model.
    pub context_full: bool,
}
