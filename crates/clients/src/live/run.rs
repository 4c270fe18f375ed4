//! One run of the client, and what came of it.

use std::path::Path;
use std::time::Duration;

use jackline_model::scripted::{Request, Script, ScriptedModel, Step, ToolResult};
use serde_json::{Value, json};

use super::{LiveError, Scratch, process};

/// What a sub-agent is told; its part of a script goes by this text.
pub const SUBAGENT: &str = "jackline-subagent: do your part";

/// What the agent is told unless told otherwise.
const PROMPT: &str = "do the scripted work";

/// Names a model that every client knows; the scripted one answers to any name.
const MODEL: &str = "claude-sonnet-4-5";

/// How long a run may take unless told otherwise.
const TIMEOUT: Duration = Duration::from_mins(1);

/// After so many turns the client gives up by itself.
const TURNS_MAX: &str = "40";

/// A run of the client, headless.
pub struct Run<'a> {
    /// Its program.
    pub client: &'a Path,
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

/// Starts a sub-agent, which the client does in the background.
pub fn subagent() -> Step {
    let input = json!({
        "description": "a part of the work",
        "prompt": SUBAGENT,
        "subagent_type": "general-purpose",
    });
    Step::call("Agent", input)
}

impl<'a> Run<'a> {
    /// A run in which the client itself stands in nobody's way.
    pub fn new(client: &'a Path, scratch: &'a Scratch, script: Script) -> Self {
        let allowed_tools = "Bash,Read,Write,Edit,Agent";
        let (timeout, prompt) = (TIMEOUT, PROMPT);
        Self {
            client,
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
        let mut command = self.scratch.command(self.client);
        for (name, value) in [
            ("ANTHROPIC_BASE_URL", model.url().as_str()),
            ("ANTHROPIC_API_KEY", "no-key-is-needed"),
            ("NO_PROXY", "127.0.0.1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ] {
            command.env(name, value);
        }
        command.args(["-p", self.prompt, "--model", MODEL, "--max-turns", TURNS_MAX]);
        command.args(["--output-format", "stream-json", "--verbose"]);
        command.args(["--allowedTools", self.allowed_tools]);
        if self.resumes {
            command.arg("--continue");
        }
        if let Some(servers) = self.servers {
            command.args(["--strict-mcp-config", "--mcp-config", servers]);
        }
        let ended = process::run(command, self.scratch, self.timeout)
            .map_err(|source| LiveError::Start { program: self.client.to_owned(), source })?;
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
