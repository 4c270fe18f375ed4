//! Where Claude Code keeps its settings and MCP servers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::places::{HOME_VARIABLE, claude_file, claude_home};
use super::settings::{self, PINNED, SHUTS_SINCE};
use super::{CLIENT, NAME};
use crate::hook_line::program_of;
use crate::installation::{HookEntry, Installation, LocationError, Scope, ServerFile};
use crate::settings_text::SettingsError;
use crate::version::Version;

/// Where the owner of a machine puts settings.
const OWNER_SETTINGS: &str = "/etc/claude-code/managed-settings.json";

/// The key under which the client keeps MCP servers.
const SERVERS: &str = "mcpServers";

/// The settings of Claude Code.
pub(super) struct ClaudeInstallation;

impl Installation for ClaudeInstallation {
    fn tried_version(&self) -> Version {
        PINNED
    }

    fn shuts_since(&self) -> Option<Version> {
        Some(SHUTS_SINCE)
    }

    fn settings_file(&self, project: &Path, scope: Scope) -> Result<PathBuf, LocationError> {
        match scope {
            Scope::Project => Ok(project.join(".claude/settings.json")),
            Scope::Local => Ok(project.join(".claude/settings.local.json")),
            Scope::User => {
                let home = claude_home().ok_or(LocationError::NoHome)?;
                Ok(home.join("settings.json"))
            }
        }
    }

    fn owner_settings(&self) -> Vec<PathBuf> {
        vec![PathBuf::from(OWNER_SETTINGS)]
    }

    fn hooks_for(&self, version: Version, program: &str) -> Vec<HookEntry> {
        settings::hooks_for(version, program)
    }

    fn add(&self, text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError> {
        settings::install(text, hooks)
    }

    fn remove(&self, text: &str, original: Option<&str>) -> Result<String, SettingsError> {
        settings::remove(text, original)
    }

    fn own_hooks(&self, text: &str) -> Vec<(String, Value)> {
        settings::ours(text)
    }

    fn program_of(&self, handler: &Value) -> Option<String> {
        program_of(handler.get("command").and_then(Value::as_str)?, NAME)
    }

    fn is_blank(&self, text: &str) -> bool {
        settings::is_blank(text)
    }

    fn silenced_by(&self, text: &str) -> Option<&'static str> {
        settings::silencer(text)
    }

    fn ignored_for(&self, version: Option<Version>, path: &Path, text: &str) -> Vec<String> {
        let (title, place) = (CLIENT.title, path.display());
        let mut reasons = Vec::new();
        if let Some(line) = settings::loose_line(text) {
            // The file of the other scope is read for itself.
            let other = if path.ends_with("settings.local.json") { "--user" } else { "--local" };
            reasons.push(format!(
                "{title} takes no comments and no commas at the end of a list, and ignores all of \
                 `{place}` for them, as in line {line}; take them out, or keep them, take the \
                 guard out of that file with `--uninstall` and install with `{other}`"
            ));
        }
        let misfit = settings::misfit(text).filter(|_| version.is_some_and(|own| own < PINNED));
        reasons.extend(misfit.map(|misfit| {
            format!(
                "{misfit} in `{place}`: older versions of {title} ignore the whole file for that; \
                 mend it, or update the client"
            )
        }));
        reasons
    }

    fn server_file(
        &self,
        project: &Path,
        scope: Scope,
    ) -> Result<Option<ServerFile>, LocationError> {
        let servers = SERVERS.to_owned();
        if scope == Scope::Project {
            let path = project.join(".mcp.json");
            return Ok(Some(ServerFile { path, place: vec![servers], is_clients: false }));
        }
        let path = claude_file().ok_or(LocationError::NoHome)?;
        let place = if scope == Scope::User {
            vec![servers]
        } else {
            let real = project.canonicalize().unwrap_or_else(|_| project.to_owned());
            let name = real.to_str().ok_or(LocationError::NotUtf8 { path: real.clone() })?;
            vec!["projects".to_owned(), name.to_owned(), servers]
        };
        Ok(Some(ServerFile { path, place, is_clients: true }))
    }

    fn scratch_variables(&self, home: &Path) -> Vec<(&'static str, PathBuf)> {
        vec![(HOME_VARIABLE, home.join(".claude"))]
    }
}
