//! Checks settings that change while a session runs.
//!
//! The client reloads its settings as soon as one of its settings files changes, even during a
//! call. A script that empties them would remove the guard before we can check what the script did.
//! The client asks this hook first. A session that stays on its current settings keeps its guard.

use std::path::{Path, PathBuf};

use super::settings::{self, TESTED_VERSION, hooks_for};
use super::{CLIENT, CLIENT_ID};
use crate::hook_line::{HookLine, quote_shell_word};
use crate::installation::HookEntry;

use crate::hook_environment::HookEnvironment;
use crate::payload::PayloadFields;
use crate::program;
use crate::settings_file::{disabled_hooks, read_text, settings_files};

/// How many characters of a file name are shown.
const NAME_CHARS_MAX: usize = 300;

/// Why the session must not load the new settings, or nothing if the guard stays in them.
pub(super) fn reject_settings(
    payload: &PayloadFields,
    surroundings: &HookEnvironment,
) -> Option<String> {
    let files = settings_files(surroundings.workspace(), &CLIENT);
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    let judged = match own {
        Ok(own) => check_settings(&files, &own),
        Err(error) => Err(format!("the guard can't find its own program: {error}")),
    };
    let why = judged.err()?;
    let file = payload.peek_text("file_path").unwrap_or("the settings");
    let file: String = file.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    Some(format!(
        "jackline: this change of `{file}` would remove the guard from the running session \
         ({why}), so the session keeps its current settings; start a new session to use the new \
         settings, or switch the guard off first with `jackline off --for 30m --why …`"
    ))
}

/// Whether a session with these settings still has the guard; `own` is the program of the guard.
fn check_settings(files: &[PathBuf], own: &Path) -> Result<(), String> {
    if let Some(reason) = disabled_hooks(&CLIENT, files.iter().cloned()).into_iter().next() {
        return Err(reason);
    }
    let mut missing = "no settings file for this project has all hooks of the guard".to_owned();
    let mut guarded = false;
    for file in files {
        let text = read_text(file).map_err(|error| error.to_string())?;
        if let Some(name) = settings::guard_variable(&text) {
            return Err(format!(
                "`env.{name}` in `{}` changes which guard the hooks start or how it works",
                file.display()
            ));
        }
        match has_all_hooks(&text, own).then(|| settings::doubtful_key(&text)) {
            Some(None) => guarded = true,
            Some(Some(key)) => {
                let file = file.display();
                missing = format!("the client might ignore `{file}` because of `{key}`");
            }
            None => {}
        }
    }
    if guarded { Ok(()) } else { Err(missing) }
}

/// Whether a settings text has all of our hooks, and they start this program.
fn has_all_hooks(text: &str, own: &Path) -> bool {
    let parse =
        |handler: &serde_json::Value| HookLine::parse(handler.get("command")?.as_str()?, CLIENT_ID);
    let Some(HookLine { program, role }) =
        settings::own_hooks(text).iter().find_map(|(_, handler)| parse(handler))
    else {
        return false;
    };
    let found =
        program::find_program_path(Path::new(&program)).and_then(|found| found.canonicalize().ok());
    let hooks = hooks_for(TESTED_VERSION, &quote_shell_word(&program)).into_iter();
    let hooks: Vec<HookEntry> = hooks.map(|hook| hook.with_role(role.as_deref())).collect();
    settings::is_valid_for_client(text)
        && settings::rejected_entry(text).is_none()
        && settings::add_hooks(text, &hooks).as_deref() == Ok(text)
        && found.as_deref() == Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_program::write_program;

    const PROJECT: &str = ".claude/settings.json";
    const LOCAL: &str = ".claude/settings.local.json";

    /// The judgement of these two settings files, in which `GUARD` is the guard's program.
    fn judged(project: &str, local: &str) -> Result<(), String> {
        let scratch = tempfile::tempdir().unwrap();
        let work = scratch.path().join("work");
        std::fs::create_dir_all(work.join(".claude")).unwrap();
        let own = write_program(scratch.path(), "jackline", "#!/bin/sh\n");
        let other = write_program(scratch.path(), "jackline-other", "#!/bin/sh\n");
        let with_programs = |text: &str| {
            let text = text.replace("GUARD-OTHER", other.to_str().unwrap());
            text.replace("GUARD", own.to_str().unwrap())
        };
        for (file, text) in [(PROJECT, project), (LOCAL, local)] {
            if text != "absent" {
                std::fs::write(work.join(file), with_programs(text)).unwrap();
            }
        }
        check_settings(&[PROJECT, LOCAL].map(|file| work.join(file)), &own)
    }

    /// Settings with all hooks. `GUARD` as the program means this program.
    fn complete(program: &str) -> String {
        settings::add_hooks("", &hooks_for(TESTED_VERSION, "jackline"))
            .unwrap()
            .replace("jackline hook", &format!("{program} hook"))
    }

    #[test]
    fn settings_that_still_have_the_guard_may_be_loaded() {
        let good = complete("GUARD");
        let more = good.replacen('{', r#"{"model": "x", "env": {"RUST_LOG": "debug"},"#, 1);
        for (project, local) in [
            (good.as_str(), "absent"),
            ("absent", good.as_str()),
            ("{}", good.as_str()),
            (more.as_str(), "{}"),
            (good.as_str(), r#"{"disableAllHooks": false}"#),
            // The client ignores the broken file and keeps the other one.
            (good.as_str(), "{ no json"),
        ] {
            assert_eq!(judged(project, local), Ok(()), "{project}\n{local}");
        }
    }

    #[test]
    fn settings_that_lose_the_guard_may_not_be_loaded() {
        let good = complete("GUARD");
        let with = |text: &str| good.replacen('{', text, 1);
        for (project, local) in [
            ("absent", "absent"),
            ("{}", "{}"),
            (&good.replacen("\"ConfigChange\"", "\"Setup\"", 1), "{}"),
            (&good.replacen("\"block\"", "\"continue\"", 1), "{}"),
            (&good.replacen("\"*\"", "\"Read\"", 1), "{}"),
            (&complete("GUARD-OTHER"), "{}"),
            (&complete("/nowhere/jackline"), "{}"),
            (&format!("{good}// mine"), "{}"),
            (&with(r#"{"hooks": {},"#), "{}"),
            (&with(r#"{"model": 5,"#), "{}"),
            (&with(r#"{"permissions": "x","#), "{}"),
            (&with(r#"{"disableAllHooks": true,"#), "{}"),
            (&good, r#"{"disableAllHooks": true}"#),
            (&good, r#"{"disable\u0041llHooks": true}"#),
            (&good, r#"{"disableAllHooks": false, "disableAllHooks": true}"#),
            (&good, r#"{"allowManagedHooksOnly": true}"#),
            (&good, r#"{"env": {"PATH": "/elsewhere"}}"#),
            (&good, r#"{"env": {"JACKLINE_HOME": "/elsewhere"}}"#),
        ] {
            assert!(judged(project, local).is_err(), "{project}\n{local}");
        }
    }

    #[test]
    fn unreadable_settings_may_not_be_loaded() {
        let scratch = tempfile::tempdir().unwrap();
        let settings = scratch.path().join(PROJECT);
        std::fs::create_dir_all(&settings).unwrap();
        let reason = check_settings(&[settings], Path::new("/jackline")).unwrap_err();
        assert!(reason.contains("is not a file"), "{reason}");
    }
}
