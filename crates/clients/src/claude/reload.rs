//! Settings that change while a session runs.
//!
//! The client reads its settings again as soon as a file of them changes, in
//! the middle of a call, too: a script that empties them would take the guard
//! out before anybody can look at what it did. The client asks first, and a
//! session that keeps the settings it has keeps its guard.

use std::path::{Path, PathBuf};

use super::settings::{self, PINNED, hooks_for};
use super::{CLIENT, NAME};
use crate::hook_line::{program_of, shell_word};

use crate::payload::PayloadFields;
use crate::program;
use crate::settings_file::{read, settings_files, switched_off};
use crate::surroundings::Surroundings;

/// How much of the name of a file is shown.
const NAME_MAX: usize = 300;

/// Why the session has to keep the settings it has; none where the guard stays
/// in it.
pub(super) fn objection(payload: &PayloadFields, surroundings: &Surroundings) -> Option<String> {
    let files = settings_files(surroundings.workspace(), &CLIENT);
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    let judged = match own {
        Ok(own) => judge(&files, &own),
        Err(error) => Err(format!("which program is this: {error}")),
    };
    let why = judged.err()?;
    let file = payload.peek("file_path").unwrap_or("the settings");
    let file: String = file.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
    Some(format!(
        "jackline: this change of `{file}` would take the guard out of the running session \
         ({why}), so the session keeps the settings it has; start a new session for it, or switch \
         the guard off first with `jackline off --for 30m --why …`"
    ))
}

/// Whether these settings leave the guard in a session; `own` is its program.
fn judge(files: &[PathBuf], own: &Path) -> Result<(), String> {
    if let Some(reason) = switched_off(&CLIENT, files.iter().cloned()).into_iter().next() {
        return Err(reason);
    }
    let mut missing = "no settings that apply here hold all of its hooks".to_owned();
    let mut guarded = false;
    for file in files {
        let text = read(file).map_err(|error| error.to_string())?;
        if let Some(name) = settings::redirects(&text) {
            return Err(format!("`env.{name}` in `{}` leads the guard astray", file.display()));
        }
        match holds(&text, own).then(|| settings::doubtful(&text)) {
            Some(None) => guarded = true,
            Some(Some(key)) => {
                let file = file.display();
                missing = format!("for `{key}` in `{file}` the client might ignore that file");
            }
            None => {}
        }
    }
    if guarded { Ok(()) } else { Err(missing) }
}

/// Whether a text holds all of our hooks, for this program.
fn holds(text: &str, own: &Path) -> bool {
    let command = |handler: &serde_json::Value| program_of(handler.get("command")?.as_str()?, NAME);
    let Some(program) = settings::ours(text).iter().find_map(|(_, handler)| command(handler))
    else {
        return false;
    };
    let found = program::locate(Path::new(&program)).and_then(|found| found.canonicalize().ok());
    let hooks = hooks_for(PINNED, &shell_word(&program));
    settings::is_strict(text)
        && settings::misfit(text).is_none()
        && settings::install(text, &hooks).as_deref() == Ok(text)
        && found.as_deref() == Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_program::write_program;

    const PROJECT: &str = ".claude/settings.json";
    const LOCAL: &str = ".claude/settings.local.json";

    /// What is said of these two settings, where `GUARD` is the guard's program.
    fn judged(project: &str, local: &str) -> Result<(), String> {
        let scratch = tempfile::tempdir().unwrap();
        let work = scratch.path().join("work");
        std::fs::create_dir_all(work.join(".claude")).unwrap();
        let own = write_program(scratch.path(), "jackline", "#!/bin/sh\n");
        let other = write_program(scratch.path(), "jackline-other", "#!/bin/sh\n");
        let named = |text: &str| {
            let text = text.replace("GUARD-OTHER", other.to_str().unwrap());
            text.replace("GUARD", own.to_str().unwrap())
        };
        for (file, text) in [(PROJECT, project), (LOCAL, local)] {
            if text != "absent" {
                std::fs::write(work.join(file), named(text)).unwrap();
            }
        }
        judge(&[PROJECT, LOCAL].map(|file| work.join(file)), &own)
    }

    /// Settings with all hooks of a guard that is this program.
    fn complete(program: &str) -> String {
        settings::install("", &hooks_for(PINNED, "jackline"))
            .unwrap()
            .replace("jackline hook", &format!("{program} hook"))
    }

    #[test]
    fn settings_that_still_hold_the_guard_may_change() {
        let good = complete("GUARD");
        let more = good.replacen('{', r#"{"model": "x", "env": {"RUST_LOG": "debug"},"#, 1);
        for (project, local) in [
            (good.as_str(), "absent"),
            ("absent", good.as_str()),
            ("{}", good.as_str()),
            (more.as_str(), "{}"),
            (good.as_str(), r#"{"disableAllHooks": false}"#),
            // The client ignores it, and keeps the other.
            (good.as_str(), "{ no json"),
        ] {
            assert_eq!(judged(project, local), Ok(()), "{project}\n{local}");
        }
    }

    #[test]
    fn settings_that_hold_it_no_longer_may_not() {
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
    fn settings_that_nobody_can_read_may_not_come() {
        let scratch = tempfile::tempdir().unwrap();
        let settings = scratch.path().join(PROJECT);
        std::fs::create_dir_all(&settings).unwrap();
        let said = judge(&[settings], Path::new("/jackline")).unwrap_err();
        assert!(said.contains("is not a file"), "{said}");
    }
}
