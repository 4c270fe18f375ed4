//! `jackline init`: other people's files, changed with care and given back.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{JACKLINE, Run, World, feed};

/// A project without a definition, and a person with a home.
pub(crate) struct Project {
    pub(crate) world: World,
}

impl Project {
    pub(crate) fn new() -> Self {
        let world = World::new("version: 1\n");
        fs::remove_file(world.work().join("jackline.yaml")).unwrap();
        fs::create_dir(world.root().join("person")).unwrap();
        Self { world }
    }

    pub(crate) fn in_git() -> Self {
        let project = Self::new();
        let git = project.world.command("git").args(["init", "-q", "."]).status().unwrap();
        assert!(git.success());
        project
    }

    fn with_settings(text: &str) -> Self {
        let project = Self::new();
        project.write(".claude/settings.json", text);
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.world.work().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = self.world.command(JACKLINE);
        command.env("HOME", self.world.root().join("person"));
        command
    }

    pub(crate) fn init(&self, args: &[&str]) -> Run {
        feed(self.command().arg("init").args(args), b"")
    }

    fn install(&self) -> Run {
        let run = self.init(&["claude", "--yes"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    }

    fn uninstall(&self) -> Run {
        let run = self.init(&["claude", "--uninstall", "--yes"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let run = self.init(&[args, &["--json"]].concat());
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    /// Everything in the project, with what is in it.
    pub(crate) fn contents(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let names = self.world.tree().into_iter().filter(|name| name.starts_with("work"));
        names
            .map(|name| {
                let bytes = fs::read(self.world.root().join(&name)).ok();
                (name, bytes)
            })
            .collect()
    }

    fn backups(&self) -> usize {
        fs::read_dir(self.world.home().join("backups")).map_or(0, Iterator::count)
    }

    /// A client's program that says which version it is.
    fn client(&self, script: &str) -> PathBuf {
        let path = self.world.root().join("claude");
        let line = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#;
        let status = Command::new("sh").args(["-c", line]).arg(&path).arg(script).status();
        assert!(status.unwrap().success());
        path
    }
}

fn commands(settings: &str) -> Vec<(String, String)> {
    let settings: Value = serde_json::from_str(settings).unwrap();
    let mut found = Vec::new();
    for (event, groups) in settings["hooks"].as_object().unwrap() {
        for handler in groups[0]["hooks"].as_array().unwrap() {
            found.push((event.clone(), handler["command"].as_str().unwrap().to_owned()));
        }
    }
    found
}

#[test]
fn a_new_project_is_set_up_and_given_back_as_it_was() {
    let project = Project::in_git();
    let before = project.contents();
    let run = project.install();
    assert!(run.stderr.contains("which only this machine has"), "{}", run.stderr);
    assert!(run.stdout.contains("settings.json  new file"), "{}", run.stdout);
    assert!(run.stdout.contains("canary: not run: the program `claude` was not found"));
    assert!(run.stdout.contains("jackline enforce"));
    let commands = commands(&project.read(".claude/settings.json"));
    assert_eq!(commands.len(), 12);
    assert!(
        commands.iter().all(|(_, command)| command.contains(&format!("{JACKLINE} hook claude")))
    );
    assert!(project.read(".git/info/exclude").ends_with("\n.jackline/\n"));
    let check = project.world.jackline(&["check"]);
    assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{check:?}");
    assert!(project.read("jackline.yaml").contains("mode: observe"));
    project.uninstall();
    assert_eq!(project.contents(), before);
}

#[test]
fn the_rule_that_is_shown_is_one_that_works() {
    let project = Project::new();
    project.install();
    let text = project.read("jackline.yaml");
    let (head, rule) = text.split_once("#\n# rules:\n").unwrap();
    let rule = rule.replace("\n# ", "\n");
    let rule = rule.strip_prefix("# ").unwrap();
    project
        .write("jackline.yaml", &format!("{head}rules:\n{rule}").replace("observe\n", "enforce\n"));
    let run = project.world.jackline(&["check"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", project.read("jackline.yaml"));
    let run = project.world.jackline(&["explain", "git push -f origin main"]);
    assert!(run.stdout.contains("no-force-push"), "{run:?}");
}

#[test]
fn the_second_time_there_is_nothing_to_do() {
    let project = Project::with_settings("{ \"a\": 1 }\n");
    project.install();
    let (after, backups) = (project.contents(), project.backups());
    assert_eq!(backups, 1);
    let again = project.install();
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
    assert_eq!((project.contents(), project.backups()), (after, backups));
    project.uninstall();
    let again = project.uninstall();
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
}

/// The client reads no settings of a directory above the one it is started in.
#[test]
fn below_the_project_a_person_is_told_where_to_start_the_client() {
    let project = Project::in_git();
    let below = project.path("src");
    fs::create_dir(&below).unwrap();
    let root = project.world.work().canonicalize().unwrap();
    let start = format!("start `claude` in `{}`", root.display());
    for outcome in ["wrote", "nothing to do: the guard is installed in"] {
        let mut init = project.command();
        init.current_dir(&below).args(["init", "claude", "--yes"]);
        let run = feed(&mut init, b"");
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stdout.contains(outcome) && run.stderr.contains(&start), "{run:?}");
    }
    assert!(project.path(".claude/settings.json").is_file() && !below.join(".claude").exists());
    let run = project.install();
    assert!(!run.stderr.contains("start `claude`"), "{run:?}");
}

#[test]
fn any_layout_comes_back_byte_for_byte() {
    for text in [
        "",
        "\n",
        "{}",
        "{ }\n",
        "{\n}",
        "{\"a\":1}",
        "{ \"hooks\": {} }",
        "\u{feff}{\r\n\t// mine\r\n\t\"hooks\": { \"Stop\": [ ] }, /* x */\r\n}\r\n",
        "// a\n\n{ \"hooks\": { \"Stop\": [{ \"hooks\": [{\"command\":\"x\"}] },] , }, \"b\" : [ 1,2 ] } // z",
    ] {
        let project = Project::with_settings(text);
        // The client takes no comments, which is said with a one.
        let run = project.init(&["claude", "--yes"]);
        let strict = !text.contains("/*") && !text.contains("//");
        assert_eq!(run.code, Some(i32::from(!strict)), "{text}");
        assert_ne!(project.read(".claude/settings.json"), text);
        project.uninstall();
        assert_eq!(project.read(".claude/settings.json"), text);
        assert!(!project.path("jackline.yaml").exists());
    }
}

#[test]
fn what_was_changed_since_stays() {
    let project = Project::in_git();
    project.write(".claude/settings.json", "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n");
    project.install();
    let text = project.read(".claude/settings.json");
    let text = text.replacen("{\n", "{\n  // since\n  \"model\": \"x\",\n", 1);
    project.write(".claude/settings.json", &text);
    let exclude = format!("{}*.o\n", project.read(".git/info/exclude"));
    project.write(".git/info/exclude", &exclude);
    project.write("jackline.yaml", "version: 1\n");
    let run = project.uninstall();
    assert!(run.stdout.contains("is not what `jackline init` wrote, and stays"), "{}", run.stdout);
    let expected = "{\n  // since\n  \"model\": \"x\",\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n";
    assert_eq!(project.read(".claude/settings.json"), expected);
    assert_eq!(project.read(".git/info/exclude"), exclude.replace(".jackline/\n", ""));
    assert_eq!(project.read("jackline.yaml"), "version: 1\n");
}

#[test]
fn a_lost_state_home_costs_no_more_than_the_layout() {
    let project = Project::with_settings("{\n  \"a\": 1\n}\n");
    project.install();
    fs::remove_dir_all(project.world.home()).unwrap();
    project.uninstall();
    assert_eq!(project.read(".claude/settings.json"), "{\n  \"a\": 1\n}\n");
    assert!(!project.path("jackline.yaml").exists());
}

#[test]
fn an_older_installation_is_brought_up_to_date_and_still_given_back() {
    let text = "{ \"a\": 1 }";
    let project = Project::with_settings(text);
    let old = project.client("echo 2.0.50");
    let program = ["--no-canary", "--client-program", old.to_str().unwrap()];
    let run = project.init(&[&["claude", "--yes"], &program[..]].concat());
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("2.0.50 lets calls through"), "{}", run.stderr);
    let settings = project.read(".claude/settings.json");
    assert!(!settings.contains("PostToolBatch") && settings.contains("SubagentStart"));
    project.install();
    assert_eq!(commands(&project.read(".claude/settings.json")).len(), 12);
    project.uninstall();
    assert_eq!(project.read(".claude/settings.json"), text);
}

#[test]
fn a_client_that_does_not_say_its_version_gets_the_hooks_of_the_pinned_one() {
    let project = Project::new();
    for script in ["exit 1", "echo nonsense", "kill -9 $$"] {
        let client = project.client(script);
        let args = ["claude", "--dry-run", "--client-program", client.to_str().unwrap()];
        let run = project.init(&args);
        assert_eq!(run.code, Some(0));
        assert!(run.stderr.contains("does not say which version"), "{script}: {}", run.stderr);
        assert!(run.stdout.contains("PostToolBatch"));
    }
}

#[test]
fn nothing_is_written_without_a_word() {
    let project = Project::with_settings("{}");
    let before = project.contents();
    let run = project.init(&["claude"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("nobody can be asked here"), "{}", run.stderr);
    assert!(run.stdout.contains("  + "), "the difference is shown all the same");
    let run = project.init(&["claude", "--dry-run"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.ends_with("nothing was written\n"));
    assert_eq!(project.contents(), before);
    assert!(!project.world.home().exists());
}

#[test]
fn without_a_name_the_clients_that_are_there_are_taken() {
    let project = Project::new();
    let run = project.init(&["--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("jackline init claude"), "{}", run.stderr);
    project.write(".claude/settings.local.json", "{}");
    assert_eq!(project.init(&["--yes"]).code, Some(0));
    let run = project.init(&["emacs", "--yes"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(2), "error: there is no client `emacs`; known: `claude`\n")
    );
}

#[test]
fn the_settings_are_where_the_person_says() {
    let project = Project::new();
    assert_eq!(project.init(&["claude", "--local", "--yes"]).code, Some(0));
    assert!(project.path(".claude/settings.local.json").exists());
    assert!(!project.path(".claude/settings.json").exists());
    let user = project.json(&["claude", "--user", "--yes"]);
    let person = project.world.root().join("person");
    assert!(person.join(".claude/settings.json").exists());
    assert!(user["warnings"][0].as_str().unwrap().contains("would be asked twice"), "{user}");
    assert_eq!(project.init(&["claude", "--user", "--uninstall", "--yes"]).code, Some(0));
    assert!(!person.join(".claude").exists());
    assert!(project.path("jackline.yaml").exists(), "the other installation needs it");
    let elsewhere = project.world.root().join("conf");
    let mut command = project.command();
    command.env("CLAUDE_CONFIG_DIR", &elsewhere).args(["init", "claude", "--user", "--yes"]);
    assert_eq!(feed(&mut command, b"").code, Some(0));
    assert!(elsewhere.join("settings.json").exists());
}

#[test]
fn in_a_home_directory_the_settings_of_both_are_one_file() {
    let project = Project::new();
    for args in [&["claude", "--yes"][..], &["claude", "--yes"], &["claude", "--user", "--yes"]] {
        let mut command = project.command();
        let run = feed(command.env("HOME", project.world.work()).arg("init").args(args), b"");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    }
    project.uninstall();
    assert!(!project.path("jackline.yaml").exists() && !project.path(".claude").exists());
}

#[test]
fn from_below_the_project_it_is_the_project_that_is_guarded() {
    let project = Project::in_git();
    fs::create_dir_all(project.path("src/deep")).unwrap();
    let mut command = project.command();
    command.current_dir(project.path("src/deep")).args(["init", "claude", "--yes"]);
    assert_eq!(feed(&mut command, b"").code, Some(0));
    assert!(project.path(".claude/settings.json").exists());
    assert!(project.path("jackline.yaml").exists());
}

#[test]
fn a_worktree_has_its_list_in_the_repository() {
    let project = Project::in_git();
    let git = |args: &[&str]| {
        let mut command = project.world.command("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
        assert!(command.output().unwrap().status.success(), "{args:?}");
    };
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&["worktree", "add", "-q", "../tree"]);
    let mut command = project.command();
    let tree = project.world.root().join("tree");
    command.current_dir(&tree).args(["init", "claude", "--yes"]);
    assert_eq!(feed(&mut command, b"").code, Some(0));
    assert!(project.read(".git/info/exclude").contains(".jackline/"));
    assert!(tree.join(".claude/settings.json").exists());
}

#[test]
fn hooks_that_will_not_run_are_said_so_loudly() {
    for key in ["disableAllHooks", "allowManagedHooksOnly"] {
        let project = Project::new();
        project.write(".claude/settings.local.json", &format!("{{\"{key}\": true}}"));
        let run = project.init(&["claude", "--yes"]);
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains("THE HOOKS WILL NOT RUN"), "{}", run.stderr);
        assert!(run.stdout.contains("next: let `claude` run its hooks"), "{}", run.stdout);
        assert!(run.stderr.contains(key) && run.stderr.contains("settings.local.json"));
    }
    let project = Project::with_settings("{\n  \"a\": 1, // mine\n}\n");
    let run = project.init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("takes no comments"), "{}", run.stderr);
    assert!(run.stderr.contains("as in line 2; take them out"), "{}", run.stderr);
    assert!(run.stderr.contains("install with `--local`"), "{}", run.stderr);
    let project = Project::new();
    project.write(".claude/settings.local.json", "{} // mine\n");
    let run = project.init(&["claude", "--local", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("install with `--user`"), "{}", run.stderr);
    let odd = r#"{"hooks":{"Stop":[{"matcher":{"all":true},"hooks":[]}]}}"#;
    let project = Project::with_settings(odd);
    let old = project.client("echo 2.1.233");
    let run = project.init(&["claude", "--yes", "--client-program", old.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("`hooks.Stop[0].matcher` is not a text"), "{}", run.stderr);
}

#[test]
fn settings_that_cannot_be_read_are_left_alone() {
    for (text, says) in [
        ("{\n  \"a\": 1,\n  oops\n}", "line 3, column 3: "),
        ("[]", "the whole file must be an object, and is a list"),
        ("{\"hooks\": 1}", "`hooks` must be an object, and is a number"),
        ("{\"hooks\": {\"Stop\": {}}}", "`hooks.Stop` must be a list, and is an object"),
    ] {
        let project = Project::with_settings(text);
        let before = project.contents();
        for args in [&["claude", "--yes"][..], &["claude", "--yes", "--uninstall"]] {
            let run = project.init(args);
            assert_eq!(run.code, Some(2), "{run:?}");
            assert!(run.stderr.contains(says), "{}", run.stderr);
            assert!(run.stderr.contains("nothing was written"), "{}", run.stderr);
        }
        assert_eq!(project.contents(), before);
    }
    let project = Project::new();
    fs::create_dir(project.path(".claude")).unwrap();
    fs::write(project.path(".claude/settings.json"), b"{\"a\": \"\xff\"}").unwrap();
    assert!(project.init(&["claude", "--yes"]).stderr.contains("is not UTF-8"));
}

#[test]
fn what_is_no_file_is_left_alone() {
    let project = Project::new();
    let settings = project.path(".claude/settings.json");
    fs::create_dir_all(&settings).unwrap();
    let run = project.init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("is not a file"), "{}", run.stderr);
    fs::remove_dir(&settings).unwrap();
    symlink("settings.json", &settings).unwrap();
    let run = project.init(&["claude", "--yes"]);
    assert!(run.stderr.contains("lead in a circle"), "{}", run.stderr);
    fs::remove_file(&settings).unwrap();
    fs::File::create(&settings).unwrap().set_len((4 << 20) + 1).unwrap();
    let run = project.init(&["claude", "--yes"]);
    assert!(run.stderr.contains("longer than 4 MiB"), "{}", run.stderr);
    let project = Project::new();
    project.write(".claude", "a file");
    let run = project.init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("a file is where a directory belongs"), "{}", run.stderr);
}

#[test]
fn a_link_and_a_mode_stay() {
    let project = Project::new();
    project.write("dots/claude.json", "{}");
    let real = project.path("dots/claude.json");
    fs::set_permissions(&real, Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(project.path(".claude")).unwrap();
    symlink("../dots/claude.json", project.path(".claude/settings.json")).unwrap();
    project.install();
    assert!(project.path(".claude/settings.json").is_symlink());
    assert!(project.read("dots/claude.json").contains("hook claude"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    project.uninstall();
    assert!(project.path(".claude/settings.json").is_symlink());
    assert_eq!(project.read("dots/claude.json"), "{}");
}

/// Whether this test may write wherever it likes.
fn is_root(directory: &Path) -> bool {
    let probe = directory.join("probe");
    fs::create_dir(&probe).unwrap();
    fs::set_permissions(&probe, Permissions::from_mode(0o500)).unwrap();
    let is_root = fs::write(probe.join("x"), "").is_ok();
    fs::set_permissions(&probe, Permissions::from_mode(0o700)).unwrap();
    fs::remove_dir_all(&probe).unwrap();
    is_root
}

#[test]
fn what_may_not_be_written_is_said() {
    let project = Project::with_settings("{}");
    if is_root(&project.world.root()) {
        // Nobody forbids root anything; the same without a place to keep things.
        fs::write(project.world.home(), "a file").unwrap();
        let run = project.init(&["claude", "--yes"]);
        assert!(matches!(run.code, Some(2 | 3)), "{run:?}");
        assert_eq!(project.read(".claude/settings.json"), "{}");
        return;
    }
    let settings = project.path(".claude/settings.json");
    fs::set_permissions(&settings, Permissions::from_mode(0o400)).unwrap();
    let run = project.init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("make it writable"), "{}", run.stderr);
    assert_eq!(project.read(".claude/settings.json"), "{}");
    assert!(!project.path("jackline.yaml").exists());
}

#[test]
fn many_at_once_lose_nothing() {
    let project = Project::with_settings("{ \"a\": 1 }");
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..8).map(|_| scope.spawn(|| project.init(&["claude", "--yes"]))).collect();
        for run in runs {
            assert_eq!(run.join().unwrap().code, Some(0));
        }
    });
    assert_eq!(commands(&project.read(".claude/settings.json")).len(), 12);
    assert_eq!(project.install().stdout.matches("nothing to do").count(), 1);
    project.uninstall();
    assert_eq!(project.read(".claude/settings.json"), "{ \"a\": 1 }");
    assert_eq!(project.contents().len(), 3, "no temporary file stays: {:?}", project.world.tree());
}

#[test]
fn a_full_disk_loses_nothing() {
    let text = format!("{{ \"a\": \"{}\" }}", "x".repeat(10_000));
    let project = Project::with_settings(&text);
    // The old file can be kept, or not even that; the new one can't be written.
    for blocks in [16, 24] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {JACKLINE} init claude --yes");
        let mut command = project.world.command("sh");
        let run = feed(command.args(["-c", &script]), b"");
        assert!(matches!(run.code, Some(1..=3)), "{run:?}");
        assert!(run.stderr.contains("run this again"), "{}", run.stderr);
        assert_eq!(project.read(".claude/settings.json"), text);
        let names = project.world.tree();
        assert!(!names.iter().any(|name| name.contains(".jackline-")), "{names:?}");
    }
    project.install();
    project.uninstall();
    assert_eq!(project.read(".claude/settings.json"), text);
}

#[test]
fn programs_get_a_summary() {
    let project = Project::with_settings("{}");
    let dry = project.json(&["claude", "--dry-run"]);
    assert_eq!(dry["outcome"], "dry_run");
    assert_eq!(dry["changes"][1]["written"], false);
    let done = project.json(&["claude", "--yes"]);
    assert_eq!(done["outcome"], "installed");
    assert_eq!(done["changes"][0]["purpose"], "definition");
    assert_eq!(done["changes"][1]["action"], "change");
    assert_eq!(done["canary"][0]["result"], "not_run");
    let backup = done["changes"][1]["backup"].as_str().unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), "{}");
    assert_eq!(project.json(&["claude"])["outcome"], "nothing_to_do");
    assert_eq!(project.json(&["claude", "--uninstall", "--yes"])["outcome"], "uninstalled");
}

#[test]
fn the_plain_name_is_enough_where_it_is_this_program() {
    let project = Project::in_git();
    let bin = project.world.root().join("bin dir");
    fs::create_dir(&bin).unwrap();
    symlink(JACKLINE, bin.join("jackline")).unwrap();
    let mut command = project.command();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    command.env("PATH", path).args(["init", "claude", "--yes"]);
    let run = feed(&mut command, b"");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let commands = commands(&project.read(".claude/settings.json"));
    let stop = commands.iter().find(|(event, _)| event == "Stop").unwrap();
    assert_eq!(stop.1, "jackline hook claude");
}
