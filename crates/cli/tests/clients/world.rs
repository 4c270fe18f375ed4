//! A scratch workspace with a definition, the client in it, and what it left behind.

use std::path::PathBuf;
use std::process::Command;

use jackline_clients::claude::settings::{Hook, PINNED, hooks_for, shell_word};
use jackline_clients::live::{Run, SUBAGENT, Scratch, Seen, subagent};
use jackline_model::scripted::{Script, Step};
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

/// What is installed for the client, with the program in it that is the guard.
pub(crate) fn hooks(guard: &str) -> Vec<Hook> {
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
    pub(crate) fn play_guarded(&self, hooks: &[Hook], script: Script) -> Seen {
        self.scratch.install(hooks).unwrap();
        self.play_installed(script)
    }

    /// Runs it with what is installed.
    pub(crate) fn play_installed(&self, script: Script) -> Seen {
        let seen = Run::new(&client(), &self.scratch, script).play().unwrap();
        assert!(!seen.timed_out, "{}", story(&seen));
        seen
    }

    /// A guard that is the real one, with something done first where a call names
    /// `trigger`.
    pub(crate) fn wrapped(&self, trigger: &str, first: &str) -> Vec<Hook> {
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

    /// Runs our own program here: its exit status and what it printed.
    pub(crate) fn jackline(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(JACKLINE);
        self.scratch.enter(&mut command);
        let output = command.args(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }

    /// Every journal a test writes is checked and replayed.
    pub(crate) fn prove(&self) {
        for command in ["verify", "replay"] {
            let (code, text) = self.jackline(&[command, "--all"]);
            assert_eq!(code, Some(0), "{command}: {text}");
        }
    }
}

pub(crate) fn bash(command: &str) -> Step {
    Step::call("Bash", json!({ "command": command, "description": "a step of the script" }))
}

/// Who acts: the agent itself, or a sub-agent in the background.
pub(crate) const ACTORS: [(&str, Option<&str>); 2] = [("main", None), ("sub", Some(SUBAGENT))];

/// Both of them do what they may and then what they may not.
pub(crate) fn script_of_both() -> Script {
    let main = [bash("touch witness-main"), subagent(), bash("touch canary-main")];
    let sub = [bash("touch witness-sub"), bash("touch canary-sub")];
    Script::new(main).part(SUBAGENT, sub)
}

/// What happened, for whoever reads that a test failed.
pub(crate) fn story(seen: &Seen) -> String {
    let kinds: Vec<_> = seen.requests.iter().map(|request| &request.kind).collect();
    let informs = |line: &&Value| line.get("subtype") == Some(&"informational".into());
    let said: Vec<&Value> = seen.said.iter().filter(informs).collect();
    let results = ACTORS.map(|(name, marker)| (name, seen.results(marker)));
    format!("{}\n{results:#?}\n{kinds:?}\n{said:#?}", seen.summary())
}
