//! What the client tells a hook through its environment.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use jackline_engine::SessionId;
use jackline_runtime::forged_by_agent;

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
    /// The session of a run that the client works for: its events belong there, and whoever
    /// drives the run says when it begins and ends.
    pub run: Option<SessionId>,
    /// Whether a tool of the agent's started this, and not its client. Looked up only
    /// where it matters: that reads every process above.
    pub forged: fn() -> bool,
}

impl Surroundings {
    /// The surroundings of this process.
    pub fn of_process() -> Self {
        let project = variable("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        Self {
            project: project.filter(|path| path.is_absolute()),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            attended: is_attended(
                variable("CLAUDE_CODE_SESSION_ATTENDED").as_deref(),
                variable("CLAUDE_CODE_ENTRYPOINT").as_deref(),
            ),
            run: variable(RUN).and_then(|run| SessionId::parse(run.into_string().ok()?).ok()),
            forged: forged_by_agent,
        }
    }

    /// The directory that sessions belong to.
    pub fn workspace(&self) -> &PathBuf {
        self.project.as_ref().unwrap_or(&self.directory)
    }
}

/// Newer clients say it; of older ones every entry point but `cli` is a program
/// that drives the client.
fn is_attended(attended: Option<&OsStr>, entrypoint: Option<&OsStr>) -> bool {
    match attended {
        Some(said) => said == "1",
        None => entrypoint.is_some_and(|entrypoint| entrypoint == "cli"),
    }
}

fn variable(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "the client speaks to its hooks this way")]
    let value = std::env::var_os(name);
    value.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_can_be_asked_is_there() {
        let of = |attended: Option<&str>, entrypoint: Option<&str>| {
            is_attended(attended.map(OsStr::new), entrypoint.map(OsStr::new))
        };
        assert!(of(Some("1"), Some("sdk-cli")));
        assert!(!of(Some("0"), Some("cli")));
        assert!(of(None, Some("cli")));
        assert!(!of(None, Some("sdk-cli")));
        assert!(!of(None, None));
    }
}
