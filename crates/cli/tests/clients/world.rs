//! A scratch workspace with a definition, the real client that runs in it, and access to the state
//! that a run leaves.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use jackline_clients::claude::CLIENT;
use jackline_clients::claude::settings::{TESTED_VERSION, hooks_for};
use jackline_clients::hook_line::quote_shell_word;
use jackline_clients::installation::HookEntry;
use jackline_model::scripted::{ModelScript, ScriptStep};
use jackline_setup::live::{LiveOutcome, LiveRun, SUBAGENT_PROMPT, ScratchHome};
use serde_json::{Value, json};

pub(crate) use crate::person_program::JACKLINE;
use crate::person_program::install_person_program;

/// Returns the path of the client program.
pub(crate) fn client_program() -> PathBuf {
    let named = std::env::vars_os().find(|(name, _)| name == "JACKLINE_TEST_CLAUDE");
    let Some((_, program)) = named else {
        panic!("JACKLINE_TEST_CLAUDE is not set; run `cargo xtask test --clients`");
    };
    PathBuf::from(program)
}

/// Starts a sub-agent. The client runs it in the background.
pub(crate) fn start_subagent() -> ScriptStep {
    let call = CLIENT.live.subagent_call(SUBAGENT_PROMPT);
    ScriptStep::call(call.tool, call.input)
}

/// The hook entries that Jackline installs, with `guard` as the guard program.
pub(crate) fn guard_hooks(guard: &str) -> Vec<HookEntry> {
    hooks_for(TESTED_VERSION, &quote_shell_word(guard))
}

/// A scratch workspace in which the real client runs.
pub(crate) struct ClientWorld {
    pub(crate) scratch: ScratchHome,
}

impl ClientWorld {
    /// Creates a workspace with `definition` as its `jackline.yaml`.
    pub(crate) fn new(definition: &str) -> Self {
        install_person_program();
        let scratch = ScratchHome::new().unwrap();
        scratch.write("jackline.yaml", definition).unwrap();
        Self { scratch }
    }

    /// Runs the client with the real guard.
    pub(crate) fn play(&self, script: ModelScript) -> LiveOutcome {
        self.play_guarded(&guard_hooks(JACKLINE), script)
    }

    /// Runs the client with the given hooks.
    pub(crate) fn play_guarded(&self, hooks: &[HookEntry], script: ModelScript) -> LiveOutcome {
        self.scratch.install(CLIENT.installation, hooks).unwrap();
        self.play_installed(script)
    }

    /// Runs the client with the hooks that are installed.
    pub(crate) fn play_installed(&self, script: ModelScript) -> LiveOutcome {
        play_to_end(LiveRun::new(&CLIENT, &client_program(), &self.scratch, script))
    }

    /// Runs the client with the real guard and with the MCP servers of `.mcp.json`.
    pub(crate) fn play_with_servers(
        &self,
        allowed_tools: &str,
        script: ModelScript,
    ) -> LiveOutcome {
        self.scratch.install(CLIENT.installation, &guard_hooks(JACKLINE)).unwrap();
        let client = client_program();
        let mut run = LiveRun::new(&CLIENT, &client, &self.scratch, script);
        (run.allowed_tools, run.servers) = (allowed_tools, Some(".mcp.json"));
        play_to_end(run)
    }

    /// Resumes the latest session with a new prompt.
    pub(crate) fn resume_and_play(&self, prompt: &str, script: ModelScript) -> LiveOutcome {
        let client = client_program();
        let mut run = LiveRun::new(&CLIENT, &client, &self.scratch, script);
        (run.prompt, run.resumes) = (prompt, true);
        play_to_end(run)
    }

    /// Hooks that run the command `first` when a call contains `trigger`, and then the real guard.
    pub(crate) fn wrapper_hooks(&self, trigger: &str, first: &str) -> Vec<HookEntry> {
        let text = format!(
            "#!/bin/sh\ninput=$(cat)\ncase $input in *{trigger}*) {first};; esac\n\
             printf %s \"$input\" | '{JACKLINE}' \"$@\"\n"
        );
        let program = self.scratch.write_program("jackline-wrapped", &text).unwrap();
        guard_hooks(program.to_str().unwrap())
    }

    /// The client, started with all hooks disabled.
    pub(crate) fn unguarded_client(&self) -> PathBuf {
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exec '{0}' --version\n\
             exec '{0}' --settings '{{\"disableAllHooks\":true}}' \"$@\"\n",
            client_program().display()
        );
        self.scratch.write_program("claude", &text).unwrap()
    }

    /// Runs `jackline` as a person would; returns the exit status and the output.
    pub(crate) fn jackline(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(JACKLINE);
        self.scratch.configure_command(&mut command);
        let output = command.args(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }

    /// Runs `jackline` as a person would, and expects success.
    pub(crate) fn run_as_person(&self, words: &[&str]) {
        let (code, text) = self.jackline(words);
        assert_eq!(code, Some(0), "{words:?}: {text}");
    }

    /// Returns the status of the latest session.
    pub(crate) fn status(&self) -> Value {
        self.status_by(&["status", "--json"])
    }

    /// Returns the status of one session.
    pub(crate) fn status_of(&self, session: &str) -> Value {
        self.status_by(&["status", session, "--json"])
    }

    fn status_by(&self, words: &[&str]) -> Value {
        let (code, text) = self.jackline(words);
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }

    /// Returns the stop code of the latest session.
    pub(crate) fn stop_code(&self) -> Value {
        self.status().pointer("/summary/stop").cloned().unwrap_or_default()
    }

    /// Returns each entry of the safety log as `type: action`.
    pub(crate) fn safety_log_entries(&self) -> Vec<String> {
        let log = self.scratch.read(".jackline/safety_log.json").unwrap();
        let log: Value = serde_json::from_str(&log).unwrap();
        let events = log.get("events").and_then(Value::as_array).unwrap();
        let field = |event: &Value, name: &str| {
            event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let line = |event| format!("{}: {}", field(event, "type"), field(event, "action_taken"));
        events.iter().map(line).collect()
    }

    /// Checks and replays every journal. Each test does this at its end.
    pub(crate) fn verify_and_replay(&self) {
        for command in ["verify", "replay"] {
            let (code, text) = self.jackline(&[command, "--all"]);
            assert_eq!(code, Some(0), "{command}: {text}");
        }
    }
}

fn play_to_end(run: LiveRun<'_>) -> LiveOutcome {
    let seen = run.run_client().unwrap();
    assert!(!seen.timed_out, "{}", describe_outcome(&seen));
    seen
}

pub(crate) fn bash(command: &str) -> ScriptStep {
    and_bash(ScriptStep::default(), command)
}

/// Adds a command to the same message.
pub(crate) fn and_bash(step: ScriptStep, command: &str) -> ScriptStep {
    let input = json!({ "command": command, "description": "a step of the script" });
    step.and_call("Bash", input)
}

/// A command that ends only after the client has written the call to its transcript. The client
/// writes the transcript, and with it the token usage, asynchronously.
pub(crate) fn recorded_call(command: &str) -> ScriptStep {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let marker = format!("recorded-{}", CALLS.fetch_add(1, Ordering::Relaxed));
    let is_recorded = format!("grep -rq {marker} \"$HOME/.claude/projects\"");
    bash(&format!("{command}; until {is_recorded}; do sleep 0.02; done"))
}

/// The actors: the main agent, and a sub-agent in the background.
pub(crate) const ACTORS: [(&str, Option<&str>); 2] =
    [("main", None), ("sub", Some(SUBAGENT_PROMPT))];

/// Both actors run an allowed command and then a denied command.
pub(crate) fn main_and_subagent_script() -> ModelScript {
    let main = [bash("touch witness-main"), start_subagent(), bash("touch canary-main")];
    let sub = [bash("touch witness-sub"), bash("touch canary-sub")];
    ModelScript::new(main).part(SUBAGENT_PROMPT, sub)
}

/// Returns whether the client reports that a hook stopped its run.
pub(crate) fn was_halted(seen: &LiveOutcome) -> bool {
    let halted = |line: &Value| line.get("terminal_reason") == Some(&"hook_stopped".into());
    seen.output_lines.iter().any(halted)
}

/// Describes a run for the message of a failed assertion.
pub(crate) fn describe_outcome(seen: &LiveOutcome) -> String {
    let kinds: Vec<_> = seen.requests.iter().map(|request| &request.kind).collect();
    let is_informational = |line: &&Value| line.get("subtype") == Some(&"informational".into());
    let messages: Vec<&Value> = seen.output_lines.iter().filter(is_informational).collect();
    let results = ACTORS.map(|(name, marker)| (name, seen.tool_results(marker)));
    format!("{}\n{results:#?}\n{kinds:?}\n{messages:#?}", seen.summary())
}
