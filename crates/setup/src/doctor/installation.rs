//! Checks whether the guard is installed here in the way that the doctor tested.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CheckStatus, CheckedAgent, DoctorCheck};
use crate::install::has_own_hooks;
use jackline_clients::Client;
use jackline_clients::hook_line::quote_shell_word;
use jackline_clients::installation::{HookEntry, InstallScope};
use jackline_clients::program;
use jackline_clients::settings_file::{SettingsFileError, disabled_hooks, is_same_file, read_text};
use jackline_clients::version::ClientVersion;

/// Settings that contain our hooks.
struct InstalledHooks<'a> {
    client: &'static Client,
    file: &'a Path,
    text: String,
    hooks: Vec<(String, Value)>,
}

/// Checks the settings that the client reads here.
///
/// `of_project` are the settings that the installer would write. They may be in a parent directory.
/// `version` is the version of the client, and `own` is our own version.
pub fn check_installation(
    client: &'static Client,
    files: &[PathBuf],
    of_project: &[PathBuf],
    version: ClientVersion,
    own: &str,
) -> Vec<DoctorCheck> {
    let mut guarded = Vec::new();
    let mut disabled_by = disabled_hooks(client, files.iter().cloned());
    for file in files {
        match read_own_hooks(client, file) {
            Ok(settings) if settings.hooks.is_empty() => {}
            Ok(settings) => {
                disabled_by.extend(client.installation.ignore_reasons(
                    Some(version),
                    file,
                    &settings.text,
                ));
                guarded.push(settings);
            }
            Err(SettingsFileError::Settings { path, source }) => {
                disabled_by.push(format!("`{}` {source}", path.display()));
            }
            Err(error) => disabled_by.push(error.to_string()),
        }
    }
    let mut lines =
        vec![check_installed(client, &guarded, of_project), check_enabled(&disabled_by)];
    if !guarded.is_empty() {
        lines.extend([
            check_tested(client, &guarded, version),
            check_programs(client, &guarded, own),
        ]);
    }
    lines
}

/// Reads settings, and fails if the client can't read them either.
fn read_own_hooks<'a>(
    client: &'static Client,
    file: &'a Path,
) -> Result<InstalledHooks<'a>, SettingsFileError> {
    let text = read_text(file)?;
    let wrong = |source| SettingsFileError::Settings { path: file.to_owned(), source };
    client.installation.remove_hooks(&text, None).map_err(wrong)?;
    let ours = client.installation.own_hooks(&text);
    Ok(InstalledHooks { client, file, text, hooks: ours })
}

impl InstalledHooks<'_> {
    /// The programs that our hooks start.
    fn programs(&self) -> BTreeSet<String> {
        let program = |(_, handler): &(String, Value)| self.client.installation.program_of(handler);
        self.hooks.iter().filter_map(program).collect()
    }

    /// The events whose hook differs from the tested one, by name; nothing if the installer would
    /// change nothing.
    fn differences(&self, version: ClientVersion) -> Option<String> {
        let program = self.programs().pop_first().unwrap_or_default();
        let installation = self.client.installation;
        let role = self.hooks.iter().find_map(|(_, handler)| installation.role_of(handler));
        let tried = installation.hooks_for(version, &quote_shell_word(&program)).into_iter();
        let tried: Vec<HookEntry> = tried.map(|hook| hook.with_role(role.as_deref())).collect();
        if installation.add_hooks(&self.text, &tried).as_ref() == Ok(&self.text) {
            return None;
        }
        let is_there = |event: &str, handler: &Value| {
            self.hooks.iter().any(|(own_event, own)| own_event == event && own == handler)
        };
        let missing = tried.iter().filter(|hook| !is_there(hook.event, &hook.handler));
        let missing: Vec<&str> = missing.map(|hook| hook.event).collect();
        // All hooks are there, but with other hooks, or not for all tools.
        let none = missing.is_empty();
        Some(if none { "not for all calls".to_owned() } else { missing.join(", ") })
    }
}

fn doctor_check(name: &'static str, standing: CheckStatus, detail: String) -> DoctorCheck {
    DoctorCheck { name, actor: CheckedAgent::Main, status: standing, detail }
}

fn check_installed(
    client: &Client,
    guarded: &[InstalledHooks<'_>],
    of_project: &[PathBuf],
) -> DoctorCheck {
    let name = "the guard is installed here";
    let above = of_project.iter().find(|file| has_own_hooks(client, file));
    if guarded.is_empty()
        && let Some(file) = above
    {
        // The settings are in a subdirectory of the project.
        let project = file.ancestors().nth(2).unwrap_or(file);
        let detail = format!(
            "the hooks are in `{}`, but the client reads only the settings of the directory in \
             which it starts; start it in `{}`, or install with `jackline init {} --user`",
            file.display(),
            project.display(),
            client.id
        );
        return doctor_check(name, CheckStatus::Open, detail);
    }
    if guarded.is_empty() {
        let detail = format!(
            "the guard has no hooks here; install them with `jackline init {}`, or check out a branch \
             that has them",
            client.id
        );
        return doctor_check(name, CheckStatus::Open, detail);
    }
    let files: Vec<String> =
        guarded.iter().map(|settings| format!("`{}`", settings.file.display())).collect();
    doctor_check(name, CheckStatus::Closed, format!("in {}", files.join(" and ")))
}

fn check_enabled(disabled_by: &[String]) -> DoctorCheck {
    let name = "nothing keeps the hooks from running";
    match disabled_by {
        [] => doctor_check(name, CheckStatus::Closed, "the client reads and runs them".to_owned()),
        reasons => doctor_check(name, CheckStatus::Open, reasons.join("; ")),
    }
}

fn check_tested(
    client: &Client,
    guarded: &[InstalledHooks<'_>],
    version: ClientVersion,
) -> DoctorCheck {
    let name = "the hooks are the tested ones";
    for settings in guarded {
        if let Some(differences) = settings.differences(version) {
            let file = settings.file.display();
            let detail = format!(
                "in `{file}` they differ: {differences}; fix it with `{}`",
                init_command(client, settings.file)
            );
            return doctor_check(name, CheckStatus::Open, detail);
        }
    }
    doctor_check(name, CheckStatus::Closed, "all events are identical".to_owned())
}

fn check_programs(client: &Client, guarded: &[InstalledHooks<'_>], own: &str) -> DoctorCheck {
    let name = "the program of the guard has this version";
    let programs = guarded.iter().flat_map(|settings| {
        let command = init_command(client, settings.file);
        settings.programs().into_iter().map(move |program| (program, command.clone()))
    });
    for (program, command) in programs {
        // The output is the name of the program, then its version.
        let output = program::read_version(Path::new(&program));
        match output.as_deref().and_then(|output| output.split_whitespace().nth(1)) {
            Some(version) if version == own => {}
            Some(version) => {
                let detail = format!(
                    "`{program}` has version {version}, but this is {own}; fix it with `{command}`"
                );
                return doctor_check(name, CheckStatus::Open, detail);
            }
            None => {
                let detail = format!("`{program}` does not run; fix it with `{command}`");
                return doctor_check(name, CheckStatus::Open, detail);
            }
        }
    }
    doctor_check(name, CheckStatus::Closed, own.to_owned())
}

/// The command that installs the hooks in a settings file again.
fn init_command(client: &Client, file: &Path) -> String {
    let project = file.ancestors().nth(2).unwrap_or(file);
    let is_file_of = |scope: &InstallScope| {
        let path = client.installation.settings_file(project, *scope);
        path.is_ok_and(|path| is_same_file(&path, file))
    };
    // Next to the user's settings, the scopes of a project would be those of the home directory.
    let scopes = [InstallScope::User, InstallScope::Local, InstallScope::Shared];
    let flag = scopes.into_iter().find(is_file_of).map_or("", InstallScope::flag);
    format!("jackline init {}{flag}", client.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::ScratchHome;
    use jackline_clients::claude::CLIENT;
    use jackline_clients::claude::settings::{TESTED_VERSION, hooks_for};

    const FILE: &str = ".claude/settings.json";
    const PROGRAM: &str = "jackline, it's here";

    /// The checks that are `open`, with their details.
    fn open(scratch: &ScratchHome, text: &str) -> Vec<(&'static str, String)> {
        scratch.write(FILE, text).unwrap();
        let lines =
            check_installation(&CLIENT, &[scratch.work().join(FILE)], &[], TESTED_VERSION, "9.9.9");
        let open = lines.into_iter().filter(|line| line.status == CheckStatus::Open);
        open.map(|line| (line.name, line.detail)).collect()
    }

    /// A complete installation, and the text of its settings.
    fn world() -> (ScratchHome, String) {
        let scratch = ScratchHome::new().unwrap();
        let text = "#!/bin/sh\necho jackline 9.9.9\n";
        let program = scratch.write_program(PROGRAM, text).unwrap();
        let word = quote_shell_word(program.to_str().unwrap());
        scratch.install(CLIENT.installation, &hooks_for(TESTED_VERSION, &word)).unwrap();
        let text = scratch.read(FILE).unwrap();
        (scratch, text)
    }

    #[test]
    fn a_complete_installation_is_closed() {
        let (scratch, good) = world();
        assert_eq!(open(&scratch, &good), []);
        assert_eq!(open(&scratch, &good.replacen('{', "{\"model\": \"x\",", 1)), []);
    }

    #[test]
    fn hooks_in_a_parent_directory_do_not_apply_here() {
        let (scratch, _) = world();
        let (here, above) = (scratch.work().join("src").join(FILE), scratch.work().join(FILE));
        let lines = check_installation(&CLIENT, &[here], &[above], TESTED_VERSION, "9.9.9");
        let [line, _] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!(line.status, CheckStatus::Open);
        let root = format!("start it in `{}`", scratch.work().display());
        assert!(line.detail.contains(&root) && line.detail.contains("--user"), "{line:?}");
    }

    #[test]
    fn every_problem_of_an_installation_is_named() {
        let (scratch, good) = world();
        for (odd, name, words) in [
            (String::new(), "the guard is installed here", "jackline init claude"),
            (
                good.replacen('{', "{\"disableAllHooks\": true,", 1),
                "nothing keeps the hooks from running",
                "`disableAllHooks` is true",
            ),
            (format!("{good}// mine"), "nothing keeps the hooks from running", "no comments"),
            (
                good.replacen("\"Stop\"", "\"Setup\"", 1),
                "the hooks are the tested ones",
                "differ: Stop",
            ),
            (
                good.replacen("\"block\"", "\"continue\"", 1),
                "the hooks are the tested ones",
                "differ: PreToolUse",
            ),
            (
                good.replacen("\"*\"", "\"Bash\"", 1),
                "the hooks are the tested ones",
                "differ: not for all calls; fix it with `jackline init claude --shared`",
            ),
        ] {
            assert_ne!(odd, good);
            let open = open(&scratch, &odd);
            let [(line, detail)] = open.as_slice() else { panic!("{name}: {open:?}") };
            assert_eq!(*line, name);
            assert!(detail.contains(words), "{detail}");
        }
    }

    #[test]
    fn a_program_of_another_version_or_a_missing_one_is_named() {
        let (scratch, good) = world();
        let name = "the program of the guard has this version";
        scratch.write_program(PROGRAM, "#!/bin/sh\necho jackline 0.0.1\n").unwrap();
        assert_eq!(open(&scratch, &good).first().map(|(line, _)| *line), Some(name));
        std::fs::remove_file(scratch.root().join(PROGRAM)).unwrap();
        assert_eq!(open(&scratch, &good).first().map(|(line, _)| *line), Some(name));
    }

    #[test]
    fn unreadable_settings_are_named() {
        let scratch = ScratchHome::new().unwrap();
        let open = open(&scratch, "{\n  \"hooks\": ");
        let (name, detail) = open.last().unwrap();
        assert_eq!(*name, "nothing keeps the hooks from running");
        assert!(detail.contains("settings.json") && detail.contains("line 2"), "{detail}");
    }
}
