//! Commands whose output and exit status a scenario decides.
//!
//! The tool `shell` starts a real bash. Bash first reads the file in `BASH_ENV`. That file waits for
//! the result of the scenario, prints it and exits, so the command line itself never runs.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// Prints the next result. `$0` and the arguments belong to the command line.
const STARTUP_FILE: &str = "\
read -r code < 'DIRECTORY/status'
command -p cat 'DIRECTORY/output'
exit \"$code\"
";

/// The results of the commands of one scenario.
pub(crate) struct ScriptedShell {
    directory: TempDir,
    /// The pipe for the exit status. A command waits until it contains a line.
    status: File,
}

impl ScriptedShell {
    pub(crate) fn new() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't make the scripted shell: {error}");
        let directory = TempDir::new().map_err(failed)?;
        let pipe = directory.path().join("status");
        let made = Command::new("mkfifo").arg(&pipe).status().map_err(failed)?;
        if !made.success() {
            return Err("`mkfifo` can't create the pipe".to_owned());
        }
        // Open for reading and writing, because this does not wait for the other end.
        let status = OpenOptions::new().read(true).write(true).open(&pipe).map_err(failed)?;
        let text = STARTUP_FILE.replace("DIRECTORY", &directory.path().display().to_string());
        fs::write(directory.path().join("startup"), text).map_err(failed)?;
        Ok(Self { directory, status })
    }

    /// Makes the commands of a process wait for the results.
    pub(crate) fn configure_command(&self, command: &mut Command) {
        command.env("BASH_ENV", self.path("startup"));
    }

    /// Ends the running command with an output and an exit status.
    pub(crate) fn end_command(&mut self, output: &str, status: i64) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("can't end the command: {error}");
        fs::write(self.path("output"), output).map_err(failed)?;
        writeln!(self.status, "{status}").map_err(failed)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}
