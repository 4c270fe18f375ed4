//! The client's program on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{LiveError, Scratch, process};

/// The package that the client comes in.
pub const NPM_PACKAGE: &str = "@anthropic-ai/claude-code";

/// What the program is called.
const PROGRAM: &str = "claude";

/// How long it may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Where it is.
    pub program: PathBuf,
    /// Which one it is, as it says itself, such as `2.1.325`.
    pub version: String,
}

impl Installed {
    /// The program that was named, or the one in the search path.
    pub fn find(named: Option<&Path>) -> Result<Self, LiveError> {
        let wanted = named.unwrap_or(Path::new(PROGRAM));
        let not_found = || LiveError::NotFound { program: wanted.display().to_string() };
        let program = look_up(wanted).ok_or_else(not_found)?;
        let version = version_of(&program)?;
        Ok(Self { program, version })
    }
}

/// A path as it is; a bare name in the directories where programs are.
fn look_up(wanted: &Path) -> Option<PathBuf> {
    let is_bare = wanted.parent() == Some(Path::new(""));
    if !is_bare {
        return std::path::absolute(wanted).ok().filter(|path| path.is_file());
    }
    let path = search_path();
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(wanted));
    places.find(|path| path.is_absolute() && path.is_file())
}

/// Where programs are looked for.
pub(super) fn search_path() -> OsString {
    #[expect(
        clippy::disallowed_methods,
        reason = "a client is found where a person's shell finds it"
    )]
    let path = std::env::var_os("PATH");
    path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

fn version_of(program: &Path) -> Result<String, LiveError> {
    let scratch = Scratch::new()?;
    let mut command = Command::new(program);
    scratch.enter(&mut command);
    command.arg("--version");
    let ended = process::run(command, scratch.root(), VERSION_TIMEOUT)
        .map_err(|source| LiveError::Start { program: program.to_owned(), source })?;
    let said = ended.stdout.split_whitespace().next().unwrap_or_default();
    if ended.code == Some(0) && said.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(said.to_owned());
    }
    let why = match ended.code {
        _ if ended.timed_out => "it did not end in time".to_owned(),
        Some(code) => format!("exit {code}, `{}`", said.chars().take(80).collect::<String>()),
        None => "a signal ended it".to_owned(),
    };
    Err(LiveError::NoVersion { program: program.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_up_and_a_path_is_not() {
        assert!(look_up(Path::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(look_up(Path::new("./sh")), None);
        assert_eq!(look_up(Path::new("/nowhere/claude")), None);
    }

    #[test]
    fn a_client_that_is_not_there_is_named_with_its_package() {
        let error = Installed::find(Some(Path::new("/nowhere/claude"))).unwrap_err().to_string();
        assert!(error.contains("/nowhere/claude") && error.contains(NPM_PACKAGE), "{error}");
    }

    #[test]
    fn a_program_that_is_no_client_is_refused() {
        let error = Installed::find(Some(Path::new("/bin/false"))).unwrap_err().to_string();
        assert!(error.contains("does not answer to --version"), "{error}");
    }
}
