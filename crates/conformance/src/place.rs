//! The directories in which the real binary plays a scenario.
//!
//! Each play has a workspace and a state home of its own. At the end `verify`
//! and `replay` look at every journal it wrote, so no test leaves one unproven.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use jackline_definition::FILE_NAME;
use jackline_engine::Timestamp;
use tempfile::TempDir;

use crate::scenario::{AGE_MS, PERSON, Scenario};

/// The directories of one play.
pub(crate) struct Place {
    directory: TempDir,
    binary: PathBuf,
}

impl Place {
    /// An empty workspace.
    pub(crate) fn new(binary: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't make a workspace: {error}");
        let place = Self { directory: TempDir::new().map_err(failed)?, binary: binary.to_owned() };
        fs::create_dir(place.workspace()).map_err(failed)?;
        Ok(place)
    }

    /// Puts into the workspace what a scenario that starts now finds there.
    pub(crate) fn furnish(&self, scenario: &Scenario, now: Timestamp) -> Result<(), String> {
        let before = Timestamp::from_ms(now.as_ms() - AGE_MS);
        self.write(FILE_NAME, &scenario.definition, before)?;
        scenario.files.iter().try_for_each(|(path, text)| self.write(path, text, before))?;
        scenario.links.iter().try_for_each(|(path, target)| self.link(path, target))
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// The absolute path of the workspace, as the product finds it.
    pub(crate) fn workspace_text(&self) -> String {
        let workspace = self.workspace();
        workspace.canonicalize().unwrap_or(workspace).display().to_string()
    }

    /// Where the binary keeps its state.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn complaints(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    /// A command of the binary in this place.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .arg(name)
            .current_dir(self.workspace())
            .env("JACKLINE_HOME", self.home())
            // What the person who runs this has set up is not part of the story.
            .env("HOME", PERSON)
            .env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Writes a file with the time the scenario gives it.
    pub(crate) fn write(&self, path: &str, text: &str, modified: Timestamp) -> Result<(), String> {
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

    /// The text of a file, if it is there.
    pub(crate) fn read(&self, path: &str) -> Result<Option<String>, String> {
        match fs::read_to_string(self.workspace().join(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("can't read `{path}`: {error}")),
        }
    }

    pub(crate) fn remove(&self, path: &str) -> Result<(), String> {
        fs::remove_file(self.workspace().join(path))
            .map_err(|error| format!("can't remove `{path}`: {error}"))
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

    /// Proves every journal that was written.
    pub(crate) fn prove_journals(&self) -> Result<(), String> {
        self.prove("verify")?;
        self.prove("replay")
    }

    /// Requires that a command has no objection to any journal.
    fn prove(&self, name: &str) -> Result<(), String> {
        let output = self
            .command(name)
            .args(["--all", "--json"])
            .output()
            .map_err(|error| format!("can't run `jackline {name}`: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!(
            "`jackline {name} --all --json` ended with {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// A problem with what the process said about it.
    pub(crate) fn with_complaints(&self, problem: &str) -> String {
        let said = fs::read_to_string(self.complaints()).unwrap_or_default();
        if said.is_empty() { problem.to_owned() } else { format!("{problem}\nstderr: {said}") }
    }
}
