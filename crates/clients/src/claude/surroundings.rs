//! What the client tells a hook through its environment.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The project's directory, where the client says so.
    pub project: Option<PathBuf>,
    /// The directory of this process.
    pub directory: PathBuf,
    /// Whether a person sits at the client and can be asked by it.
    pub attended: bool,
}

impl Surroundings {
    /// The surroundings of this process.
    pub fn of_process() -> Self {
        let project = variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        Self {
            project: project.filter(|path| path.is_absolute()),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            // Every other entry point is a program that drives the client.
            attended: variable("CLAUDE_CODE_ENTRYPOINT").is_some_and(|value| value == "cli"),
        }
    }

    /// The directory that sessions belong to.
    pub fn workspace(&self) -> &PathBuf {
        self.project.as_ref().unwrap_or(&self.directory)
    }
}

fn variable(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "the client speaks to its hooks this way")]
    let value = std::env::var_os(name);
    value.filter(|value| !value.is_empty())
}
