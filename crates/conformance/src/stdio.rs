//! Plays a scenario through the real `jackline stdio` process.
//!
//! Each play has a workspace and a state home of its own. At the end `verify`
//! and `replay` look at every journal it wrote, so no test leaves one unproven.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use jackline_definition::FILE_NAME;
use jackline_engine::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use crate::driver::{Driver, Stage};
use crate::scenario::{AGE_MS, PERSON, SESSION, START, Scenario};

/// How long an answer may take before the process counts as stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// The `jackline` binary, spoken to over its standard input and output.
pub struct StdioDriver {
    binary: PathBuf,
    launcher: Vec<String>,
}

impl StdioDriver {
    /// A driver for a binary.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self { binary: binary.into(), launcher: Vec::new() }
    }

    /// Has the binary started by other words, which stand before it.
    #[must_use]
    pub fn started_by(mut self, launcher: &[&str]) -> Self {
        self.launcher = launcher.iter().map(ToString::to_string).collect();
        self
    }
}

impl Driver for StdioDriver {
    fn name(&self) -> &'static str {
        "stdio"
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn Stage>, String> {
        let place = Place::new(self)?;
        let before = Timestamp::from_ms(START.as_ms() - AGE_MS);
        place.write(FILE_NAME, &scenario.definition, before)?;
        scenario.files.iter().try_for_each(|(path, text)| place.write(path, text, before))?;
        scenario.links.iter().try_for_each(|(path, target)| place.link(path, target))?;
        let process = Some(Process::start(&place)?);
        Ok(Box::new(StdioStage { place, process }))
    }
}

struct StdioStage {
    place: Place,
    process: Option<Process>,
}

impl Stage for StdioStage {
    fn send(&mut self, line: &str, _: Timestamp) -> Result<Value, String> {
        let process = self.process.as_mut().ok_or("the process has ended")?;
        process.send(line).map_err(|problem| self.place.with_complaints(&problem))
    }

    fn write(&mut self, path: &str, text: &str, now: Timestamp) -> Result<(), String> {
        self.place.write(path, text, now)
    }

    fn read(&self, path: &str) -> Result<Option<String>, String> {
        match fs::read_to_string(self.place.workspace().join(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("can't read `{path}`: {error}")),
        }
    }

    fn workspace(&self) -> String {
        let workspace = self.place.workspace();
        workspace.canonicalize().unwrap_or(workspace).display().to_string()
    }

    fn remove(&mut self, path: &str) -> Result<(), String> {
        fs::remove_file(self.place.workspace().join(path))
            .map_err(|error| format!("can't remove `{path}`: {error}"))
    }

    fn restart(&mut self) -> Result<(), String> {
        self.end()?;
        self.process = Some(Process::start(&self.place)?);
        Ok(())
    }

    fn off(&mut self, why: &str, _: Timestamp) -> Result<(), String> {
        self.place.run(&["off", "--for", "30m", "--by", "person", "--why", why])
    }

    fn on(&mut self) -> Result<(), String> {
        self.place.run(&["on"])
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        self.end()?;
        // No test leaves a journal that is not proven.
        self.place.run(&["verify", "--all", "--json"])?;
        self.place.run(&["replay", "--all", "--json"])
    }
}

impl StdioStage {
    fn end(&mut self) -> Result<(), String> {
        let Some(process) = self.process.take() else { return Ok(()) };
        process.end().map_err(|problem| self.place.with_complaints(&problem))
    }
}

/// The directories of one play.
struct Place {
    directory: TempDir,
    words: Vec<OsString>,
}

impl Place {
    fn new(driver: &StdioDriver) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't make a workspace: {error}");
        let launcher = driver.launcher.iter().map(OsString::from);
        let words = launcher.chain([driver.binary.clone().into()]).collect();
        let place = Self { directory: TempDir::new().map_err(failed)?, words };
        fs::create_dir(place.workspace()).map_err(failed)?;
        Ok(place)
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    fn complaints(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    /// A command of the binary in this place.
    fn command(&self, name: &str) -> Result<Command, String> {
        let (program, rest) = self.words.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        command
            .args(rest)
            .arg(name)
            .current_dir(self.workspace())
            // What the person who runs this has set up is not part of the story.
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("JACKLINE_HOME", self.directory.path().join("home"))
            .env("HOME", PERSON);
        Ok(command)
    }

    /// Writes a file with the time the scenario gives it.
    fn write(&self, path: &str, text: &str, modified: Timestamp) -> Result<(), String> {
        let full = self.workspace().join(path);
        let ms = u64::try_from(modified.as_ms()).unwrap_or(0);
        let write = || {
            if let Some(parent) = full.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut file = fs::File::create(&full)?;
            file.write_all(text.as_bytes())?;
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
        };
        write().map_err(|error: std::io::Error| format!("can't write `{path}`: {error}"))
    }

    /// Makes a symbolic link.
    fn link(&self, path: &str, target: &str) -> Result<(), String> {
        let full = self.workspace().join(path);
        let link = || {
            if let Some(parent) = full.parent() {
                fs::create_dir_all(parent)?;
            }
            std::os::unix::fs::symlink(target, &full)
        };
        link().map_err(|error: std::io::Error| format!("can't link `{path}`: {error}"))
    }

    /// Runs a command of the binary, which must succeed.
    fn run(&self, words: &[&str]) -> Result<(), String> {
        let (name, rest) = words.split_first().ok_or("no command")?;
        let output = self
            .command(name)?
            .args(rest)
            .output()
            .map_err(|error| format!("can't run `jackline {name}`: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!(
            "`jackline {}` ended with {}\n{}{}",
            words.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// A problem with what the process said about it.
    fn with_complaints(&self, problem: &str) -> String {
        let said = fs::read_to_string(self.complaints()).unwrap_or_default();
        if said.is_empty() { problem.to_owned() } else { format!("{problem}\nstderr: {said}") }
    }
}

/// A `jackline stdio` at work.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    /// Whether an answer said that a line or the guard is broken.
    complained: bool,
}

impl Process {
    fn start(place: &Place) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start `jackline stdio`: {error}");
        let complaints = fs::File::create(place.complaints()).map_err(failed)?;
        let mut child = place
            .command("stdio")?
            .args(["--session", SESSION])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or("the process has no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, answers, complained: false })
    }

    fn send(&mut self, line: &str) -> Result<Value, String> {
        let input = self.input.as_mut().ok_or("the process has no input")?;
        input
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| input.flush())
            .map_err(|error| format!("can't send: {error}"))?;
        let answer = match self.answers.recv_timeout(ANSWER_TIMEOUT) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return Err("no answer came".to_owned()),
            Err(RecvTimeoutError::Disconnected) => return Err("the process has ended".to_owned()),
        };
        let verdict: Value = serde_json::from_str(&answer)
            .map_err(|error| format!("the answer `{answer}` is not JSON: {error}"))?;
        self.complained |= verdict.get("error").is_some();
        Ok(verdict)
    }

    /// Closes the input; the process must end by itself and say whether all was fine.
    fn end(mut self) -> Result<(), String> {
        drop(self.input.take());
        match self.answers.recv_timeout(ANSWER_TIMEOUT) {
            Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => return Err("the process does not end".to_owned()),
            Ok(answer) => return Err(format!("an answer that nobody waits for: {answer}")),
        }
        let status = self.child.wait().map_err(|error| format!("can't wait: {error}"))?;
        let fits = match status.code() {
            Some(0) => !self.complained,
            Some(2 | 3) => self.complained,
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("the process ended with {status}")) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After a failed step the process may still run; after `end` this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
