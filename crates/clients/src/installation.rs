//! The interface to the settings of one agent client: where they are, and how to add and remove the
//! guard's hooks.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hook_line;
use crate::settings_text::SettingsError;
use crate::version::ClientVersion;

/// The settings of one agent client.
///
/// The crate `setup` does everything that is the same for all clients: planning, showing the
/// changes, backups and restoring. An implementation works on texts and paths, and writes nothing.
pub trait Installation: Sync {
    /// The version whose hooks we tested. A client whose version can't be read is treated as this
    /// one.
    fn tested_version(&self) -> ClientVersion;

    /// The first version that denies the call if the guard is killed or hangs; nothing if every
    /// version does.
    fn fails_closed_since(&self) -> Option<ClientVersion>;

    /// The settings file for a scope.
    fn settings_file(&self, project: &Path, scope: InstallScope) -> Result<PathBuf, LocationError>;

    /// The settings of the administrator of the machine, which can disable hooks.
    fn administrator_settings(&self) -> Vec<PathBuf>;

    /// The hooks for a version. `program` is one quoted word of a shell command.
    fn hooks_for(&self, version: ClientVersion, program: &str) -> Vec<HookEntry>;

    /// The settings with these hooks added. Settings that have them already are returned byte for
    /// byte.
    fn add_hooks(&self, text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError>;

    /// The settings without our hooks. `original` is the text before we changed it, if we still
    /// have it.
    fn remove_hooks(&self, text: &str, original: Option<&str>) -> Result<String, SettingsError>;

    /// Our own hooks in a settings text: the event and its handler.
    fn own_hooks(&self, text: &str) -> Vec<(String, Value)>;

    /// The program that one of our hooks starts.
    fn program_of(&self, handler: &Value) -> Option<String>;

    /// The role that one of our hooks gives the agent.
    fn role_of(&self, handler: &Value) -> Option<String>;

    /// Whether the text has no settings and no comment.
    fn is_blank(&self, text: &str) -> bool;

    /// The key in these settings that disables hooks.
    fn disabling_key(&self, text: &str) -> Option<&'static str>;

    /// Why the client would ignore this settings file because of its other content.
    fn ignore_reasons(
        &self,
        version: Option<ClientVersion>,
        path: &Path,
        text: &str,
    ) -> Vec<String>;

    /// The pattern by which git ignores the settings of one user in a project, if these are a file
    /// of their own.
    fn local_settings_pattern(&self) -> Option<&'static str>;

    /// The file with the MCP servers of a scope, or nothing if the client does not store servers in
    /// files.
    fn server_file(
        &self,
        project: &Path,
        scope: InstallScope,
    ) -> Result<Option<McpServerFile>, LocationError>;

    /// Environment variables that make the client use a scratch home, with their values.
    fn scratch_variables(&self, home: &Path) -> Vec<(&'static str, PathBuf)>;
}

/// One hook of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEntry {
    /// The client's name of the event.
    pub event: &'static str,
    /// The tools to which the hook applies, if the event is about tools.
    pub matcher: Option<&'static str>,
    /// The handler, in the format of the client's settings.
    pub handler: Value,
}

impl HookEntry {
    /// The hook with a role for the agent, if one is given.
    #[must_use]
    pub fn with_role(mut self, role: Option<&str>) -> Self {
        let command = role.map(|role| hook_line::with_role(self.command(), role));
        if let (Some(command), Some(slot)) = (command, self.handler.get_mut("command")) {
            *slot = command.into();
        }
        self
    }

    /// The command line that the hook runs.
    pub fn command(&self) -> &str {
        self.handler.get("command").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Where the guard applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallScope {
    /// For this user in this project.
    Local,
    /// For everyone who works in this project, in the settings that they share.
    Shared,
    /// For this user in all projects.
    User,
}

impl InstallScope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Local, Self::Shared, Self::User];

    /// The flag of `jackline init` with a space before it. Without a flag, `init` installs for this
    /// user in this project.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Local => "",
            Self::Shared => " --shared",
            Self::User => " --user",
        }
    }
}

/// The file in which a client stores its MCP servers.
#[derive(Debug, Clone)]
pub struct McpServerFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The keys that lead to the servers in the file.
    pub key_path: Vec<String>,
    /// Whether the client itself writes to the file whenever it runs.
    pub is_written_by_client: bool,
}

impl McpServerFile {
    /// The keys that lead to the servers in the file.
    pub fn keys(&self) -> Vec<&str> {
        self.key_path.iter().map(String::as_str).collect()
    }
}

/// Why the path of the settings can't be determined.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// The user has no home directory.
    #[error("there is no home directory for `--user`; set HOME")]
    NoHome,
    /// The path can't be a JSON key.
    #[error("the path `{}` is not UTF-8", path.display())]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
}
