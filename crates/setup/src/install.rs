//! Installing the guard for a client: what would change is worked out first,
//! shown to a person, and only then written.
//!
//! The files are other people's. Each is replaced as a whole, its bytes from
//! before are kept in the state home, and taking the guard out again gives
//! exactly those back, unless somebody changed something since; then only what
//! is ours goes.

mod diff;
mod exclude;
mod file;
mod ledger;
pub(crate) mod mcp_servers;
mod plan;
mod removal;
mod servers;
mod template;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use jackline_clients::installation::{LocationError, Scope};
use jackline_clients::settings_file::SettingsFileError;
use jackline_journal::FileError;

use jackline_clients::version::Version;
use jackline_clients::{CLIENTS, Client};

pub use diff::{DiffLine, diff};
pub use mcp_servers::{Reaches, Remote};
pub use plan::{plan, program_word, settings_of_project};
pub use removal::plan_removal;
pub use servers::{plan_unwrapping, plan_wrapping};
pub use template::DEFINITION;
pub use write::{Written, carry_out};

pub(crate) use plan::holds_ours;

/// What a person wants.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The clients they name; none means those that are found.
    pub clients: Vec<&'static Client>,
    /// For whom.
    pub scope: Scope,
    /// Where they are.
    pub here: PathBuf,
    /// This program.
    pub jackline: PathBuf,
    /// The client's program, where it is not found by its name.
    pub client_program: Option<PathBuf>,
    /// The state home.
    pub state_home: PathBuf,
    /// Which MCP servers elsewhere are meant, too.
    pub remote: Remote,
    /// Whether the proxy can speak to an MCP server elsewhere.
    pub reaches: Reaches,
}

/// A client as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundClient {
    /// Which one.
    pub client: &'static Client,
    /// Its program.
    pub program: Option<PathBuf>,
    /// What it says about itself.
    pub version: Option<Version>,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The settings of a client.
    Settings(&'static Client),
    /// The MCP servers of a client.
    Servers(&'static Client),
    /// What git leaves out of this repository.
    Exclude,
    /// What is guarded.
    Definition,
}

/// A file as it is, and as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it is for.
    pub purpose: Purpose,
    /// Where it is, as people see it.
    pub path: PathBuf,
    /// Where it really is.
    pub(crate) target: PathBuf,
    /// What is in it; none where it is not there.
    pub before: Option<Vec<u8>>,
    /// What will be; none where it is removed.
    pub after: Option<Vec<u8>>,
    /// What taking the guard out would leave, were it taken out now.
    pub(crate) without: Option<Vec<u8>>,
    /// Whether the guard comes or goes with it.
    pub(crate) direction: Direction,
    /// The MCP servers in it that the guard stands before then, as far as it was us who put it
    /// there; none where nothing has to be remembered.
    pub(crate) servers: Option<Vec<ledger::ServersAt>>,
}

/// Whether a change installs the guard or takes it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// Everything that would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The directory that is guarded.
    pub project: PathBuf,
    /// The clients.
    pub found: Vec<FoundClient>,
    /// What changes; nothing where all is as it should be.
    pub changes: Vec<Change>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// What a person should do something about.
    pub warnings: Vec<String>,
    /// Why the hooks would not run although they are there.
    pub silenced: Vec<String>,
    /// The servers that the guard should no longer stand before, and still does.
    pub still_guarded: Vec<String>,
}

impl Plan {
    /// A plan in which nothing is done yet.
    fn empty(site: &plan::Site) -> Self {
        Self {
            project: site.project.clone(),
            found: Vec::new(),
            changes: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            silenced: Vec::new(),
            still_guarded: Vec::new(),
        }
    }
}

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No client was found, and none was named.
    #[error("no agent client was found here; name one: {}", commands())]
    NoClient,
    /// The client has no place for its settings.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// There is nothing that the guard could stand before.
    #[error(
        "there are no MCP servers in `{}`, so there is nothing to wrap; those of yours are found \
         with `--local` and `--user`", path.display()
    )]
    NoServers {
        /// The file.
        path: PathBuf,
    },
    /// A file can't be read, or its settings can't be understood.
    #[error(transparent)]
    File(#[from] SettingsFileError),
    /// Somebody else wrote to a file in the meantime.
    #[error("`{}` was changed by somebody else in the meantime; run this again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// It went wrong halfway.
    #[error(
        "{source}; done before that: {}; run this again to finish it, or with `--uninstall` to go back",
        list(written)
    )]
    Partly {
        /// What was written, or removed.
        written: Vec<PathBuf>,
        /// What then went wrong.
        source: Box<InstallError>,
    },
    /// Nothing can be kept in the state home.
    #[error(
        "{source}; the files of before can't be kept, so nothing more was changed: make the state home writable or free some space, then run this again"
    )]
    State {
        /// What went wrong.
        source: FileError,
    },
}

impl InstallError {
    pub(crate) fn of(path: &Path, action: &'static str, source: io::Error) -> Self {
        SettingsFileError::of(path, action, source).into()
    }
}

/// How each client is named on the command line.
fn commands() -> String {
    CLIENTS.map(|client| format!("`jackline init {}`", client.id)).join(", ")
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
