//! What Claude Code is told to run, and which of it a version understands.

use serde_json::{Value, json};

use crate::claude::NAME;
use crate::hook_line::{plain_line, sealed_line};
use crate::installation::HookEntry;
use crate::version::Version;

/// How long the client waits for an answer. Ours has a deadline below this.
const TIMEOUT_SECONDS: u32 = 30;

/// The same when the client is about to leave: who quits does not like to wait.
const LEAVING_SECONDS: u32 = 10;

/// What the model and the person read where there is no answer under the seal.
const BROKEN: &str = "jackline, the guard of this workspace, is broken or missing; nothing is wrong \
with this call, and nothing was run. A person can install it again, take it out with \
'jackline init claude --uninstall', or pass for a while with 'jackline off --for 30m --why ...'.";

/// The same where settings have changed, which no call waits for.
const BROKEN_AT_SETTINGS: &str = "jackline, the guard of this workspace, is broken or missing, so \
this session keeps the settings it has. A person can start a new one for them, or take the guard \
out with 'jackline init claude --uninstall'.";

/// The version whose hooks were tried, one by one.
pub const PINNED: Version = Version(2, 1, 325);

/// Since when a guard that is killed shuts the gate.
pub const SHUTS_SINCE: Version = Version(2, 1, 295);

/// Before this one, a single event that a version does not know makes it
/// ignore the whole file.
const TOLERANT_SINCE: Version = Version(2, 1, 101);

/// The events, in the order in which they are written.
const EVENTS: [Event; 12] = [
    Event::new("SessionStart", Version(1, 0, 62)),
    Event::new("UserPromptSubmit", Version(1, 0, 54)),
    Event::of_tools("PreToolUse", Version(1, 0, 38)),
    Event::of_tools("PostToolUse", Version(1, 0, 38)),
    Event::of_tools("PostToolUseFailure", Version(2, 1, 39)),
    Event::new("PostToolBatch", Version(2, 1, 118)),
    Event::of_tools("PermissionDenied", Version(2, 1, 89)),
    Event::new("Stop", Version(1, 0, 38)),
    Event::new("SubagentStart", Version(2, 0, 43)),
    Event::new("SubagentStop", Version(1, 0, 41)),
    Event::new("ConfigChange", TOLERANT_SINCE),
    Event::new("SessionEnd", Version(1, 0, 85)),
];

/// The one that decides whether a call may run.
const GATE: &str = "PreToolUse";

/// The one that decides whether the settings with the guard in them may go.
const SETTINGS_GATE: &str = "ConfigChange";

/// The one at which the client waits on its way out.
const LEAVING: &str = "SessionEnd";

struct Event {
    name: &'static str,
    since: Version,
    /// Whether it is about a tool, and wants to be asked about all of them.
    of_tools: bool,
}

impl Event {
    const fn new(name: &'static str, since: Version) -> Self {
        Self { name, since, of_tools: false }
    }

    const fn of_tools(name: &'static str, since: Version) -> Self {
        Self { name, since, of_tools: true }
    }
}

/// What is installed for a version; `program` is a word of a shell line.
pub fn hooks_for(version: Version, program: &str) -> Vec<HookEntry> {
    EVENTS
        .iter()
        .filter(|event| version >= event.since || version >= TOLERANT_SINCE)
        .map(|event| HookEntry {
            event: event.name,
            matcher: event.of_tools.then_some("*"),
            handler: handler(event.name, program),
        })
        .collect()
}

fn handler(event: &str, program: &str) -> Value {
    let timeout = if event == LEAVING { LEAVING_SECONDS } else { TIMEOUT_SECONDS };
    let text = match event {
        GATE => BROKEN,
        SETTINGS_GATE => BROKEN_AT_SETTINGS,
        _ => {
            return json!({ "type": "command", "command": plain_line(program, NAME), "timeout": timeout });
        }
    };
    let command = sealed_line(program, NAME, text);
    json!({ "type": "command", "command": command, "timeout": timeout, "onFailure": "block" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook_line::{program_of, shell_word};

    fn events(version: Version) -> Vec<&'static str> {
        hooks_for(version, "jackline").iter().map(|hook| hook.event).collect()
    }

    #[test]
    fn an_old_version_is_told_nothing_that_it_does_not_know() {
        assert_eq!(events(PINNED).len(), 12);
        assert_eq!(events(Version(2, 1, 101)).len(), 12, "unknown events are passed over");
        let older = events(Version(2, 1, 100));
        assert!(older.contains(&"PermissionDenied") && !older.contains(&"PostToolBatch"));
        assert!(!older.contains(&"ConfigChange"));
        let oldest = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop"];
        assert_eq!(events(Version(1, 0, 60)), oldest);
    }

    #[test]
    fn our_own_commands_are_known() {
        for program in ["jackline", "/opt/jackline", "/my tools/jackline", "/it's/jackline-2"] {
            for hook in hooks_for(PINNED, &shell_word(program)) {
                assert_eq!(program_of(hook.command(), NAME).as_deref(), Some(program));
            }
        }
    }
}
