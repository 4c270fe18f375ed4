//! Where one agent client keeps its settings, and how the guard gets into them and out again.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::settings_text::SettingsError;
use crate::version::Version;

/// The settings of one agent client.
///
/// Planning, showing, backups and giving back are the same for every client and stand in the
/// crate `setup`. An implementation works on texts and paths and writes nothing.
pub trait Installation: Sync {
    /// The version whose hooks were tried, one by one. Another version that can't be asked is
    /// treated like this one.
    fn tried_version(&self) -> Version;

    /// Since when a guard that is killed or hangs shuts the gate; nothing where it always did.
    fn shuts_since(&self) -> Option<Version>;

    /// The settings for a scope.
    fn settings_file(&self, project: &Path, scope: Scope) -> Result<PathBuf, LocationError>;

    /// The settings of the machine's owner, which can switch hooks off.
    fn owner_settings(&self) -> Vec<PathBuf>;

    /// The hooks for a version, with the line that each runs; `program` is a word of a shell line.
    fn hooks_for(&self, version: Version, program: &str) -> Vec<HookEntry>;

    /// The settings with these hooks in them. What holds them already comes back byte for byte.
    fn add(&self, text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError>;

    /// The settings without our hooks. `original` is what they were before us, where that is
    /// known.
    fn remove(&self, text: &str, original: Option<&str>) -> Result<String, SettingsError>;

    /// Our own hooks in there: the event, and what is run at it.
    fn own_hooks(&self, text: &str) -> Vec<(String, Value)>;

    /// The program that one of our hooks starts.
    fn program_of(&self, handler: &Value) -> Option<String>;

    /// Whether there is nothing in there, not even a comment.
    fn is_blank(&self, text: &str) -> bool;

    /// The key in there that keeps hooks from running.
    fn silenced_by(&self, text: &str) -> Option<&'static str>;

    /// Why the client would ignore such settings for what else is in them.
    fn ignored_for(&self, version: Option<Version>, path: &Path, text: &str) -> Vec<String>;

    /// The file with the MCP servers of a scope; none where the client keeps no servers in files.
    fn server_file(
        &self,
        project: &Path,
        scope: Scope,
    ) -> Result<Option<ServerFile>, LocationError>;

    /// Variables that lead the client to a scratch home, with their values.
    fn scratch_variables(&self, home: &Path) -> Vec<(&'static str, PathBuf)>;
}

/// One hook of a client, with what is run at it.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEntry {
    /// The event, as the client calls it.
    pub event: &'static str,
    /// Which tools it is about, where it is about tools.
    pub matcher: Option<&'static str>,
    /// What is run, as the client's settings say it.
    pub handler: Value,
}

impl HookEntry {
    /// The line that is run.
    pub fn command(&self) -> &str {
        self.handler.get("command").and_then(Value::as_str).unwrap_or_default()
    }
}

/// For whom the guard is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For everybody who works in the project: the settings that are shared.
    Project,
    /// For this person in this project.
    Local,
    /// For this person, everywhere.
    User,
}

/// The file in which a client keeps MCP servers.
#[derive(Debug, Clone)]
pub struct ServerFile {
    /// Where it is.
    pub path: PathBuf,
    /// The keys that lead to the servers.
    pub place: Vec<String>,
    /// Whether the client writes to it whenever it runs.
    pub is_clients: bool,
}

impl ServerFile {
    /// The keys that lead to the servers.
    pub fn keys(&self) -> Vec<&str> {
        self.place.iter().map(String::as_str).collect()
    }
}

/// Why a client has no place for its settings.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// The person has no home directory.
    #[error("there is no home directory for `--user`; set HOME")]
    NoHome,
    /// The path can't be a key in JSON.
    #[error("the path `{}` is not UTF-8", path.display())]
    NotUtf8 {
        /// Where.
        path: PathBuf,
    },
}
