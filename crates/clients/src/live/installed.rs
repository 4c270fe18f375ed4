//! The client's program on this machine.

use std::path::{Path, PathBuf};

use super::LiveError;
use crate::claude::settings::Version;
use crate::program::{self, locate};

/// The package that the client comes in.
pub const NPM_PACKAGE: &str = "@anthropic-ai/claude-code";

/// What the program is called.
const PROGRAM: &str = "claude";

/// A client that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Where it is.
    pub program: PathBuf,
    /// Which one it is, as it says itself.
    pub version: Version,
}

impl Installed {
    /// The program that was named, or the one in the search path.
    pub fn find(named: Option<&Path>) -> Result<Self, LiveError> {
        let wanted = named.unwrap_or(Path::new(PROGRAM));
        let not_found = || LiveError::NotFound { program: wanted.display().to_string() };
        let program = locate(wanted).ok_or_else(not_found)?;
        match program::version(&program).as_deref().and_then(Version::parse) {
            Some(version) => Ok(Self { program, version }),
            None => Err(LiveError::NoVersion { program }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_not_there_is_named_with_its_package() {
        let error = Installed::find(Some(Path::new("/nowhere/claude"))).unwrap_err().to_string();
        assert!(error.contains("/nowhere/claude") && error.contains(NPM_PACKAGE), "{error}");
    }

    #[test]
    fn a_program_that_is_no_client_is_refused() {
        let error = Installed::find(Some(Path::new("/bin/false"))).unwrap_err().to_string();
        assert!(error.contains("`/bin/false --version` does not say"), "{error}");
    }
}
