//! Plays a scenario through the real `jackline stdio` process.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use jackline_engine::Timestamp;
use jackline_runtime::surfaces::{STDIO, SurfaceProfile};
use serde_json::Value;

use crate::driver::{ScenarioDriver, ScenarioPerson, ScenarioStage, WorkspaceFiles};
use crate::scenario::{SESSION, START, Scenario};
use crate::scenario_directories::{JacklineProgram, ScenarioDirectories};

/// How long the process may take for one answer, and to end.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A driver for the `jackline` binary with its standard input and output.
pub struct StdioDriver {
    program: JacklineProgram,
}

impl StdioDriver {
    /// A driver that plays scenarios with this binary.
    pub fn new(program: JacklineProgram) -> Self {
        Self { program }
    }
}

impl ScenarioDriver for StdioDriver {
    fn name(&self) -> &'static str {
        "stdio"
    }

    fn surface(&self) -> &'static SurfaceProfile {
        &STDIO
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String> {
        let mut place = ScenarioDirectories::new(&self.program)?;
        place.write_start(scenario, START)?;
        let process = Some(StdioProcess::start(&place)?);
        Ok(Box::new(StdioStage { place, process }))
    }
}

struct StdioStage {
    place: ScenarioDirectories,
    process: Option<StdioProcess>,
}

impl ScenarioStage for StdioStage {
    fn send(&mut self, line: &str, _: Timestamp) -> Result<Value, String> {
        let process = self.process.as_mut().ok_or("the process has ended")?;
        process.send(line).map_err(|problem| self.place.with_stderr(&problem))
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.place
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        self
    }

    fn restart(&mut self) -> Result<(), String> {
        self.end()?;
        // This truncates the file with the standard error of the ended process. After a restart, a
        // failure shows only the standard error of the new process.
        self.process = Some(StdioProcess::start(&self.place)?);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        self.end()?;
        self.place.check_journals()
    }
}

impl ScenarioPerson for StdioStage {
    fn off(&mut self, why: &str, _: Timestamp) -> Result<(), String> {
        self.place.run(&["off", "--for", "30m", "--by", "person", "--why", why])
    }

    fn on(&mut self) -> Result<(), String> {
        self.place.run(&["on"])
    }

    fn approve(&mut self, session: &str) -> Result<(), String> {
        self.place.approve_agent(session)
    }
}

impl StdioStage {
    /// Ends the process, if one runs.
    fn end(&mut self) -> Result<(), String> {
        let Some(process) = self.process.take() else { return Ok(()) };
        process.end().map_err(|problem| self.place.with_stderr(&problem))
    }
}

/// A running `jackline stdio`. Its standard error goes to a file, so that a failure can show it.
pub(crate) struct StdioProcess {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    /// Whether an answer so far reported a refused line or a broken guard. The exit code must then
    /// report it too.
    has_error: bool,
}

impl StdioProcess {
    /// Starts the process. Empties the file for its standard error.
    pub(crate) fn start(directories: &ScenarioDirectories) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start `jackline stdio`: {error}");
        let stderr_file = fs::File::create(directories.stderr_file()).map_err(failed)?;
        let mut child = directories
            .command("stdio")
            .args(["--session", SESSION])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr_file)
            .spawn()
            .map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or("the process has no output")?;
        let (sender, answers) = channel();
        // Reading from a pipe has no timeout. So a thread reads the lines and passes them on
        // through a channel, which has one. The thread ends when the process closes its output.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, answers, has_error: false })
    }

    /// Sends a line and returns the answer to it.
    pub(crate) fn send(&mut self, line: &str) -> Result<Value, String> {
        let input = self.input.as_mut().ok_or("the process has no input")?;
        input
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| input.flush())
            .map_err(|error| format!("can't send: {error}"))?;
        let answer = match self.answers.recv_timeout(ANSWER_TIMEOUT) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                return Err("the process gave no answer in time".to_owned());
            }
            Err(RecvTimeoutError::Disconnected) => return Err("the process has ended".to_owned()),
        };
        let verdict: Value = serde_json::from_str(&answer)
            .map_err(|error| format!("the answer `{answer}` is not JSON: {error}"))?;
        self.has_error |= verdict.get("error").is_some();
        Ok(verdict)
    }

    /// Closes the input and waits until the process has ended. It must not send another answer.
    ///
    /// The exit code must match the answers: 0 if none of them had an error, 2 if the worst error
    /// was a refused line, and 3 if the guard was broken for at least one line.
    pub(crate) fn end(mut self) -> Result<(), String> {
        drop(self.input.take());
        match self.answers.recv_timeout(ANSWER_TIMEOUT) {
            // The process has closed its output, so the thread has ended.
            Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => return Err("the process does not end".to_owned()),
            Ok(answer) => return Err(format!("the process gave an unexpected answer: {answer}")),
        }
        let status = self.child.wait().map_err(|error| format!("can't wait: {error}"))?;
        // `has_error` does not tell whether 2 or 3 is right, so both match.
        let exit_code_matches = match status.code() {
            Some(0) => !self.has_error,
            Some(2 | 3) => self.has_error,
            _ => false,
        };
        if exit_code_matches { Ok(()) } else { Err(format!("the process ended with {status}")) }
    }
}

impl Drop for StdioProcess {
    fn drop(&mut self) {
        // After a failed step, the process may still run. After `end`, it has already ended, so
        // this has no effect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
