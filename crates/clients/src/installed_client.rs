//! Finds the program of a client on this machine.

use std::path::{Path, PathBuf};

use crate::client_list::Client;
use crate::program::{self, find_program_path};
use crate::version::ClientVersion;

/// Why a client can't be started.
#[derive(Debug, thiserror::Error)]
pub enum FindClientError {
    /// The program is not in the search path.
    #[error(
        "{title} is not installed: `{program}` is not in PATH; install it with `{how}`, or add the directory of \
         `{program}` to PATH"
    )]
    NotInstalled {
        /// The name of the client for people.
        title: &'static str,
        /// The name of its program.
        program: &'static str,
        /// The command that installs it.
        how: &'static str,
    },
    /// There is no program at the path that a person named.
    #[error("there is no program `{}`; check the path after --client-program", path.display())]
    NoProgram {
        /// The path.
        path: PathBuf,
    },
    /// It prints no version.
    #[error(
        "`{} --version` prints no version; check that this is the program of an agent client",
        program.display()
    )]
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
        let name = client.id.as_str();
        let not_found = || match named {
            Some(path) => FindClientError::NoProgram { path: path.to_owned() },
            None => FindClientError::NotInstalled {
                title: client.title,
                program: name,
                how: client.live.install_command(),
            },
        };
        let program = find_program_path(named.unwrap_or(Path::new(name))).ok_or_else(not_found)?;
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
    fn a_missing_program_is_named() {
        let error = InstalledClient::find(&CLIENT, Some(Path::new("/nowhere/claude")))
            .unwrap_err()
            .to_string();
        let expected =
            "there is no program `/nowhere/claude`; check the path after --client-program";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_program_without_a_version_is_refused() {
        let error =
            InstalledClient::find(&CLIENT, Some(Path::new("/bin/false"))).unwrap_err().to_string();
        assert!(error.contains("`/bin/false --version` prints no version"), "{error}");
    }
}
