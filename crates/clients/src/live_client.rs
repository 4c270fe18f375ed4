//! The interface to run one client with a scripted model.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// How to run the program of a client without a person, for the doctor and the tests.
pub trait LiveClient: Sync {
    /// The command that installs the program.
    fn install_command(&self) -> &'static str;

    /// Adds the arguments and the environment for a run.
    fn configure_run(&self, command: &mut Command, run: &HeadlessRun<'_>);

    /// The tools that run commands, read and write files, and start sub-agents, in the format of
    /// the client's list of allowed tools.
    fn all_tools(&self) -> &'static str;

    /// The same for an agent that may only read.
    fn read_only_tools(&self) -> &'static str;

    /// A model call that runs a shell command.
    fn command_call(&self, line: &str) -> ModelCall;

    /// A model call that starts a sub-agent in the background.
    fn subagent_call(&self, prompt: &str) -> ModelCall;

    /// Whether a hook denied the call, and not the client itself.
    fn is_hook_refusal(&self, text: &str) -> bool;

    /// The variable in which the client passes the project directory to its hooks.
    fn project_variable(&self) -> &'static str;

    /// Two payloads about a harmless command: before it runs and after it.
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

/// A sample payload, and the event at which the client sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplePayload {
    /// The event.
    pub event: &'static str,
    /// The payload.
    pub payload: Value,
}

/// The parameters of one run of a client.
#[derive(Debug, Clone, Copy)]
pub struct HeadlessRun<'a> {
    /// The address of the scripted model.
    pub model_url: &'a str,
    /// The prompt for the agent.
    pub prompt: &'a str,
    /// The tools that the client runs without asking.
    pub allowed_tools: &'a str,
    /// Whether the client resumes its latest session.
    pub resumes: bool,
    /// The file in the workspace that lists the MCP servers.
    pub servers: Option<&'a str>,
}
