//! Agent programs that work without a person, as far as a supervised run has to know them.

use std::path::Path;

/// How the program of one agent client is started as a worker, and what it prints.
pub trait WorkerProgram: Sync {
    /// The word of the client.
    fn word(&self) -> &'static str;

    /// Variables that hold keys which the program needs, although its commands should not have
    /// them.
    fn key_variables(&self) -> &'static [&'static str];

    /// Looks whether the program is there, or says why it can't be run.
    fn find(&self) -> Result<(), String>;

    /// The command line up to the prompt, which becomes its last word.
    fn command_line(&self, start: &WorkerStart<'_>) -> Result<Vec<String>, String>;

    /// What the program says of its work; nothing where it prints only text.
    fn read(&self, output: &str) -> Option<WorkerReport>;

    /// Whether a text says that the conversation that was to go on does not exist.
    fn lost_conversation(&self, text: &str) -> bool;
}

/// What a worker is started with.
#[derive(Debug, Clone, Copy)]
pub struct WorkerStart<'a> {
    /// The session of the run, to which the calls of the worker belong.
    pub session: &'a str,
    /// The directory of that session, where files for the worker can be put.
    pub directory: &'a Path,
    /// The model that the worker is to use, where one is named.
    pub model: Option<&'a str>,
    /// The conversation.
    pub conversation: WorkerConversation<'a>,
}

/// The conversation in which a worker is started, by its name at the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerConversation<'a> {
    /// One that does not exist yet.
    New(&'a str),
    /// One that goes on.
    Resumed(&'a str),
}

/// What a worker says of its work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerReport {
    /// The conversation that goes on.
    pub conversation: Option<String>,
    /// Its last text; without one the whole output counts.
    pub text: Option<String>,
    /// Whether it says that it failed.
    pub failed: bool,
    /// The status with which its provider refused.
    pub status: Option<u16>,
    /// The provider's word for that refusal.
    pub code: String,
    /// Whether its conversation does not fit its model any more.
    pub context_full: bool,
}
