//! How one client is driven by a scripted model.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// How the program of one client is driven without a person, for the doctor and the tests.
pub trait LiveClient: Sync {
    /// The command that installs the program.
    fn how_to_install(&self) -> &'static str;

    /// Adds what a run needs to the command line and the environment.
    fn headless(&self, command: &mut Command, run: &HeadlessRun<'_>);

    /// The tools that let an agent run commands, read and write files, and start sub-agents, in
    /// the form in which the client is allowed to use them without asking.
    fn all_tools(&self) -> &'static str;

    /// The same for an agent that may only read.
    fn reading_tools(&self) -> &'static str;

    /// A step in which the model runs a command line.
    fn command_call(&self, line: &str) -> ModelCall;

    /// A step in which the model starts a sub-agent in the background, with this prompt.
    fn subagent_call(&self, prompt: &str) -> ModelCall;

    /// Whether a refusal came from a hook, and not from the client itself.
    fn is_hook_refusal(&self, text: &str) -> bool;

    /// The variable by which the client tells its hooks the directory of the project.
    fn project_variable(&self) -> &'static str;

    /// A payload about a harmless command: before it runs, and after it.
    fn sample_payloads(&self, workspace: &Path, call: &str) -> [SamplePayload; 2];
}

/// A tool call that a scripted model makes.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// The client's name of the tool.
    pub tool: &'static str,
    /// Its arguments.
    pub input: Value,
}

/// A payload, with the event at which the client sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplePayload {
    /// The event.
    pub event: &'static str,
    /// What the client sends.
    pub payload: Value,
}

/// What a run of a client needs.
#[derive(Debug, Clone, Copy)]
pub struct HeadlessRun<'a> {
    /// Where the scripted model listens.
    pub model_url: &'a str,
    /// What the agent is told.
    pub prompt: &'a str,
    /// Tools that the client lets run without asking.
    pub allowed_tools: &'a str,
    /// Whether the latest session goes on.
    pub resumes: bool,
    /// The file of the workspace that names the MCP servers.
    pub servers: Option<&'a str>,
}
