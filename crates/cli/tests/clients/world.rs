//! A scratch workspace with a definition, the client in it, and what it left behind.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use jackline_clients::claude::CLIENT;
use jackline_clients::claude::settings::{PINNED, hooks_for};
use jackline_clients::hook_line::shell_word;
use jackline_clients::installation::HookEntry;
use jackline_host::agent_above;
use jackline_model::scripted::{Script, Step};
use jackline_setup::live::{Run, SUBAGENT, Scratch, Seen};
use serde_json::{Value, json};

pub(crate) const JACKLINE: &str = env!("CARGO_BIN_EXE_jackline");

/// The client's program.
pub(crate) fn client() -> PathBuf {
    let named = std::env::vars_os().find(|(name, _)| name == "JACKLINE_TEST_CLAUDE");
    let Some((_, program)) = named else {
        panic!("JACKLINE_TEST_CLAUDE names no client; use `cargo xtask test --clients`");
    };
    PathBuf::from(program)
}

/// Starts a sub-agent, which the client does in the background.
pub(crate) fn subagent() -> Step {
    let call = CLIENT.live.subagent_call(SUBAGENT);
    Step::call(call.tool, call.input)
}

/// What is installed for the client, with the program in it that is the guard.
pub(crate) fn hooks(guard: &str) -> Vec<HookEntry> {
    hooks_for(PINNED, &shell_word(guard))
}

pub(crate) struct World {
    pub(crate) scratch: Scratch,
}

impl World {
    /// A workspace whose `jackline.yaml` holds `definition`.
    pub(crate) fn new(definition: &str) -> Self {
        let scratch = Scratch::new().unwrap();
        scratch.write("jackline.yaml", definition).unwrap();
        Self { scratch }
    }

    /// Runs the client with the real guard.
    pub(crate) fn play(&self, script: Script) -> Seen {
        self.play_guarded(&hooks(JACKLINE), script)
    }

    /// Runs it with another one.
    pub(crate) fn play_guarded(&self, hooks: &[HookEntry], script: Script) -> Seen {
        self.scratch.install(CLIENT.installation, hooks).unwrap();
        self.play_installed(script)
    }

    /// Runs it with what is installed.
    pub(crate) fn play_installed(&self, script: Script) -> Seen {
        to_its_end(Run::new(&CLIENT, &client(), &self.scratch, script))
    }

    /// Runs it with the real guard, and with the MCP servers that `.mcp.json` names.
    pub(crate) fn play_with_servers(&self, allowed_tools: &str, script: Script) -> Seen {
        self.scratch.install(CLIENT.installation, &hooks(JACKLINE)).unwrap();
        let client = client();
        let mut run = Run::new(&CLIENT, &client, &self.scratch, script);
        (run.allowed_tools, run.servers) = (allowed_tools, Some(".mcp.json"));
        to_its_end(run)
    }

    /// A person comes back to the latest session, and says something.
    pub(crate) fn play_on(&self, prompt: &str, script: Script) -> Seen {
        let client = client();
        let mut run = Run::new(&CLIENT, &client, &self.scratch, script);
        (run.prompt, run.resumes) = (prompt, true);
        to_its_end(run)
    }

    /// A guard that is the real one, with something done first where a call names
    /// `trigger`.
    pub(crate) fn wrapped(&self, trigger: &str, first: &str) -> Vec<HookEntry> {
        let text = format!(
            "#!/bin/sh\ninput=$(cat)\ncase $input in *{trigger}*) {first};; esac\n\
             printf %s \"$input\" | '{JACKLINE}' \"$@\"\n"
        );
        let program = self.scratch.write_program("jackline-wrapped", &text).unwrap();
        hooks(program.to_str().unwrap())
    }

    /// The client, told to run no hooks.
    pub(crate) fn unguarded_client(&self) -> PathBuf {
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exec '{0}' --version\n\
             exec '{0}' --settings '{{\"disableAllHooks\":true}}' \"$@\"\n",
            client().display()
        );
        self.scratch.write_program("claude", &text).unwrap()
    }

    /// Runs our own program here, as a person: its exit status and what it printed.
    pub(crate) fn jackline(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = match agent_above() {
            None => Command::new(JACKLINE),
            // Where an agent runs these tests, its commands see nobody above them.
            Some(_) => {
                let mut command = Command::new("/usr/bin/unshare");
                command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child"]);
                command.args(["--mount-proc", JACKLINE]);
                command
            }
        };
        self.scratch.enter(&mut command);
        let output = command.args(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }

    /// The same, where it has to work.
    pub(crate) fn person(&self, words: &[&str]) {
        let (code, text) = self.jackline(words);
        assert_eq!(code, Some(0), "{words:?}: {text}");
    }

    /// Where the latest session stands.
    pub(crate) fn status(&self) -> Value {
        self.status_by(&["status", "--json"])
    }

    /// Where a session stands.
    pub(crate) fn status_of(&self, session: &str) -> Value {
        self.status_by(&["status", session, "--json"])
    }

    fn status_by(&self, words: &[&str]) -> Value {
        let (code, text) = self.jackline(words);
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }

    /// The code the latest session ended with.
    pub(crate) fn stop_code(&self) -> Value {
        self.status().pointer("/summary/stop").cloned().unwrap_or_default()
    }

    /// What the safety log says: what was found, and what was done.
    pub(crate) fn safety(&self) -> Vec<String> {
        let log = self.scratch.read(".jackline/safety_log.json").unwrap();
        let log: Value = serde_json::from_str(&log).unwrap();
        let events = log.get("events").and_then(Value::as_array).unwrap();
        let word = |event: &Value, name: &str| {
            event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let line = |event| format!("{}: {}", word(event, "type"), word(event, "action_taken"));
        events.iter().map(line).collect()
    }

    /// Every journal a test writes is checked and replayed.
    pub(crate) fn prove(&self) {
        for command in ["verify", "replay"] {
            let (code, text) = self.jackline(&[command, "--all"]);
            assert_eq!(code, Some(0), "{command}: {text}");
        }
    }
}

fn to_its_end(run: Run<'_>) -> Seen {
    let seen = run.play().unwrap();
    assert!(!seen.timed_out, "{}", story(&seen));
    seen
}

pub(crate) fn bash(command: &str) -> Step {
    and_bash(Step::default(), command)
}

/// One more command in the same message.
pub(crate) fn and_bash(step: Step, command: &str) -> Step {
    let input = json!({ "command": command, "description": "a step of the script" });
    step.and_call("Bash", input)
}

/// A command that is over when the client has written down that it was called, and
/// so what the model's answer took: it does that in its own time.
pub(crate) fn told_call(command: &str) -> Step {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let mark = format!("told-{}", CALLS.fetch_add(1, Ordering::Relaxed));
    let told = format!("grep -rq {mark} \"$HOME/.claude/projects\"");
    bash(&format!("{command}; until {told}; do sleep 0.02; done"))
}

/// Who acts: the agent itself, or a sub-agent in the background.
pub(crate) const ACTORS: [(&str, Option<&str>); 2] = [("main", None), ("sub", Some(SUBAGENT))];

/// Both of them do what they may and then what they may not.
pub(crate) fn script_of_both() -> Script {
    let main = [bash("touch witness-main"), subagent(), bash("touch canary-main")];
    let sub = [bash("touch witness-sub"), bash("touch canary-sub")];
    Script::new(main).part(SUBAGENT, sub)
}

/// Whether the client says that the guard has ended its run.
pub(crate) fn was_halted(seen: &Seen) -> bool {
    let halted = |line: &Value| line.get("terminal_reason") == Some(&"hook_stopped".into());
    seen.said.iter().any(halted)
}

/// What happened, for whoever reads that a test failed.
pub(crate) fn story(seen: &Seen) -> String {
    let kinds: Vec<_> = seen.requests.iter().map(|request| &request.kind).collect();
    let informs = |line: &&Value| line.get("subtype") == Some(&"informational".into());
    let said: Vec<&Value> = seen.said.iter().filter(informs).collect();
    let results = ACTORS.map(|(name, marker)| (name, seen.results(marker)));
    format!("{}\n{results:#?}\n{kinds:?}\n{said:#?}", seen.summary())
}
