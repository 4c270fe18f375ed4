//! The program of the toy client. It is a shell, and no model drives it.

use std::path::Path;
use std::process::Command;

use jackline_clients::live_client::{HeadlessRun, LiveClient, ModelCall, SamplePayload};
use serde_json::json;

pub(super) struct ToyLive;

impl LiveClient for ToyLive {
    fn install_command(&self) -> &'static str {
        "make toy"
    }

    fn configure_run(&self, command: &mut Command, run: &HeadlessRun<'_>) {
        command.env("TOY_MODEL", run.model_url).args(["-c", run.prompt]);
    }

    fn all_tools(&self) -> &'static str {
        "all"
    }

    fn read_only_tools(&self) -> &'static str {
        "read"
    }

    fn command_call(&self, line: &str) -> ModelCall {
        ModelCall { tool: "shell", input: json!({ "command": line }) }
    }

    fn subagent_call(&self, prompt: &str) -> ModelCall {
        ModelCall { tool: "delegate", input: json!({ "prompt": prompt }) }
    }

    fn is_hook_refusal(&self, text: &str) -> bool {
        text.starts_with("no: ")
    }

    fn project_variable(&self) -> &'static str {
        "TOY_PROJECT"
    }

    fn sample_payloads(&self, _: &Path, call: &str) -> [SamplePayload; 2] {
        ["call", "stop"].map(|event| {
            let args = json!({ "command": "ls" });
            let payload =
                json!({ "at": event, "session": "s", "id": call, "tool": "shell", "args": args });
            SamplePayload { event, payload }
        })
    }
}
