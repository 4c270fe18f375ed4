//! Installs the guard for a client: it makes a plan, shows it to the person, and only then writes.
//!
//! The files belong to other people. Each file is replaced as a whole, and its old bytes are saved
//! in the state home. Removing the guard restores exactly those bytes. If someone else has changed
//! the file since, it removes only our own entries.

mod apply_plan;
mod diff;
mod exclude;
mod ledger;
mod leftovers;
mod lost_hooks;
pub(crate) mod mcp_servers;
mod plan;
mod removal;
mod replace_file;
mod servers;
mod summary;
mod template;
mod work_trees;

use std::io;
use std::path::{Path, PathBuf};

use jackline_clients::installation::{InstallScope, LocationError};
use jackline_clients::settings_file::SettingsFileError;
use jackline_journal::FileError;

use jackline_clients::version::ClientVersion;
use jackline_clients::{CLIENTS, Client};

pub use apply_plan::{WrittenFile, apply_plan};
pub use diff::{DiffLine, diff};
pub use leftovers::{Leftover, LeftoverKind, RemovedLeftovers, leftovers, remove_leftovers};
pub use lost_hooks::lost_hooks;
pub use mcp_servers::{CanConnect, RemoteSelection};
pub use plan::{plan, quoted_program, settings_of_project};
pub use removal::plan_removal;
pub use servers::{plan_unwrapping, plan_wrapping};
pub use summary::summarize;

pub(crate) use plan::has_own_hooks;

/// What the person asked for.
#[derive(Debug, Clone)]
pub struct InstallRequest {
    /// The clients that the person named; empty means all clients that are found.
    pub clients: Vec<&'static Client>,
    /// The scope of the installation.
    pub scope: InstallScope,
    /// The role that the hooks give the agent; nothing to keep the installed one.
    pub role: Option<String>,
    /// The current directory.
    pub directory: PathBuf,
    /// The path of this program.
    pub guard_program: PathBuf,
    /// The program of the client, if it is not found by its name.
    pub client_program: Option<PathBuf>,
    /// The state home.
    pub state_home: PathBuf,
    /// Which remote MCP servers to wrap.
    pub remote_servers: RemoteSelection,
    /// Whether the proxy can connect to a remote MCP server.
    pub can_connect: CanConnect,
}

impl InstallRequest {
    /// Whether the person means this client.
    pub(crate) fn covers(&self, client: &Client) -> bool {
        self.clients.is_empty() || self.clients.iter().any(|named| named.id == client.id)
    }
}

/// A client on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedClient {
    /// The client.
    pub client: &'static Client,
    /// Its program.
    pub program: Option<PathBuf>,
    /// The version that it prints.
    pub version: Option<ClientVersion>,
}

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePurpose {
    /// The settings of a client.
    Settings(&'static Client),
    /// The MCP servers of a client.
    Servers(&'static Client),
    /// The ignore list of git for this repository.
    Exclude,
    /// The definition of the guard.
    Definition,
}

/// A planned change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    /// The purpose of the file.
    pub purpose: FilePurpose,
    /// The path that people see.
    pub path: PathBuf,
    /// The real path.
    pub(crate) real_path: PathBuf,
    /// The present content; nothing if the file is missing.
    pub before: Option<Vec<u8>>,
    /// The new content; nothing if the file is removed.
    pub after: Option<Vec<u8>>,
    /// The content that removing the guard now would leave.
    pub(crate) after_removal: Option<Vec<u8>>,
    /// Whether the change installs or removes the guard.
    pub(crate) direction: InstallDirection,
    /// The MCP servers in the file that we wrapped; nothing if there is nothing to remember.
    pub(crate) servers: Option<Vec<ledger::ServersAtPath>>,
}

/// Whether a change installs the guard or removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallDirection {
    Install,
    Remove,
}

/// Everything that an installation would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallPlan {
    /// The directory to guard.
    pub project: PathBuf,
    /// The clients that were found.
    pub clients: Vec<DetectedClient>,
    /// The changes; empty if everything is up to date.
    pub changes: Vec<PlannedChange>,
    /// Information for the person.
    pub notes: Vec<String>,
    /// Problems that the person should fix.
    pub warnings: Vec<String>,
    /// Why the client would not run the installed hooks.
    pub disabled_reasons: Vec<String>,
    /// The servers that should no longer be wrapped, but still are.
    pub still_wrapped: Vec<String>,
}

impl InstallPlan {
    /// A plan without changes.
    fn empty(site: &plan::ProjectSite) -> Self {
        Self {
            project: site.project.clone(),
            clients: Vec::new(),
            changes: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            disabled_reasons: Vec::new(),
            still_wrapped: Vec::new(),
        }
    }
}

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No client was found, and the person named none.
    #[error("no agent client was found on this machine; name one: {}", commands())]
    NoClient,
    /// The path of the settings can't be determined.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// There are no servers to wrap.
    #[error(
        "there are no MCP servers in `{}`, so there is nothing to wrap; without a flag, `init \
         --mcp` wraps your own servers of this project, with `--user` those of all your projects, \
         with `--shared` those in the file that the project shares", path.display()
    )]
    NoServers {
        /// The file.
        path: PathBuf,
    },
    /// A file can't be read, or its settings are invalid.
    #[error(transparent)]
    File(#[from] SettingsFileError),
    /// Another program changed a file after the plan was made.
    #[error("`{}` was changed by another program in the meantime; run this again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A part of the changes was written.
    #[error(
        "{source}; these files were changed before the error: {}; run this again to finish, or with `--uninstall` to undo it",
        list(written)
    )]
    PartlyWritten {
        /// The files that were written or removed.
        written: Vec<PathBuf>,
        /// The error.
        source: Box<InstallError>,
    },
    /// The state home can't store a backup.
    #[error(
        "{source}; no backup can be saved, so no further file was changed: make the state home writable or free some disk space, then run this again"
    )]
    Backup {
        /// The error.
        source: FileError,
    },
}

impl InstallError {
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        SettingsFileError::io(path, action, source).into()
    }
}

/// The commands that name each client.
fn commands() -> String {
    CLIENTS.map(|client| format!("`jackline init {}`", client.id)).join(", ")
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
