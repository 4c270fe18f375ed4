//! The real client on a pseudo-terminal, with a person who answers its dialogs.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::Duration;

use jackline_clients::claude::CLIENT;
use jackline_model::scripted::{ModelScript, RecordedRequest, ScriptStep, ScriptedModel};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

use crate::world::{ClientWorld, JACKLINE, bash, client_program, guard_hooks};

const RULES: &str = "version: 1
mode: enforce
rules:
  - { name: ask-touch, command: touch, ask: A person decides., examples: { ask: [touch a] } }
";

/// The client wants a key that a person has approved.
const KEY: &str = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// The dialog ends with this word.
const DIALOG: &str = "proceed?";

const ESCAPE: &str = "\u{1b}";

/// How long the client and the scripted model live, and how often a condition is checked.
const LIFETIME: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const POLLS_MAX: usize = 600;

/// The client needs a moment between keys: it tells typed keys from pasted text by the time.
const KEY_INTERVAL: Duration = Duration::from_millis(300);

/// The client on its terminal.
pub(crate) struct Terminal<'a> {
    world: &'a ClientWorld,
    model: ScriptedModel,
    client: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    shown: String,
}

impl<'a> Terminal<'a> {
    /// Starts the client, which asks the model for the steps of the script.
    fn start(world: &'a ClientWorld, script: ModelScript) -> Self {
        Self::start_with(world, script, &[])
    }

    /// Starts the client with more environment variables.
    pub(crate) fn start_with(
        world: &'a ClientWorld,
        script: ModelScript,
        variables: &[(&str, &str)],
    ) -> Self {
        world.scratch.install(CLIENT.installation, &guard_hooks(JACKLINE)).unwrap();
        let model = ScriptedModel::start(script, LIFETIME).unwrap();
        let known = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
            "projects": { world.scratch.work().to_str().unwrap(): {
                "hasTrustDialogAccepted": true,
                "hasCompletedProjectOnboarding": true,
            } },
        });
        let home = world.scratch.home().join(".claude");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(".claude.json"), known.to_string()).unwrap();

        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        let size = Winsize { ws_row: 50, ws_col: 140, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        let clone_of = |fd: &OwnedFd| fd.try_clone().unwrap();
        // The terminal is the controlling one of the client, as in real life.
        let mut command = Command::new("/usr/bin/setsid");
        world.scratch.configure_command(&mut command);
        command.args(["--ctty", "--wait"]).arg(client_program());
        command.args(["--model", "claude-sonnet-4-5", "--permission-mode", "default"]);
        for (name, value) in [
            ("ANTHROPIC_BASE_URL", model.url().as_str()),
            ("ANTHROPIC_API_KEY", KEY),
            ("NO_PROXY", "127.0.0.1"),
            ("TERM", "xterm-256color"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ] {
            command.env(name, value);
        }
        command.envs(variables.iter().copied());
        command.stdin(clone_of(&slave)).stdout(clone_of(&slave)).stderr(slave);
        let mut reader = File::from(clone_of(&master));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = reader.read(&mut bytes)
                && sender.send(bytes.iter().take(read).copied().collect::<Vec<u8>>()).is_ok()
            {
            }
        });
        let client = command.spawn().unwrap();
        let keyboard = File::from(master);
        let mut terminal = Self { world, model, client, keyboard, output, shown: String::new() };
        terminal.wait_for_text("❯");
        terminal
    }

    fn press(&mut self, keys: &str) {
        sleep(KEY_INTERVAL);
        self.shown.clear();
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a prompt.
    pub(crate) fn prompt(&mut self, text: &str) {
        self.press(text);
        self.press("\r");
    }

    /// Waits until the client has shown a text since the last key.
    fn wait_for_text(&mut self, text: &str) {
        for _ in 0..POLLS_MAX {
            for bytes in self.output.try_iter() {
                self.shown.push_str(&String::from_utf8_lossy(&bytes));
            }
            if self.shown.contains(text) {
                return;
            }
            sleep(POLL_INTERVAL);
        }
        panic!("`{text}` did not appear: {}", self.shown);
    }

    /// Waits until the client asks about a call.
    fn wait_for_dialog(&mut self) {
        self.wait_for_text(DIALOG);
        let asked = questions(self.world, &[]);
        let in_client = asked.iter().map(|it| it.pointer("/waiting/in_client"));
        assert_eq!(in_client.collect::<Vec<_>>(), [Some(&Value::Bool(true))], "{asked:?}");
    }

    /// Waits until the model got this many requests.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        for _ in 0..POLLS_MAX {
            if self.model.requests().iter().filter(|it| it.is_of_part(None)).count() >= count {
                return;
            }
            sleep(POLL_INTERVAL);
        }
        panic!("the model did not get {count} requests: {}", self.shown);
    }

    /// The requests to the model, the oldest first.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.model.requests()
    }

    fn wait_for_end(&mut self) {
        for _ in 0..POLLS_MAX {
            if self.client.try_wait().unwrap().is_some() {
                return;
            }
            sleep(POLL_INTERVAL);
        }
        panic!("the client did not end: {}", self.shown);
    }

    pub(crate) fn leave(&mut self) {
        self.prompt("/exit");
        self.wait_for_end();
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        if self.client.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.client.kill();
            let _ = self.client.wait();
        }
    }
}

fn questions(world: &ClientWorld, more: &[&str]) -> Vec<Value> {
    let (code, text) = world.jackline(&[&["pending", "--json"], more].concat());
    assert_eq!(code, Some(0), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_no_in_the_dialog_ends_the_question_and_the_permission() {
    let world = ClientWorld::new(RULES);
    let noted = || ScriptStep::say("noted");
    let script = ModelScript::new([bash("touch canary"), noted(), bash("touch canary"), noted()]);
    let mut terminal = Terminal::start(&world, script);
    terminal.prompt("first");
    terminal.wait_for_dialog();
    // The person allows the call in another terminal, and then answers No in the dialog.
    let code = questions(&world, &[])[0]["code"].as_str().unwrap().to_owned();
    world.run_as_person(&["allow", &code]);
    terminal.press(ESCAPE);
    terminal.prompt("second");
    terminal.wait_for_requests(2);
    assert_eq!(questions(&world, &["--all"]), [] as [Value; 0], "the No ended the question");
    // Two prompts later, the model proposes the same call again: the client asks again.
    terminal.prompt("third");
    terminal.wait_for_dialog();
    assert!(!world.scratch.has_path("canary"), "the call ran although the person said No");
    // Without a permission, a No leaves no question either.
    terminal.press(ESCAPE);
    terminal.prompt("fourth");
    terminal.wait_for_requests(4);
    assert_eq!(questions(&world, &["--all"]), [] as [Value; 0]);
    terminal.leave();
    assert!(!world.scratch.has_path("canary"));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_yes_in_the_dialog_runs_the_call_once() {
    let world = ClientWorld::new(RULES);
    let script = ModelScript::new([bash("touch canary"), bash("touch canary")]);
    let mut terminal = Terminal::start(&world, script);
    terminal.prompt("first");
    terminal.wait_for_dialog();
    let code = questions(&world, &[])[0]["code"].as_str().unwrap().to_owned();
    world.run_as_person(&["allow", &code]);
    terminal.press("1");
    terminal.wait_for_requests(2);
    assert!(world.scratch.has_path("canary"));
    // The permission was for the call that ran, so the client asks about the next one.
    terminal.wait_for_dialog();
    terminal.press(ESCAPE);
    terminal.leave();
    assert_eq!(questions(&world, &["--all"]), [] as [Value; 0]);
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_terminal_that_closes_during_the_dialog_ends_the_question() {
    let world = ClientWorld::new(RULES);
    let mut terminal = Terminal::start(&world, ModelScript::new([bash("touch canary")]));
    terminal.prompt("first");
    terminal.wait_for_dialog();
    let client = Pid::from_child(&terminal.client);
    let child =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", client.as_raw_nonzero()));
    let child = child.unwrap().split_whitespace().next().map(|pid| pid.parse().unwrap());
    // The system sends this signal when a terminal closes.
    kill_process(child.and_then(Pid::from_raw).unwrap_or(client), Signal::HUP).unwrap();
    terminal.wait_for_end();
    assert_eq!(questions(&world, &["--all"]), [] as [Value; 0]);
    assert!(!world.scratch.has_path("canary"));
    world.verify_and_replay();
}
