//! Runs the client once and records the outcome.

use std::path::Path;
use std::time::Duration;

use jackline_model::scripted::{ModelScript, RecordedRequest, RecordedToolResult, ScriptedModel};
use serde_json::Value;

use super::{LiveError, ScratchHome, process};
use jackline_clients::Client;
use jackline_clients::live_client::HeadlessRun;

/// The prompt of a sub-agent. It selects the sub-agent's part of the script.
pub const SUBAGENT_PROMPT: &str = "jackline-subagent: do your part";

/// The default prompt of the agent.
const DEFAULT_PROMPT: &str = "do the scripted work";

/// The default timeout of a run.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// A run of the client without a person.
pub struct LiveRun<'a> {
    /// The client.
    pub client: &'static Client,
    /// Its program.
    pub program: &'a Path,
    /// The scratch workspace, with installed hooks.
    pub scratch: &'a ScratchHome,
    /// The script of the model.
    pub script: ModelScript,
    /// Tools that the client lets run without asking.
    pub allowed_tools: &'a str,
    /// The timeout.
    pub timeout: Duration,
    /// The prompt for the agent.
    pub prompt: &'a str,
    /// Whether to resume the latest session of the scratch directory.
    pub resumes: bool,
    /// The file in the workspace that lists the MCP servers.
    pub servers: Option<&'a str>,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct LiveOutcome {
    /// The exit status of the client; nothing if it was killed.
    pub code: Option<i32>,
    /// Whether it was killed because of the timeout.
    pub timed_out: bool,
    /// The duration in milliseconds.
    pub ms: u64,
    /// The requests to the model, oldest first.
    pub requests: Vec<RecordedRequest>,
    /// The JSON lines that the client printed.
    pub output_lines: Vec<Value>,
    /// The error output of the client.
    pub stderr: String,
}

impl<'a> LiveRun<'a> {
    /// A run in which the client itself allows all tools.
    pub fn new(
        client: &'static Client,
        program: &'a Path,
        scratch: &'a ScratchHome,
        script: ModelScript,
    ) -> Self {
        let allowed_tools = client.live.all_tools();
        let (timeout, prompt) = (DEFAULT_TIMEOUT, DEFAULT_PROMPT);
        Self {
            client,
            program,
            scratch,
            script,
            allowed_tools,
            timeout,
            prompt,
            resumes: false,
            servers: None,
        }
    }

    /// Runs the client to its end.
    pub fn run_client(self) -> Result<LiveOutcome, LiveError> {
        let lifetime = self.timeout + Duration::from_secs(5);
        let model = ScriptedModel::start(self.script, lifetime).map_err(LiveError::Model)?;
        let mut command = self.scratch.command(self.program);
        let run = HeadlessRun {
            model_url: &model.url(),
            prompt: self.prompt,
            allowed_tools: self.allowed_tools,
            resumes: self.resumes,
            servers: self.servers,
        };
        self.client.live.configure_run(&mut command, &run);
        let ended = process::run_with_timeout(command, self.scratch, self.timeout)
            .map_err(|source| LiveError::Start { program: self.program.to_owned(), source })?;
        let lines = ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(LiveOutcome {
            code: ended.code,
            timed_out: ended.timed_out,
            ms: ended.micros / 1000,
            requests: model.requests(),
            output_lines: lines.collect(),
            stderr: ended.stderr,
        })
    }
}

impl LiveOutcome {
    /// The requests of the main agent, or of a sub-agent by its marker.
    pub fn requests_of(&self, marker: Option<&str>) -> impl Iterator<Item = &RecordedRequest> {
        self.requests.iter().filter(move |request| request.is_of_part(marker))
    }

    /// The latest tool results that the model got.
    pub fn tool_results(&self, marker: Option<&str>) -> Vec<RecordedToolResult> {
        self.requests_of(marker).last().map(RecordedRequest::tool_results).unwrap_or_default()
    }

    /// Whether any request to the model contained a text.
    pub fn showed_model(&self, text: &str) -> bool {
        self.requests.iter().any(|request| request.has_text(text))
    }

    /// Whether the person saw a text.
    pub fn showed_person(&self, text: &str) -> bool {
        let informs = |line: &&Value| line.get("subtype") == Some(&"informational".into());
        self.output_lines.iter().filter(informs).any(|line| line.to_string().contains(text))
    }

    /// A summary of the run, for people.
    pub fn summary(&self) -> String {
        let end = match self.code {
            _ if self.timed_out => "was killed at the timeout after".to_owned(),
            Some(code) => format!("exited with {code} after"),
            None => "was killed after".to_owned(),
        };
        let complaint: String = self.stderr.trim().chars().take(200).collect();
        let complaint = if complaint.is_empty() { complaint } else { format!("; {complaint}") };
        format!("the client {end} {} ms and {} requests{complaint}", self.ms, self.requests.len())
    }
}
