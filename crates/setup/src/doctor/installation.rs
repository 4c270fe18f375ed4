//! Whether the guard is installed here as it was tried out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Actor, Line, Standing};
use crate::install::holds_ours;
use jackline_clients::Client;
use jackline_clients::hook_line::shell_word;
use jackline_clients::program;
use jackline_clients::settings_file::{SettingsFileError, read, switched_off};
use jackline_clients::version::Version;

/// Settings with hooks of ours in them.
struct Found<'a> {
    client: &'static Client,
    file: &'a Path,
    text: String,
    ours: Vec<(String, Value)>,
}

/// Looks at the settings that the client reads here. `of_project` are those that the
/// installer would write, which may be of a directory above; `version` is the
/// client's, `own` our own.
pub fn inspect(
    client: &'static Client,
    files: &[PathBuf],
    of_project: &[PathBuf],
    version: Version,
    own: &str,
) -> Vec<Line> {
    let mut found = Vec::new();
    let mut silenced = switched_off(client, files.iter().cloned());
    for file in files {
        match read_ours(client, file) {
            Ok(settings) if settings.ours.is_empty() => {}
            Ok(settings) => {
                silenced.extend(client.installation.ignored_for(
                    Some(version),
                    file,
                    &settings.text,
                ));
                found.push(settings);
            }
            Err(SettingsFileError::Settings { path, source }) => {
                silenced.push(format!("`{}` {source}", path.display()));
            }
            Err(error) => silenced.push(error.to_string()),
        }
    }
    let mut lines = vec![installed(client, &found, of_project), heard(&silenced)];
    if !found.is_empty() {
        lines.extend([as_tried(client, &found, version), programs(client, &found, own)]);
    }
    lines
}

/// Reads settings, as far as the client can read them, too.
fn read_ours<'a>(client: &'static Client, file: &'a Path) -> Result<Found<'a>, SettingsFileError> {
    let text = read(file)?;
    let wrong = |source| SettingsFileError::Settings { path: file.to_owned(), source };
    client.installation.remove(&text, None).map_err(wrong)?;
    let ours = client.installation.own_hooks(&text);
    Ok(Found { client, file, text, ours })
}

impl Found<'_> {
    /// The programs that our hooks start.
    fn programs(&self) -> BTreeSet<String> {
        let program = |(_, handler): &(String, Value)| self.client.installation.program_of(handler);
        self.ours.iter().filter_map(program).collect()
    }

    /// The events at which something else is run than what was tried, by name;
    /// none where all is as the installer would write it.
    fn differences(&self, version: Version) -> Option<String> {
        let program = self.programs().pop_first().unwrap_or_default();
        let installation = self.client.installation;
        let tried = installation.hooks_for(version, &shell_word(&program));
        if installation.add(&self.text, &tried).as_ref() == Ok(&self.text) {
            return None;
        }
        let is_there = |event: &str, handler: &Value| {
            self.ours.iter().any(|(at, what)| at == event && what == handler)
        };
        let missing = tried.iter().filter(|hook| !is_there(hook.event, &hook.handler));
        let missing: Vec<&str> = missing.map(|hook| hook.event).collect();
        // All are there, among others, or not for all tools.
        let none = missing.is_empty();
        Some(if none { "not for all calls".to_owned() } else { missing.join(", ") })
    }
}

fn line(name: &'static str, standing: Standing, detail: String) -> Line {
    Line { name, actor: Actor::Main, standing, detail }
}

fn installed(client: &Client, found: &[Found<'_>], of_project: &[PathBuf]) -> Line {
    let name = "the guard is installed here";
    let above = of_project.iter().find(|file| holds_ours(client, file));
    if found.is_empty()
        && let Some(file) = above
    {
        // The settings lie in a directory of the project.
        let project = file.ancestors().nth(2).unwrap_or(file);
        let detail = format!(
            "the hooks are in `{}`, and the client reads settings only of the directory it is \
             started in; start it in `{}`, or install with `jackline init {} --user`",
            file.display(),
            project.display(),
            client.id
        );
        return line(name, Standing::Open, detail);
    }
    if found.is_empty() {
        let detail =
            format!("no hook of ours applies here; `jackline init {}` installs them", client.id);
        return line(name, Standing::Open, detail);
    }
    let files: Vec<String> =
        found.iter().map(|settings| format!("`{}`", settings.file.display())).collect();
    line(name, Standing::Closed, format!("in {}", files.join(" and ")))
}

fn heard(silenced: &[String]) -> Line {
    let name = "nothing keeps the hooks from running";
    match silenced {
        [] => line(name, Standing::Closed, "the client reads and runs them".to_owned()),
        reasons => line(name, Standing::Open, reasons.join("; ")),
    }
}

fn as_tried(client: &Client, found: &[Found<'_>], version: Version) -> Line {
    let name = "the hooks are those that were tried";
    for settings in found {
        if let Some(differences) = settings.differences(version) {
            let file = settings.file.display();
            let detail = format!(
                "in `{file}` they differ: {differences}; `jackline init {}` mends it",
                client.id
            );
            return line(name, Standing::Open, detail);
        }
    }
    line(name, Standing::Closed, "every event, to the letter".to_owned())
}

fn programs(client: &Client, found: &[Found<'_>], own: &str) -> Line {
    let name = "its program is there, in this version";
    for program in found.iter().flat_map(Found::programs) {
        // A program's name comes first.
        let said = program::version(Path::new(&program));
        match said.as_deref().and_then(|said| said.split_whitespace().nth(1)) {
            Some(said) if said == own => {}
            Some(said) => {
                let detail = format!(
                    "`{program}` is {said}, this is {own}; `jackline init {}` mends it",
                    client.id
                );
                return line(name, Standing::Open, detail);
            }
            None => {
                let detail =
                    format!("`{program}` does not answer; `jackline init {}` mends it", client.id);
                return line(name, Standing::Open, detail);
            }
        }
    }
    line(name, Standing::Closed, own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Scratch;
    use jackline_clients::claude::CLIENT;
    use jackline_clients::claude::settings::{PINNED, hooks_for};

    const FILE: &str = ".claude/settings.json";
    const PROGRAM: &str = "jackline, it's here";

    /// The lines that are open, with what was seen.
    fn open(scratch: &Scratch, text: &str) -> Vec<(&'static str, String)> {
        scratch.write(FILE, text).unwrap();
        let lines = inspect(&CLIENT, &[scratch.work().join(FILE)], &[], PINNED, "9.9.9");
        let open = lines.into_iter().filter(|line| line.standing == Standing::Open);
        open.map(|line| (line.name, line.detail)).collect()
    }

    /// An installation as it should be, with the text of its settings.
    fn world() -> (Scratch, String) {
        let scratch = Scratch::new().unwrap();
        let text = "#!/bin/sh\necho jackline 9.9.9\n";
        let program = scratch.write_program(PROGRAM, text).unwrap();
        let word = shell_word(program.to_str().unwrap());
        scratch.install(CLIENT.installation, &hooks_for(PINNED, &word)).unwrap();
        let text = scratch.read(FILE).unwrap();
        (scratch, text)
    }

    #[test]
    fn an_installation_that_is_as_it_should_be_is_closed() {
        let (scratch, good) = world();
        assert_eq!(open(&scratch, &good), []);
        assert_eq!(open(&scratch, &good.replacen('{', "{\"model\": \"x\",", 1)), []);
    }

    #[test]
    fn hooks_of_a_directory_above_guard_nothing_here() {
        let (scratch, _) = world();
        let (here, above) = (scratch.work().join("src").join(FILE), scratch.work().join(FILE));
        let lines = inspect(&CLIENT, &[here], &[above], PINNED, "9.9.9");
        let [line, _] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!(line.standing, Standing::Open);
        let root = format!("start it in `{}`", scratch.work().display());
        assert!(line.detail.contains(&root) && line.detail.contains("--user"), "{line:?}");
    }

    #[test]
    fn what_is_not_as_it_should_be_is_named() {
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
                "the hooks are those that were tried",
                "differ: Stop",
            ),
            (
                good.replacen("\"block\"", "\"continue\"", 1),
                "the hooks are those that were tried",
                "differ: PreToolUse",
            ),
            (
                good.replacen("\"*\"", "\"Bash\"", 1),
                "the hooks are those that were tried",
                "differ: not for all calls",
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
    fn a_program_that_is_another_one_or_gone_is_named() {
        let (scratch, good) = world();
        let name = "its program is there, in this version";
        scratch.write_program(PROGRAM, "#!/bin/sh\necho jackline 0.0.1\n").unwrap();
        assert_eq!(open(&scratch, &good).first().map(|(line, _)| *line), Some(name));
        std::fs::remove_file(scratch.root().join(PROGRAM)).unwrap();
        assert_eq!(open(&scratch, &good).first().map(|(line, _)| *line), Some(name));
    }

    #[test]
    fn settings_that_nobody_can_read_are_named() {
        let scratch = Scratch::new().unwrap();
        let open = open(&scratch, "{\n  \"hooks\": ");
        let (name, detail) = open.last().unwrap();
        assert_eq!(*name, "nothing keeps the hooks from running");
        assert!(detail.contains("settings.json") && detail.contains("line 2"), "{detail}");
    }
}
