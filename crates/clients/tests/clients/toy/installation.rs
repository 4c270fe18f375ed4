//! The settings of the toy client: one line for each hook, in `.toy`.

use std::path::{Path, PathBuf};

use jackline_clients::hook_line::{HookLine, parse_program, sealed_command};
use jackline_clients::installation::{
    HookEntry, InstallScope, Installation, LocationError, McpServerFile,
};
use jackline_clients::settings_text::SettingsError;
use jackline_clients::version::ClientVersion;
use serde_json::{Value, json};

use super::NAME;

/// The tested version.
const TRIED: ClientVersion = ClientVersion(1, 0, 0);

/// The reason if the hook gives no answer.
const BROKEN: &str = "the guard is broken";

/// A line that switches all hooks off.
const OFF: &str = "off";

pub(super) struct ToyInstallation;

impl Installation for ToyInstallation {
    fn tested_version(&self) -> ClientVersion {
        TRIED
    }

    fn fails_closed_since(&self) -> Option<ClientVersion> {
        None
    }

    fn settings_file(&self, project: &Path, _: InstallScope) -> Result<PathBuf, LocationError> {
        Ok(project.join(".toy"))
    }

    fn administrator_settings(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn hooks_for(&self, _: ClientVersion, program: &str) -> Vec<HookEntry> {
        let entry = |event| {
            let handler = json!({ "command": sealed_command(program, NAME, BROKEN) });
            HookEntry { event, matcher: None, handler }
        };
        ["start", "call", "stop"].map(entry).into()
    }

    fn add_hooks(&self, text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError> {
        let others = self.remove_hooks(text, None)?;
        let own = hooks.iter().map(|hook| format!("{} {}\n", hook.event, hook.command()));
        Ok(others + &own.collect::<String>())
    }

    fn remove_hooks(&self, text: &str, _: Option<&str>) -> Result<String, SettingsError> {
        let others = text.lines().filter(|line| own(line).is_none());
        Ok(others.flat_map(|line| [line, "\n"]).collect())
    }

    fn own_hooks(&self, text: &str) -> Vec<(String, Value)> {
        text.lines().filter_map(own).collect()
    }

    fn program_of(&self, handler: &Value) -> Option<String> {
        parse_program(handler.get("command")?.as_str()?, NAME)
    }

    fn role_of(&self, handler: &Value) -> Option<String> {
        HookLine::parse(handler.get("command")?.as_str()?, NAME)?.role
    }

    fn is_blank(&self, text: &str) -> bool {
        text.trim().is_empty()
    }

    fn disabling_key(&self, text: &str) -> Option<&'static str> {
        text.lines().any(|line| line == OFF).then_some(OFF)
    }

    fn ignore_reasons(&self, _: Option<ClientVersion>, _: &Path, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn local_settings_pattern(&self) -> Option<&'static str> {
        None
    }

    fn server_file(
        &self,
        _: &Path,
        _: InstallScope,
    ) -> Result<Option<McpServerFile>, LocationError> {
        Ok(None)
    }

    fn scratch_variables(&self, _: &Path) -> Vec<(&'static str, PathBuf)> {
        Vec::new()
    }
}

/// The hook in a line of the settings, if the hook is ours.
fn own(line: &str) -> Option<(String, Value)> {
    let (event, command) = line.split_once(' ')?;
    parse_program(command, NAME)?;
    Some((event.to_owned(), json!({ "command": command })))
}
