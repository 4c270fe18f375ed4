//! The hooks that we install in Claude Code, and which version supports which hook.

use serde_json::{Value, json};

use crate::claude::CLIENT_ID;
use crate::hook_line::{plain_command, sealed_command};
use crate::installation::HookEntry;
use crate::version::ClientVersion;

/// How long the client waits for an answer. Our own deadline is shorter.
const TIMEOUT_SECONDS: u32 = 30;

/// The same while the client exits: a person who quits should not wait long.
const EXIT_TIMEOUT_SECONDS: u32 = 10;

/// The agent and the person read this if the guard gives no sealed answer. The seal proves that an
/// answer came from the guard.
///
/// The settings may be shared with people who have no `jackline` command, so the text also has a
/// way out that needs none.
const BROKEN: &str = "jackline, the guard of this workspace, is broken or missing. The call is not \
the cause, and it was not run. Only a person can change that. To install the guard: \
'cargo install --path crates/cli --locked' in a clone of Jackline. To work without it: set \
disableAllHooks to true in .claude/settings.local.json, then start a new session. If the command \
jackline runs: 'jackline off --for 30m --why ...' switches the guard off for a while, and \
'jackline init claude --uninstall' removes it.";

/// The same for changed settings. No call waits for that answer.
const BROKEN_AT_SETTINGS: &str = "jackline, the guard of this workspace, is broken or missing, so \
this session keeps its current settings. A person can start a new session to use the new settings, \
or remove the guard with 'jackline init claude --uninstall'.";

/// The version with which we tested every hook.
pub const TESTED_VERSION: ClientVersion = ClientVersion(2, 1, 325);

/// Since this version the client denies the call if the guard is killed.
pub const FAILS_CLOSED_SINCE: ClientVersion = ClientVersion(2, 1, 295);

/// An older version ignores the whole file if it does not recognise one event.
const SKIPS_UNKNOWN_SINCE: ClientVersion = ClientVersion(2, 1, 101);

/// The events, in the order in which we write them.
const EVENTS: [ClaudeEvent; 12] = [
    ClaudeEvent::new("SessionStart", ClientVersion(1, 0, 62)),
    ClaudeEvent::new("UserPromptSubmit", ClientVersion(1, 0, 54)),
    ClaudeEvent::of_tools("PreToolUse", ClientVersion(1, 0, 38)),
    ClaudeEvent::of_tools("PostToolUse", ClientVersion(1, 0, 38)),
    ClaudeEvent::of_tools("PostToolUseFailure", ClientVersion(2, 1, 39)),
    ClaudeEvent::new("PostToolBatch", ClientVersion(2, 1, 118)),
    ClaudeEvent::of_tools("PermissionDenied", ClientVersion(2, 1, 89)),
    ClaudeEvent::new("Stop", ClientVersion(1, 0, 38)),
    ClaudeEvent::new("SubagentStart", ClientVersion(2, 0, 43)),
    ClaudeEvent::new("SubagentStop", ClientVersion(1, 0, 41)),
    ClaudeEvent::new("ConfigChange", SKIPS_UNKNOWN_SINCE),
    ClaudeEvent::new("SessionEnd", ClientVersion(1, 0, 85)),
];

/// The event that decides whether a call may run.
const GATE_EVENT: &str = "PreToolUse";

/// The event that decides whether the session may load settings without the guard.
const SETTINGS_EVENT: &str = "ConfigChange";

/// The event for which the client waits while it exits.
const EXIT_EVENT: &str = "SessionEnd";

struct ClaudeEvent {
    name: &'static str,
    since: ClientVersion,
    /// Whether the event is about tools. Our hook then applies to all tools.
    of_tools: bool,
}

impl ClaudeEvent {
    const fn new(name: &'static str, since: ClientVersion) -> Self {
        Self { name, since, of_tools: false }
    }

    const fn of_tools(name: &'static str, since: ClientVersion) -> Self {
        Self { name, since, of_tools: true }
    }
}

/// The hooks for a version of the client; `program` is one quoted word of a shell command.
pub fn hooks_for(version: ClientVersion, program: &str) -> Vec<HookEntry> {
    EVENTS
        .iter()
        .filter(|event| version >= event.since || version >= SKIPS_UNKNOWN_SINCE)
        .map(|event| HookEntry {
            event: event.name,
            matcher: event.of_tools.then_some("*"),
            handler: hook_handler(event.name, program),
        })
        .collect()
}

fn hook_handler(event: &str, program: &str) -> Value {
    let timeout = if event == EXIT_EVENT { EXIT_TIMEOUT_SECONDS } else { TIMEOUT_SECONDS };
    let text = match event {
        GATE_EVENT => BROKEN,
        SETTINGS_EVENT => BROKEN_AT_SETTINGS,
        _ => {
            return json!({ "type": "command", "command": plain_command(program, CLIENT_ID), "timeout": timeout });
        }
    };
    let command = sealed_command(program, CLIENT_ID, text);
    json!({ "type": "command", "command": command, "timeout": timeout, "onFailure": "block" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook_line::{parse_program, quote_shell_word};

    fn events(version: ClientVersion) -> Vec<&'static str> {
        hooks_for(version, "jackline").iter().map(|hook| hook.event).collect()
    }

    #[test]
    fn an_old_version_gets_only_events_that_it_supports() {
        assert_eq!(events(TESTED_VERSION).len(), 12);
        assert_eq!(events(ClientVersion(2, 1, 101)).len(), 12, "this version skips unknown events");
        let older = events(ClientVersion(2, 1, 100));
        assert!(older.contains(&"PermissionDenied") && !older.contains(&"PostToolBatch"));
        assert!(!older.contains(&"ConfigChange"));
        let oldest = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop"];
        assert_eq!(events(ClientVersion(1, 0, 60)), oldest);
    }

    #[test]
    fn our_own_commands_are_recognised() {
        for program in ["jackline", "/opt/jackline", "/my tools/jackline", "/it's/jackline-2"] {
            for hook in hooks_for(TESTED_VERSION, &quote_shell_word(program)) {
                assert_eq!(parse_program(hook.command(), CLIENT_ID).as_deref(), Some(program));
            }
        }
    }
}
