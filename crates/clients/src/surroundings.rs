//! Where a hook runs: the project, the person, the run that the client works for.

use std::ffi::OsString;
use std::path::PathBuf;

use jackline_engine::SessionId;
use jackline_host::forged_by_agent;

/// The variable by which a client knows the session of the run that it works for.
pub const RUN: &str = "JACKLINE_RUN";

/// Where a hook runs.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The project's directory, where the client says so.
    pub project: Option<PathBuf>,
    /// The directory of this process.
    pub directory: PathBuf,
    /// Whether a person sits at the client and can be asked by it.
    pub attended: bool,
    /// The session of a run that the client works for: its events belong there, and the
    /// supervisor of the run reports when it begins and ends.
    pub run: Option<SessionId>,
    /// Whether a tool of the agent's started this, and not its client. Looked up only
    /// where it matters: that reads every process above.
    pub forged: fn() -> bool,
}

impl Surroundings {
    /// The surroundings of this process, with what the client says of itself.
    pub fn of_process(project: Option<PathBuf>, attended: bool) -> Self {
        Self {
            project: project.filter(|path| path.is_absolute()),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            attended,
            run: variable(RUN).and_then(|run| SessionId::parse(run.into_string().ok()?).ok()),
            forged: forged_by_agent,
        }
    }

    /// The directory that sessions belong to.
    pub fn workspace(&self) -> &PathBuf {
        self.project.as_ref().unwrap_or(&self.directory)
    }
}

/// What a variable says by which a client speaks to its hooks.
pub fn variable(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "the client speaks to its hooks this way")]
    let value = std::env::var_os(name);
    value.filter(|value| !value.is_empty())
}
