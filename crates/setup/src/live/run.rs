//! One run of the client, and what came of it.

use std::path::Path;
use std::time::Duration;

use jackline_model::scripted::{Request, Script, ScriptedModel, ToolResult};
use serde_json::Value;

use super::{LiveError, Scratch, process};
use jackline_clients::Client;
use jackline_clients::live_client::HeadlessRun;

/// What a sub-agent is told; its part of a script goes by this text.
pub const SUBAGENT: &str = "jackline-subagent: do your part";

/// What the agent is told unless told otherwise.
const PROMPT: &str = "do the scripted work";

/// How long a run may take unless told otherwise.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A run of the client, headless.
pub struct Run<'a> {
    /// Which client.
    pub client: &'static Client,
    /// Its program.
    pub program: &'a Path,
    /// Where it runs, with the hooks that are installed there.
    pub scratch: &'a Scratch,
    /// What the model says.
    pub script: Script,
    /// Tools that the client lets run without asking.
    pub allowed_tools: &'a str,
    /// How long it may take.
    pub timeout: Duration,
    /// What the agent is told.
    pub prompt: &'a str,
    /// Goes on with the latest session of the scratch.
    pub resumes: bool,
    /// The file of the workspace that names the MCP servers it has.
    pub servers: Option<&'a str>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Seen {
    /// The exit status of the client; none if it was ended.
    pub code: Option<i32>,
    /// It took longer than it may, and was ended.
    pub timed_out: bool,
    /// How long it took.
    pub ms: u64,
    /// What the model was asked and shown, oldest first.
    pub requests: Vec<Request>,
    /// What the client said of itself, one object a line.
    pub said: Vec<Value>,
    /// What it complained about.
    pub stderr: String,
}

impl<'a> Run<'a> {
    /// A run in which the client itself stands in nobody's way.
    pub fn new(
        client: &'static Client,
        program: &'a Path,
        scratch: &'a Scratch,
        script: Script,
    ) -> Self {
        let allowed_tools = client.live.all_tools();
        let (timeout, prompt) = (TIMEOUT, PROMPT);
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

    /// Runs it to its end.
    pub fn play(self) -> Result<Seen, LiveError> {
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
        self.client.live.headless(&mut command, &run);
        let ended = process::run(command, self.scratch, self.timeout)
            .map_err(|source| LiveError::Start { program: self.program.to_owned(), source })?;
        let said = ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(Seen {
            code: ended.code,
            timed_out: ended.timed_out,
            ms: ended.micros / 1000,
            requests: model.requests(),
            said: said.collect(),
            stderr: ended.stderr,
        })
    }
}

impl Seen {
    /// The requests of the agent itself, or of a sub-agent by its marker.
    pub fn of(&self, marker: Option<&str>) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |request| request.is_of(marker))
    }

    /// What its tools answered, as the model saw it last.
    pub fn results(&self, marker: Option<&str>) -> Vec<ToolResult> {
        self.of(marker).last().map(Request::tool_results).unwrap_or_default()
    }

    /// Whether the model was shown a text, ever.
    pub fn showed(&self, text: &str) -> bool {
        self.requests.iter().any(|request| request.shows(text))
    }

    /// Whether the person was shown a text.
    pub fn told_person(&self, text: &str) -> bool {
        let informs = |line: &&Value| line.get("subtype") == Some(&"informational".into());
        self.said.iter().filter(informs).any(|line| line.to_string().contains(text))
    }

    /// What the run came to, for people.
    pub fn summary(&self) -> String {
        let end = match self.code {
            _ if self.timed_out => "was ended after".to_owned(),
            Some(code) => format!("ended with {code} after"),
            None => "was killed after".to_owned(),
        };
        let complaint: String = self.stderr.trim().chars().take(200).collect();
        let complaint = if complaint.is_empty() { complaint } else { format!("; {complaint}") };
        format!("the client {end} {} ms and {} requests{complaint}", self.ms, self.requests.len())
    }
}
