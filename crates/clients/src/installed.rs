//! The client's program on this machine.

use std::path::{Path, PathBuf};

use crate::list::Client;
use crate::program::{self, locate};
use crate::version::Version;

/// Why a client can't be started.
#[derive(Debug, thiserror::Error)]
pub enum InstalledError {
    /// There is no such program.
    #[error(
        "the client `{program}` is not found; install it with `{how}`, or put it into PATH (`init` and `doctor` take --client-program)"
    )]
    NotFound {
        /// What was looked for.
        program: String,
        /// The command that installs it.
        how: &'static str,
    },
    /// It does not say which version it is.
    #[error("`{} --version` does not say which version it is", program.display())]
    NoVersion {
        /// The program.
        program: PathBuf,
    },
}

/// A client that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Which client it is.
    pub client: &'static Client,
    /// Where it is.
    pub program: PathBuf,
    /// Which one it is, as it says itself.
    pub version: Version,
}

impl Installed {
    /// The program that was named, or the one in the search path.
    pub fn find(client: &'static Client, named: Option<&Path>) -> Result<Self, InstalledError> {
        let wanted = named.unwrap_or(Path::new(client.id.as_str()));
        let not_found = || InstalledError::NotFound {
            program: wanted.display().to_string(),
            how: client.live.how_to_install(),
        };
        let program = locate(wanted).ok_or_else(not_found)?;
        match program::version(&program).as_deref().and_then(Version::parse) {
            Some(version) => Ok(Self { client, program, version }),
            None => Err(InstalledError::NoVersion { program }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::CLIENT;

    #[test]
    fn a_client_that_is_not_there_is_named_with_its_package() {
        let error =
            Installed::find(&CLIENT, Some(Path::new("/nowhere/claude"))).unwrap_err().to_string();
        assert!(error.contains("/nowhere/claude") && error.contains("npm install -g"), "{error}");
    }

    #[test]
    fn a_program_that_is_no_client_is_refused() {
        let error =
            Installed::find(&CLIENT, Some(Path::new("/bin/false"))).unwrap_err().to_string();
        assert!(error.contains("`/bin/false --version` does not say"), "{error}");
    }
}
