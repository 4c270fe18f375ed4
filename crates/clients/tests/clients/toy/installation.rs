//! The settings of the toy: one line for each hook, in `.toy`.

use std::path::{Path, PathBuf};

use jackline_clients::hook_line::{program_of, sealed_line};
use jackline_clients::installation::{HookEntry, Installation, LocationError, Scope, ServerFile};
use jackline_clients::settings_text::SettingsError;
use jackline_clients::version::Version;
use serde_json::{Value, json};

use super::NAME;

/// The version that was tried.
const TRIED: Version = Version(1, 0, 0);

/// The reason where the line gets no answer.
const BROKEN: &str = "the guard is broken";

/// A line that switches all hooks off.
const OFF: &str = "off";

pub(super) struct ToyInstallation;

impl Installation for ToyInstallation {
    fn tried_version(&self) -> Version {
        TRIED
    }

    fn shuts_since(&self) -> Option<Version> {
        None
    }

    fn settings_file(&self, project: &Path, _: Scope) -> Result<PathBuf, LocationError> {
        Ok(project.join(".toy"))
    }

    fn owner_settings(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn hooks_for(&self, _: Version, program: &str) -> Vec<HookEntry> {
        let entry = |event| {
            let handler = json!({ "command": sealed_line(program, NAME, BROKEN) });
            HookEntry { event, matcher: None, handler }
        };
        ["start", "call", "stop"].map(entry).into()
    }

    fn add(&self, text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError> {
        let others = self.remove(text, None)?;
        let own = hooks.iter().map(|hook| format!("{} {}\n", hook.event, hook.command()));
        Ok(others + &own.collect::<String>())
    }

    fn remove(&self, text: &str, _: Option<&str>) -> Result<String, SettingsError> {
        let others = text.lines().filter(|line| own(line).is_none());
        Ok(others.flat_map(|line| [line, "\n"]).collect())
    }

    fn own_hooks(&self, text: &str) -> Vec<(String, Value)> {
        text.lines().filter_map(own).collect()
    }

    fn program_of(&self, handler: &Value) -> Option<String> {
        program_of(handler.get("command")?.as_str()?, NAME)
    }

    fn is_blank(&self, text: &str) -> bool {
        text.trim().is_empty()
    }

    fn silenced_by(&self, text: &str) -> Option<&'static str> {
        text.lines().any(|line| line == OFF).then_some(OFF)
    }

    fn ignored_for(&self, _: Option<Version>, _: &Path, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn server_file(&self, _: &Path, _: Scope) -> Result<Option<ServerFile>, LocationError> {
        Ok(None)
    }

    fn scratch_variables(&self, _: &Path) -> Vec<(&'static str, PathBuf)> {
        Vec::new()
    }
}

/// The hook in a line of the settings, where it is ours.
fn own(line: &str) -> Option<(String, Value)> {
    let (event, command) = line.split_once(' ')?;
    program_of(command, NAME)?;
    Some((event.to_owned(), json!({ "command": command })))
}
