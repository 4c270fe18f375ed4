//! Where Claude Code stores its settings and MCP servers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::claude_paths::{HOME_VARIABLE, claude_file, claude_home};
use super::settings::{self, FAILS_CLOSED_SINCE, TESTED_VERSION};
use super::{CLIENT, CLIENT_ID};
use crate::hook_line::{HookLine, parse_program};
use crate::installation::{HookEntry, InstallScope, Installation, LocationError, McpServerFile};
use crate::settings_text::SettingsError;
use crate::version::ClientVersion;

/// Settings of the administrator of the machine.
const ADMINISTRATOR_SETTINGS: &str = "/etc/claude-code/managed-settings.json";

/// The key of the client's MCP servers.
const SERVERS_KEY: &str = "mcpServers";

/// Reads and changes the settings of Claude Code.
pub(super) struct ClaudeInstallation;

impl Installation for ClaudeInstallation {
    fn tested_version(&self) -> ClientVersion {
        TESTED_VERSION
    }

    fn fails_closed_since(&self) -> Option<ClientVersion> {
        Some(FAILS_CLOSED_SINCE)
    }

    fn settings_file(&self, project: &Path, scope: InstallScope) -> Result<PathBuf, LocationError> {
        match scope {
            InstallScope::Shared => Ok(project.join(".claude/settings.json")),
            InstallScope::Local => Ok(project.join(".claude/settings.local.json")),
            InstallScope::User => {
                let home = claude_home().ok_or(LocationError::NoHome)?;
                Ok(home.join("settings.json"))
            }
        }
    }

    fn administrator_settings(&self) -> Vec<PathBuf> {
        vec![PathBuf::from(ADMINISTRATOR_SETTINGS)]
    }

    fn hooks_for(&self, version: ClientVersion, program: &str) -> Vec<HookEntry> {
        settings::hooks_for(version, program)
    }

    fn add_hooks(&self, text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError> {
        settings::add_hooks(text, hooks)
    }

    fn remove_hooks(&self, text: &str, original: Option<&str>) -> Result<String, SettingsError> {
        settings::remove_hooks(text, original)
    }

    fn own_hooks(&self, text: &str) -> Vec<(String, Value)> {
        settings::own_hooks(text)
    }

    fn program_of(&self, handler: &Value) -> Option<String> {
        parse_program(handler.get("command").and_then(Value::as_str)?, CLIENT_ID)
    }

    fn role_of(&self, handler: &Value) -> Option<String> {
        HookLine::parse(handler.get("command").and_then(Value::as_str)?, CLIENT_ID)?.role
    }

    fn is_blank(&self, text: &str) -> bool {
        settings::is_blank(text)
    }

    fn disabling_key(&self, text: &str) -> Option<&'static str> {
        settings::disabling_key(text)
    }

    fn ignore_reasons(
        &self,
        version: Option<ClientVersion>,
        path: &Path,
        text: &str,
    ) -> Vec<String> {
        let (title, place) = (CLIENT.title, path.display());
        let mut reasons = Vec::new();
        if let Some(line) = settings::first_invalid_line(text) {
            // The client reads the file of the other scope separately.
            let is_local = path.ends_with("settings.local.json");
            let other = if is_local { "with `--user`" } else { "without a flag" };
            reasons.push(format!(
                "{title} accepts no comments and no trailing commas, so it ignores all of \
                 `{place}` because of line {line}; remove them, or keep them and move the guard to \
                 another file: take it out with `--uninstall` and install it {other}"
            ));
        }
        let misfit = settings::rejected_entry(text)
            .filter(|_| version.is_some_and(|own| own < TESTED_VERSION));
        reasons.extend(misfit.map(|misfit| {
            format!(
                "{misfit} in `{place}`: older versions of {title} ignore the whole file for this; \
                 fix it, or update the client"
            )
        }));
        reasons
    }

    /// The same pattern that the client adds when it creates the file.
    fn local_settings_pattern(&self) -> Option<&'static str> {
        Some("**/.claude/settings.local.json")
    }

    fn server_file(
        &self,
        project: &Path,
        scope: InstallScope,
    ) -> Result<Option<McpServerFile>, LocationError> {
        let servers = SERVERS_KEY.to_owned();
        if scope == InstallScope::Shared {
            let path = project.join(".mcp.json");
            return Ok(Some(McpServerFile {
                path,
                key_path: vec![servers],
                is_written_by_client: false,
            }));
        }
        let path = claude_file().ok_or(LocationError::NoHome)?;
        let place = if scope == InstallScope::User {
            vec![servers]
        } else {
            let real = project.canonicalize().unwrap_or_else(|_| project.to_owned());
            let name = real.to_str().ok_or(LocationError::NotUtf8 { path: real.clone() })?;
            vec!["projects".to_owned(), name.to_owned(), servers]
        };
        Ok(Some(McpServerFile { path, key_path: place, is_written_by_client: true }))
    }

    fn scratch_variables(&self, home: &Path) -> Vec<(&'static str, PathBuf)> {
        vec![(HOME_VARIABLE, home.join(".claude"))]
    }
}
