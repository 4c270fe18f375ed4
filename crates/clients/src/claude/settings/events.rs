//! What Claude Code is told to run, and which of it a version understands.

use core::fmt;

use serde_json::{Value, json};

/// How long the client waits for an answer. Ours has a deadline below this.
const TIMEOUT_SECONDS: u32 = 30;

/// The same when the client is about to leave: who quits does not like to wait.
const LEAVING_SECONDS: u32 = 10;

/// What the gate prints before its answer.
pub const SEAL: &str = "jackline:1:";

/// What the model and the person read where there is no answer under the seal.
const BROKEN: &str = "jackline, the guard of this workspace, is broken or missing; nothing is wrong \
with this call, and nothing was run. A person can install it again, take it out with \
'jackline init claude --uninstall', or pass for a while with 'jackline off --for 30m --why ...'.";

/// The same where settings have changed, which no call waits for.
const BROKEN_AT_SETTINGS: &str = "jackline, the guard of this workspace, is broken or missing, so \
this session keeps the settings it has. A person can start a new one for them, or take the guard \
out with 'jackline init claude --uninstall'.";

/// A version of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

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

/// One event with what is run at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// The event.
    pub event: &'static str,
    /// Which tools it is about, where it is about tools.
    pub matcher: Option<&'static str>,
    /// What is run, as the client's settings say it.
    pub handler: Value,
}

impl Hook {
    /// The line that is run.
    pub fn command(&self) -> &str {
        self.handler.get("command").and_then(Value::as_str).unwrap_or_default()
    }

    /// The entry in the list of an event.
    pub fn group(&self) -> Value {
        match self.matcher {
            Some(matcher) => json!({ "matcher": matcher, "hooks": [self.handler] }),
            None => json!({ "hooks": [self.handler] }),
        }
    }
}

/// What is installed for a version; `program` is a word of a shell line.
pub fn hooks_for(version: Version, program: &str) -> Vec<Hook> {
    EVENTS
        .iter()
        .filter(|event| version >= event.since || version >= TOLERANT_SINCE)
        .map(|event| Hook {
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
            return json!({ "type": "command", "command": plain_line(program), "timeout": timeout });
        }
    };
    let command = sealed_line(program, text);
    json!({ "type": "command", "command": command, "timeout": timeout, "onFailure": "block" })
}

fn plain_line(program: &str) -> String {
    format!("{program} hook claude")
}

/// The client lets a call run on any text that it can't read. So only an answer
/// that begins with our seal is handed on, and everything else is a refusal.
fn sealed_line(program: &str, text: &str) -> String {
    format!(
        "r=$({program} hook claude --sealed); case $r in {SEAL}*) printf %s \"${{r#{SEAL}}}\";; \
         *) echo \"{text}\" >&2; exit 2;; esac"
    )
}

/// The program in a command of somebody's settings that we wrote, now or in an
/// earlier version. The client removes marks that it does not know, so the
/// command itself has to tell.
pub fn program_of(command: &str) -> Option<String> {
    let command = command.trim();
    let inner = match command.strip_prefix("r=$(") {
        Some(rest) => rest.split_once(" --sealed)")?.0,
        None => command,
    };
    let word = inner.strip_suffix(" hook claude")?;
    let program = match word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(quoted) => quoted.replace(r"'\''", "'"),
        // Two words are somebody's own line around ours.
        None if word.contains(char::is_whitespace) => return None,
        None => word.to_owned(),
    };
    let name = program.rsplit('/').next()?;
    name.starts_with("jackline").then_some(program)
}

/// A text as one word of a shell line.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Version {
    /// Reads what `claude --version` prints.
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.split_whitespace().next()?;
        let core = word.trim_start_matches('v').split(['-', '+']).next()?;
        let mut numbers = core.split('.').map(|number| number.parse().ok());
        let version = Self(numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;
    use crate::live::Scratch;

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
    fn versions_are_read_tolerantly() {
        assert_eq!(Version::parse("2.1.325 (Claude Code)\n"), Some(PINNED));
        assert_eq!(Version::parse("v2.2.0-beta.1"), Some(Version(2, 2, 0)));
        for odd in ["", "claude", "2.1", "2.1.x", "2.1.3.4", "99999999999.1.1"] {
            assert_eq!(Version::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn our_own_commands_are_known_and_others_are_not() {
        for program in ["jackline", "/opt/jackline", "/my tools/jackline", "/it's/jackline-2"] {
            for hook in hooks_for(PINNED, &shell_word(program)) {
                assert_eq!(program_of(hook.command()).as_deref(), Some(program));
            }
        }
        let foreign = [
            "",
            "hook claude",
            "echo jackline",
            "other hook claude",
            "timeout 5 jackline hook claude",
            "jackline hook claude | tee log",
            "r=$(jackline hook claude)",
            "my-jackline/run hook claude",
        ];
        for command in foreign {
            assert_eq!(program_of(command), None, "{command}");
        }
    }

    #[test]
    fn words_of_a_shell_line_come_back_as_they_were() {
        for text in ["jackline", "/a b/c", "it's", "$(touch x)", "a;b", "`x`", "", "a\\b\"c", "ü"]
        {
            let line = format!("printf %s {}", shell_word(text));
            let said = Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
    }

    /// What the gate's line does with a guard that is this script.
    fn gate(script: &str) -> Output {
        let scratch = Scratch::new().unwrap();
        let text = format!("#!/bin/sh\n{script}\n");
        let guard = scratch.write_program("it's a jackline", &text).unwrap();
        let line = sealed_line(&shell_word(guard.to_str().unwrap()), BROKEN);
        Command::new("sh").args(["-c", &line]).output().unwrap()
    }

    #[test]
    fn only_an_answer_under_the_seal_is_handed_on() {
        for (script, answer) in [
            ("printf 'jackline:1:'", ""),
            (
                r#"printf '%s\n' 'jackline:1:{"a":"b $HOME \n * `x`"}'"#,
                r#"{"a":"b $HOME \n * `x`"}"#,
            ),
        ] {
            let said = gate(script);
            assert_eq!((said.status.code(), said.stderr.len()), (Some(0), 0), "{script}");
            assert_eq!(String::from_utf8(said.stdout).unwrap(), answer);
        }
    }

    #[test]
    fn whatever_else_a_guard_does_is_a_refusal_that_says_so() {
        for script in [
            "",
            "exit 0",
            "exit 1",
            "kill -9 $$",
            "echo garbage",
            "echo '{}'",
            "echo warning; printf 'jackline:1:'",
            "printf 'jackline:2:{}'",
            "printf jackline",
        ] {
            let said = gate(script);
            assert_eq!((said.status.code(), said.stdout.len()), (Some(2), 0), "{script}");
            let text = String::from_utf8(said.stderr).unwrap();
            assert!(text.contains(BROKEN), "{script}: {text}");
        }
        let missing = sealed_line("/nowhere/jackline", BROKEN);
        let said = Command::new("sh").args(["-c", &missing]).output().unwrap();
        assert_eq!(said.status.code(), Some(2));
    }
}
