//! The directories in which the real binary plays a scenario.
//!
//! Each scenario has its own workspace and state home. At the end, `verify` and `replay` check
//! every journal that was written.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use jackline_definition::FILE_NAME;
use jackline_engine::Timestamp;
use tempfile::TempDir;

use crate::driver::WorkspaceFiles;
use crate::scenario::{FILE_AGE_MS, PERSON, Scenario};

/// The `jackline` binary, and the command that starts it.
#[derive(Debug, Clone)]
pub struct JacklineProgram {
    launcher: Vec<OsString>,
    binary: PathBuf,
}

impl JacklineProgram {
    /// A binary that is started directly.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self { launcher: Vec::new(), binary: binary.into() }
    }

    /// Sets the command that starts the binary.
    #[must_use]
    pub fn started_by(self, launcher: &[&str]) -> Self {
        Self { launcher: launcher.iter().map(OsString::from).collect(), ..self }
    }

    fn command(&self) -> Command {
        match self.launcher.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        }
    }
}

/// The directories of one scenario.
pub(crate) struct ScenarioDirectories {
    directory: TempDir,
    program: JacklineProgram,
}

impl ScenarioDirectories {
    /// Creates an empty workspace.
    pub(crate) fn new(program: &JacklineProgram) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't create a workspace: {error}");
        let place = Self { directory: TempDir::new().map_err(failed)?, program: program.clone() };
        fs::create_dir(place.workspace()).map_err(failed)?;
        Ok(place)
    }

    /// Writes the files and links that a scenario has at its start.
    pub(crate) fn write_start(
        &mut self,
        scenario: &Scenario,
        now: Timestamp,
    ) -> Result<(), String> {
        let before = Timestamp::from_ms(now.as_ms() - FILE_AGE_MS);
        self.write(FILE_NAME, &scenario.definition, before)?;
        for (path, text) in &scenario.files {
            self.write(path, text, before)?;
        }
        scenario.links.iter().try_for_each(|(path, target)| self.link(path, target))
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// The absolute path of the workspace, as the product sees it.
    pub(crate) fn workspace_text(&self) -> String {
        WorkspaceFiles::workspace(self)
    }

    /// Approves the agent of a session, with the command for it.
    pub(crate) fn approve_agent(&self, session: &str) -> Result<(), String> {
        self.run(&["identity", "approve", session, "--by", "person", "--why", "it is known"])
    }

    /// The state home of the binary.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn stderr_file(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    /// A command of the binary in these directories.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = self.program.command();
        command
            .arg(name)
            .current_dir(self.workspace())
            // The environment of the person who runs the tests must have no effect.
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("XDG_RUNTIME_DIR", self.directory.path().join("runtime"))
            .env("JACKLINE_HOME", self.home())
            .env("HOME", PERSON);
        command
    }

    /// Creates a symbolic link.
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

    /// Checks every journal that was written.
    pub(crate) fn check_journals(&self) -> Result<(), String> {
        self.run(&["verify", "--all", "--json"])?;
        self.run(&["replay", "--all", "--json"])
    }

    /// Runs a command of the binary, which must succeed.
    pub(crate) fn run(&self, words: &[&str]) -> Result<(), String> {
        let (name, rest) = words.split_first().ok_or("no command")?;
        let output = self
            .command(name)
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

    /// Adds the error output of the process to a problem.
    pub(crate) fn with_stderr(&self, problem: &str) -> String {
        let error_output = fs::read_to_string(self.stderr_file()).unwrap_or_default();
        if error_output.is_empty() {
            problem.to_owned()
        } else {
            format!("{problem}\nstderr: {error_output}")
        }
    }
}

impl WorkspaceFiles for ScenarioDirectories {
    fn write(&mut self, path: &str, text: &str, modified: Timestamp) -> Result<(), String> {
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

    fn read(&self, path: &str) -> Result<Option<String>, String> {
        match fs::read_to_string(self.workspace().join(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("can't read `{path}`: {error}")),
        }
    }

    fn remove(&mut self, path: &str) -> Result<(), String> {
        fs::remove_file(self.workspace().join(path))
            .map_err(|error| format!("can't remove `{path}`: {error}"))
    }

    fn workspace(&self) -> String {
        let workspace = self.workspace();
        workspace.canonicalize().unwrap_or(workspace).display().to_string()
    }
}
