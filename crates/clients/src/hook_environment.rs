//! The environment of a hook: the project, the person, and the run that the client works for.

use std::ffi::OsString;
use std::path::PathBuf;

use jackline_engine::SessionId;
use jackline_host::is_started_by_agent_tool;

/// In this variable the client gets the session of the run that it works for.
pub const RUN_VARIABLE: &str = "JACKLINE_RUN";

/// The environment of a hook.
#[derive(Debug, Clone)]
pub struct HookEnvironment {
    /// The project directory, if the client reports it.
    pub project: Option<PathBuf>,
    /// The working directory of this process.
    pub directory: PathBuf,
    /// Whether a person uses the client and can be asked through it.
    pub has_person: bool,
    /// The role of the agent, if the command line of the hook names one.
    pub role: Option<String>,
    /// The session of the run that the client works for. The events belong to that session, and the
    /// supervisor of the run reports its start and end.
    pub run: Option<SessionId>,
    /// Whether a tool of the agent started this process, and not the client. It is computed only
    /// when needed, because it reads all parent processes.
    pub is_forged: fn() -> bool,
}

impl HookEnvironment {
    /// The environment of this process, with the values that the client reports.
    pub fn of_process(project: Option<PathBuf>, attended: bool) -> Self {
        Self {
            project: project.filter(|path| path.is_absolute()),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            has_person: attended,
            role: None,
            run: read_variable(RUN_VARIABLE)
                .and_then(|run| SessionId::parse(run.into_string().ok()?).ok()),
            is_forged: is_started_by_agent_tool,
        }
    }

    /// The directory to which sessions belong.
    pub fn workspace(&self) -> &PathBuf {
        self.project.as_ref().unwrap_or(&self.directory)
    }
}

/// The value of an environment variable that a client sets for its hooks.
pub fn read_variable(name: &str) -> Option<OsString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "clients pass data to hooks in environment variables"
    )]
    let value = std::env::var_os(name);
    value.filter(|value| !value.is_empty())
}
