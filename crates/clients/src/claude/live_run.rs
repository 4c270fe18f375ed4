//! Runs Claude Code with a scripted model.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::dialect::PROJECT_VARIABLE;
use crate::live_client::{HeadlessRun, LiveClient, ModelCall, SamplePayload};

/// A model name that every version accepts. The scripted model answers to any name.
const MODEL: &str = "claude-sonnet-4-5";

/// The client stops after this many turns.
const TURNS_MAX: &str = "40";

/// The client marks a denial by a hook with this text.
const HOOK_DENIAL_MARK: &str = "hook error";

/// Runs Claude Code without a person.
pub(super) struct ClaudeLive;

impl LiveClient for ClaudeLive {
    fn install_command(&self) -> &'static str {
        "npm install -g @anthropic-ai/claude-code"
    }

    fn configure_run(&self, command: &mut Command, run: &HeadlessRun<'_>) {
        for (name, value) in [
            ("ANTHROPIC_BASE_URL", run.model_url),
            ("ANTHROPIC_API_KEY", "no-key-is-needed"),
            ("NO_PROXY", "127.0.0.1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ] {
            command.env(name, value);
        }
        command.args(["-p", run.prompt, "--model", MODEL, "--max-turns", TURNS_MAX]);
        command.args(["--output-format", "stream-json", "--verbose"]);
        command.args(["--allowedTools", run.allowed_tools]);
        if run.resumes {
            command.arg("--continue");
        }
        if let Some(servers) = run.servers {
            command.args(["--strict-mcp-config", "--mcp-config", servers]);
        }
    }

    fn all_tools(&self) -> &'static str {
        "Bash,Read,Write,Edit,Agent"
    }

    fn read_only_tools(&self) -> &'static str {
        "Read"
    }

    fn command_call(&self, line: &str) -> ModelCall {
        let input = json!({ "command": line, "description": "make a file" });
        ModelCall { tool: "Bash", input }
    }

    fn subagent_call(&self, prompt: &str) -> ModelCall {
        let input = json!({
            "description": "a part of the work",
            "prompt": prompt,
            "subagent_type": "general-purpose",
        });
        ModelCall { tool: "Agent", input }
    }

    fn is_hook_refusal(&self, text: &str) -> bool {
        text.contains(HOOK_DENIAL_MARK)
    }

    fn project_variable(&self) -> &'static str {
        PROJECT_VARIABLE
    }

    fn sample_payloads(&self, workspace: &Path, call: &str) -> [SamplePayload; 2] {
        ["PreToolUse", "PostToolUse"].map(|event| SamplePayload {
            event,
            payload: json!({
                "session_id": "latency",
                "cwd": workspace,
                "hook_event_name": event,
                "permission_mode": "default",
                "tool_name": "Bash",
                "tool_input": { "command": "git status --short && ls -la src | head" },
                "tool_response": { "stdout": "", "stderr": "", "interrupted": false },
                "tool_use_id": call,
            }),
        })
    }
}
