//! Whether the guard is installed here as it was tried out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jackline_runtime::home;

use super::settings::{Ours, Settings};
use super::{Actor, Line, Standing};
use crate::live::{OTHER_EVENTS, Scratch, run_program};

/// How long a program may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the settings of the client can be, for one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The directory of the person's own settings.
    pub user: Option<PathBuf>,
    /// The workspace.
    pub workspace: PathBuf,
}

impl Places {
    /// Where the client looks that a person starts in this workspace.
    pub fn of_machine(workspace: PathBuf) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the client is told this way, too")]
        let named = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|named| !named.is_empty());
        let user = named.map(PathBuf::from).or_else(|| home().map(|home| home.join(".claude")));
        Self { user, workspace }
    }

    fn files(&self) -> Vec<PathBuf> {
        let project = self.workspace.join(".claude");
        let user = self.user.iter().map(|user| user.join("settings.json"));
        user.chain(["settings.json", "settings.local.json"].map(|name| project.join(name)))
            .collect()
    }
}

/// Looks at the settings that apply to a workspace. `version` is our own.
pub fn inspect(places: &Places, version: &str) -> Vec<Line> {
    let mut settings = Vec::new();
    let mut unreadable = Vec::new();
    for file in places.files() {
        match Settings::read(&file) {
            Ok(found) => settings.extend(found),
            Err(why) => unreadable.push(why),
        }
    }
    let ours: Vec<Ours> = settings.iter().flat_map(Settings::ours).collect();
    let mut lines = vec![installed(&settings, &ours, places), switched_off(&settings, &unreadable)];
    if !ours.is_empty() {
        lines.push(every_event(&ours));
        lines.push(shut(&ours));
        lines.push(programs(&ours, version));
    }
    lines
}

fn line(name: &'static str, standing: Standing, detail: String) -> Line {
    Line { name, actor: Actor::Main, standing, detail }
}

fn installed(settings: &[Settings], ours: &[Ours], places: &Places) -> Line {
    let name = "the guard is installed here";
    if ours.is_empty() {
        let place = places.workspace.display();
        let detail =
            format!("no hook of ours applies to `{place}`; `jackline init claude` installs them");
        return line(name, Standing::Open, detail);
    }
    let files = settings.iter().filter(|settings| !settings.ours().is_empty());
    let files: Vec<String> =
        files.map(|settings| format!("`{}`", settings.file.display())).collect();
    line(name, Standing::Closed, format!("in {}", files.join(" and ")))
}

fn switched_off(settings: &[Settings], unreadable: &[String]) -> Line {
    let name = "hooks are not switched off";
    if let Some(why) = unreadable.first() {
        return line(name, Standing::Open, format!("{why}; the client can't read it either"));
    }
    let silenced = settings.iter().find_map(|one| Some((one.silencer()?, one.file.display())));
    match silenced {
        Some((key, file)) => {
            line(name, Standing::Open, format!("`{key}` is true in `{file}`; take it out"))
        }
        None => line(name, Standing::Closed, "nothing keeps them from running".to_owned()),
    }
}

fn every_event(ours: &[Ours]) -> Line {
    let name = "every event is hooked";
    let is_hooked = |event: &&str| ours.iter().any(|hook| hook.event == **event && hook.all_tools);
    let events = ["PreToolUse"].iter().chain(&OTHER_EVENTS);
    let missing: Vec<&str> = events.filter(|event| !is_hooked(event)).copied().collect();
    if missing.is_empty() {
        return line(name, Standing::Closed, format!("{} events", OTHER_EVENTS.len() + 1));
    }
    let missing = missing.join(", ");
    line(
        name,
        Standing::Open,
        format!("not {missing}; `jackline init claude` adds what is missing"),
    )
}

fn shut(ours: &[Ours]) -> Line {
    let name = "the gate believes our seal alone";
    let gates: Vec<&Ours> = ours.iter().filter(|hook| hook.event == "PreToolUse").collect();
    if !gates.is_empty() && gates.iter().all(|hook| hook.shuts) {
        return line(name, Standing::Closed, "and a failure shuts it".to_owned());
    }
    let detail = "a guard that fails would let calls run; `jackline init claude` mends it";
    line(name, Standing::Open, detail.to_owned())
}

fn programs(ours: &[Ours], version: &str) -> Line {
    let name = "its program is there, in this version";
    let mut programs: Vec<&PathBuf> = ours.iter().map(|hook| &hook.program).collect();
    programs.sort();
    programs.dedup();
    for program in programs {
        let shown = program.display();
        match version_of(program) {
            Some(found) if found == version => {}
            Some(found) => {
                let detail =
                    format!("`{shown}` is {found}, this is {version}; `jackline init claude`");
                return line(name, Standing::Open, detail);
            }
            None => {
                let detail = format!("`{shown}` does not answer; `jackline init claude` mends it");
                return line(name, Standing::Open, detail);
            }
        }
    }
    line(name, Standing::Closed, version.to_owned())
}

/// What a program says after its own name.
fn version_of(program: &Path) -> Option<String> {
    let scratch = Scratch::new().ok()?;
    let mut command = Command::new(program);
    scratch.enter(&mut command);
    command.arg("--version");
    let ended = run_program(command, scratch.root(), VERSION_TIMEOUT).ok()?;
    let said = ended.stdout.split_whitespace().nth(1)?;
    (ended.code == Some(0)).then(|| said.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::live::Guard;

    /// The names of the lines that are open.
    fn open(scratch: &Scratch, settings: &Value) -> Vec<&'static str> {
        scratch.write_settings(settings).unwrap();
        let places = Places { user: Some(scratch.home()), workspace: scratch.work() };
        let lines = inspect(&places, "9.9.9");
        let open = lines.into_iter().filter(|line| line.standing == Standing::Open);
        open.map(|line| line.name).collect()
    }

    fn world() -> (Scratch, Value) {
        let scratch = Scratch::new().unwrap();
        let text = "#!/bin/sh\necho jackline 9.9.9\n";
        let program = scratch.write_program("jackline", text).unwrap();
        let settings = Guard::of(&program).settings();
        (scratch, settings)
    }

    #[test]
    fn an_installation_that_is_as_it_should_be_is_closed() {
        let (scratch, settings) = world();
        assert_eq!(open(&scratch, &settings), [""; 0]);
    }

    #[test]
    fn what_is_not_as_it_should_be_is_named() {
        let (scratch, good) = world();
        assert_eq!(open(&scratch, &Value::Null), ["the guard is installed here"]);
        let mut off = good.clone();
        off["disableAllHooks"] = true.into();
        assert_eq!(open(&scratch, &off), ["hooks are not switched off"]);
        let mut few = good.clone();
        few["hooks"]["Stop"] = Value::Null;
        assert_eq!(open(&scratch, &few), ["every event is hooked"]);
        let mut soft = good.clone();
        soft["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"] = "continue".into();
        assert_eq!(open(&scratch, &soft), ["the gate believes our seal alone"]);
        let mut narrow = good.clone();
        narrow["hooks"]["PreToolUse"][0]["matcher"] = "Bash".into();
        assert_eq!(open(&scratch, &narrow), ["every event is hooked"]);
        scratch.write_program("jackline", "#!/bin/sh\necho jackline 0.0.1\n").unwrap();
        assert_eq!(open(&scratch, &good), ["its program is there, in this version"]);
        std::fs::remove_file(scratch.root().join("jackline")).unwrap();
        assert_eq!(open(&scratch, &good), ["its program is there, in this version"]);
    }

    #[test]
    fn settings_that_nobody_can_read_are_named() {
        let (scratch, _) = world();
        scratch.write(".claude/settings.local.json", "{ \"hooks\": ").unwrap();
        let places = Places { user: None, workspace: scratch.work() };
        let lines = inspect(&places, "9.9.9");
        let said = lines.iter().find(|line| line.name == "hooks are not switched off").unwrap();
        assert_eq!(said.standing, Standing::Open);
        assert!(said.detail.contains("settings.local.json"), "{said:?}");
    }
}
