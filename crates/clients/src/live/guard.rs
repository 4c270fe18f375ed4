//! The guard as the client's settings know it.

use std::path::Path;

use serde_json::{Map, Value, json};

/// What the client waits for an answer.
const TIMEOUT_SECONDS: u64 = 30;

/// Events beside the gate itself.
pub(crate) const OTHER_EVENTS: [&str; 10] = [
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PermissionDenied",
    "SessionEnd",
];

/// Said where no answer of ours came.
const BROKEN: &str = "jackline, the guard, is broken or missing, not the call; nothing was run. \
A person can reinstall it, take it out with jackline init claude --uninstall, or pass for a while \
with jackline off --for 30m --why ...";

/// The command lines that are installed, and how long the client waits for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// For the gate.
    pub gate: String,
    /// For all other events.
    pub rest: String,
    /// What the client waits.
    pub timeout_seconds: u64,
}

impl Guard {
    /// The lines of an installation of this program.
    pub fn of(program: &Path) -> Self {
        let rest = format!("{} hook claude", quote(&program.display().to_string()));
        // Only a sealed answer is believed: the client lets the tool run after
        // anything that it can't read.
        let gate = format!(
            "r=$({rest} --sealed); case $r in jackline:1:*) printf %s \"${{r#jackline:1:}}\";; \
             *) echo \"{BROKEN}\" >&2; exit 2;; esac"
        );
        Self { gate, rest, timeout_seconds: TIMEOUT_SECONDS }
    }

    /// The client's settings with these lines.
    pub fn settings(&self) -> Value {
        let timeout = self.timeout_seconds;
        let group = |hook: Value| json!([{ "matcher": "*", "hooks": [hook] }]);
        let mut hooks = Map::new();
        // A guard that fails elsewhere must not end the run; the gate stays shut.
        let gate = json!({
            "type": "command", "command": self.gate, "timeout": timeout, "onFailure": "block",
        });
        hooks.insert("PreToolUse".to_owned(), group(gate));
        for event in OTHER_EVENTS {
            let hook = json!({ "type": "command", "command": self.rest, "timeout": timeout });
            hooks.insert(event.to_owned(), group(hook));
        }
        json!({ "hooks": hooks })
    }
}

/// A word for the shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
