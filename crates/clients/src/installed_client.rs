//! Finds the program of a client on this machine.

use std::path::{Path, PathBuf};

use crate::client_list::Client;
use crate::program::{self, find_program_path};
use crate::version::ClientVersion;

/// Why a client can't be started.
#[derive(Debug, thiserror::Error)]
pub enum FindClientError {
    /// The program is not found.
    #[error(
        "the client `{program}` is not found; install it with `{how}`, or add its directory to PATH (`init` and `doctor` also accept --client-program)"
    )]
    NotFound {
        /// The path or name of the program.
        program: String,
        /// The command that installs it.
        how: &'static str,
    },
    /// It prints no version.
    #[error("`{} --version` prints no version", program.display())]
    NoVersion {
        /// The program.
        program: PathBuf,
    },
}

/// A client that is installed on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledClient {
    /// The client.
    pub client: &'static Client,
    /// The path of its program.
    pub program: PathBuf,
    /// The version that the program prints.
    pub version: ClientVersion,
}

impl InstalledClient {
    /// Finds the program at the given path, or in the search path.
    pub fn find(client: &'static Client, named: Option<&Path>) -> Result<Self, FindClientError> {
        let wanted = named.unwrap_or(Path::new(client.id.as_str()));
        let not_found = || FindClientError::NotFound {
            program: wanted.display().to_string(),
            how: client.live.install_command(),
        };
        let program = find_program_path(wanted).ok_or_else(not_found)?;
        match program::read_version(&program).as_deref().and_then(ClientVersion::parse) {
            Some(version) => Ok(Self { client, program, version }),
            None => Err(FindClientError::NoVersion { program }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::CLIENT;

    #[test]
    fn the_error_for_a_missing_client_names_its_package() {
        let error = InstalledClient::find(&CLIENT, Some(Path::new("/nowhere/claude")))
            .unwrap_err()
            .to_string();
        assert!(error.contains("/nowhere/claude") && error.contains("npm install -g"), "{error}");
    }

    #[test]
    fn a_program_without_a_version_is_refused() {
        let error =
            InstalledClient::find(&CLIENT, Some(Path::new("/bin/false"))).unwrap_err().to_string();
        assert!(error.contains("`/bin/false --version` prints no version"), "{error}");
    }
}
