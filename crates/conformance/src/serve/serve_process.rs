//! The real `jackline mcp serve`, with a client that a scenario controls.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

use crate::client_scene::ClientScene;
use crate::scripted_shell::ScriptedShell;

/// How long an operation may take before the server counts as blocked.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A running server.
pub(super) struct ServeProcess {
    child: Child,
    client: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl ServeProcess {
    pub(super) fn start(
        scene: &ClientScene,
        shell: &ScriptedShell,
        session: &str,
        directory: &str,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start `jackline mcp serve`: {error}");
        let stderr = File::create(scene.directories.stderr_file()).map_err(failed)?;
        let mut command = scene.directories.command("mcp");
        shell.configure_command(&mut command);
        let mut child = command
            .args(["serve", "--session", session])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(failed)?;
        let (client, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or("the server has no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, client, answers })
    }

    /// Sends a line of the client.
    pub(super) fn send(&mut self, line: &str) -> Result<(), String> {
        let client = self.client.as_mut().ok_or("the client has left")?;
        writeln!(client, "{line}").map_err(|error| format!("can't send: {error}"))
    }

    /// Waits for the answer to a call.
    pub(super) fn answer(&mut self, call: &str) -> Result<Value, String> {
        let line = self.answers.recv_timeout(TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => "the server sent no answer in time".to_owned(),
            RecvTimeoutError::Disconnected => "the server has ended".to_owned(),
        })?;
        let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        if answer.get("id").is_some_and(|id| id == call) {
            return Ok(answer);
        }
        Err(format!("expected an answer to `{call}`, but got {line}"))
    }

    /// Disconnects the client. The server must exit successfully, and no command may be running.
    pub(super) fn leave(mut self) -> Result<(), String> {
        self.client = None;
        match self.answers.recv_timeout(TIMEOUT) {
            Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => return Err("the server does not end".to_owned()),
            Ok(line) => return Err(format!("unexpected message: {line}")),
        }
        let status = self.child.wait().map_err(|error| format!("can't wait: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // After `leave` this has no effect. Otherwise it kills the server, as in a crash of the
        // machine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
