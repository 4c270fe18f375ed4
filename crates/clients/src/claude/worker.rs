//! Runs Claude Code as a worker of `jackline run`, with our hooks for this run only.

use jackline_host::worker::{WorkerConversation, WorkerProgram, WorkerReport, WorkerStart};
use jackline_journal::write_private;
use serde_json::Value;

use super::CLIENT;
use super::CLIENT_ID;
use super::settings::{add_hooks, hooks_for};
use crate::hook_environment::RUN_VARIABLE;
use crate::hook_line::quote_shell_word;
use crate::installed_client::InstalledClient;

/// The settings file with our hooks, in the directory of the session.
const SETTINGS_FILE: &str = "claude-settings.json";

/// The client's own retries take minutes, and the supervisor decides which engine is tried next.
const RETRIES_VARIABLE: &str = "CLAUDE_CODE_MAX_RETRIES=2";

/// Tools that the client runs without asking. The guards decide on each call.
const ALLOWED_TOOLS: &str =
    "Bash,Read,Write,Edit,MultiEdit,NotebookEdit,Glob,Grep,LS,TodoWrite,Task,Agent";

/// The client prints this if it does not find the conversation.
const NO_CONVERSATION: &str = "No conversation found with session ID";

/// Claude Code, run without a person.
pub(super) struct ClaudeWorker;

impl WorkerProgram for ClaudeWorker {
    fn name(&self) -> &'static str {
        CLIENT_ID
    }

    fn key_variables(&self) -> &'static [&'static str] {
        &["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"]
    }

    fn check_installed(&self) -> Result<(), String> {
        InstalledClient::find(&CLIENT, None).map(drop).map_err(|error| error.to_string())
    }

    fn command_line(&self, start: &WorkerStart<'_>) -> Result<Vec<String>, String> {
        let client = InstalledClient::find(&CLIENT, None).map_err(|error| error.to_string())?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let own = own.to_str().ok_or("the path of this program is not UTF-8")?;
        let hooks = hooks_for(client.version, &quote_shell_word(own));
        let settings = add_hooks("", &hooks).map_err(|error| error.to_string())?;
        let file = start.directory.join(SETTINGS_FILE);
        write_private(&file, settings.as_bytes()).map_err(|error| error.to_string())?;
        let text = |path: &std::path::Path| path.display().to_string();
        let mut words = vec![
            "env".to_owned(),
            format!("{RUN_VARIABLE}={}", start.session),
            RETRIES_VARIABLE.to_owned(),
            text(&client.program),
            "--print".to_owned(),
            "--settings".to_owned(),
            text(&file),
            "--output-format".to_owned(),
            "json".to_owned(),
            "--allowedTools".to_owned(),
            ALLOWED_TOOLS.to_owned(),
        ];
        if let Some(model) = start.model {
            words.extend(["--model".to_owned(), model.to_owned()]);
        }
        let (option, conversation) = match start.conversation {
            WorkerConversation::Resumed(id) => ("--resume", id),
            WorkerConversation::New(id) => ("--session-id", id),
        };
        // `--` separates the prompt from the list of tools.
        words.extend([option, conversation, "--"].map(str::to_owned));
        Ok(words)
    }

    /// The last line of JSON has the result and the status of the provider.
    fn parse_output(&self, output: &str) -> Option<WorkerReport> {
        let last = output.lines().rev().find(|line| line.trim_start().starts_with('{'))?;
        let answer: Value = serde_json::from_str(last).ok()?;
        let text = |name: &str| answer.get(name)?.as_str().map(ToOwned::to_owned);
        if text("type").as_deref() != Some("result") {
            return None;
        }
        let status = answer.get("api_error_status").and_then(Value::as_u64);
        Some(WorkerReport {
            conversation: text("session_id"),
            text: text("result"),
            failed: answer.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            status: status.and_then(|status| u16::try_from(status).ok()),
            code: text("api_error_type").unwrap_or_default(),
            context_full: text("terminal_reason").as_deref() == Some("prompt_too_long"),
        })
    }

    fn is_conversation_lost(&self, text: &str) -> bool {
        text.contains(NO_CONVERSATION)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_json_line_of_the_output_is_the_report() {
        // Claude Code 2.1.325 prints this if its provider refuses the request.
        let answer = json!({
            "type": "result", "subtype": "success", "is_error": true, "session_id": "c1",
            "terminal_reason": "api_error", "api_error_status": 529,
            "api_error_type": "overloaded_error", "result": "API Error: 529",
        });
        let expected = WorkerReport {
            conversation: Some("c1".to_owned()),
            text: Some("API Error: 529".to_owned()),
            failed: true,
            status: Some(529),
            code: "overloaded_error".to_owned(),
            context_full: false,
        };
        assert_eq!(ClaudeWorker.parse_output(&format!("{{}}\n{answer}\nbye\n")), Some(expected));
        let full = json!({"type": "result", "terminal_reason": "prompt_too_long"}).to_string();
        assert!(ClaudeWorker.parse_output(&full).is_some_and(|report| report.context_full));
        for text in ["", "done", "{\"type\":\"assistant\"}", "{not json"] {
            assert_eq!(ClaudeWorker.parse_output(text), None, "{text}");
        }
    }
}
