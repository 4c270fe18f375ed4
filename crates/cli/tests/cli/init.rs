//! Tests of `jackline init`: it changes the files of other programs carefully, and can undo the
//! changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// The file that `init` writes without a flag.
const SETTINGS: &str = ".claude/settings.local.json";

/// A project without a definition, and a person with a home directory.
pub(crate) struct InitProject {
    pub(crate) world: CliWorld,
}

impl InitProject {
    pub(crate) fn new() -> Self {
        let world = CliWorld::new("version: 1\n");
        fs::remove_file(world.workspace().join("jackline.yaml")).unwrap();
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
        project.write(SETTINGS, text);
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.world.workspace().join(name)
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

    pub(crate) fn run_init(&self, args: &[&str]) -> CliOutput {
        run_with_input(self.command().arg("init").args(args), b"")
    }

    fn install(&self) -> CliOutput {
        let run = self.run_init(&["claude", "--yes"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    }

    fn uninstall(&self) -> CliOutput {
        let run = self.run_init(&["claude", "--uninstall", "--yes"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    }

    pub(crate) fn init_json(&self, args: &[&str]) -> Value {
        let run = self.run_init(&[args, &["--json"]].concat());
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    /// Returns the path and the content of everything in the project.
    pub(crate) fn contents(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let names = self.world.file_tree().into_iter().filter(|name| name.starts_with("work"));
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

    /// Writes a client program that runs `script` instead of printing its version.
    fn write_client(&self, script: &str) -> PathBuf {
        let path = self.world.root().join("claude");
        let line = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#;
        let status = Command::new("sh").args(["-c", line]).arg(&path).arg(script).status();
        assert!(status.unwrap().success());
        path
    }
}

fn hook_commands(settings: &str) -> Vec<(String, String)> {
    let settings: Value = serde_json::from_str(settings).unwrap();
    let mut commands = Vec::new();
    for (event, groups) in settings["hooks"].as_object().unwrap() {
        for handler in groups[0]["hooks"].as_array().unwrap() {
            commands.push((event.clone(), handler["command"].as_str().unwrap().to_owned()));
        }
    }
    commands
}

#[test]
fn a_new_project_is_set_up_and_restored_byte_for_byte() {
    let project = InitProject::in_git();
    let before = project.contents();
    let run = project.install();
    assert_eq!(run.stderr, "");
    assert!(run.stdout.contains("settings.local.json  new file"), "{}", run.stdout);
    assert!(run.stdout.contains("  adds 12 hooks that run `jackline hook claude`: "), "{run:?}");
    assert!(run.stdout.lines().count() < 40 && !run.stdout.contains("onFailure"), "{run:?}");
    assert!(run.stdout.contains("canary: not run: the program `claude` was not found"));
    assert!(run.stdout.contains("jackline enforce"));
    let commands = hook_commands(&project.read(SETTINGS));
    assert_eq!(commands.len(), 12);
    assert!(
        commands.iter().all(|(_, command)| command.contains(&format!("{JACKLINE} hook claude")))
    );
    let ignored = "\n.jackline/\n**/.claude/settings.local.json\n";
    assert!(project.read(".git/info/exclude").ends_with(ignored));
    let check = project.world.jackline(&["check"]);
    assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{check:?}");
    let definition = project.read("jackline.yaml");
    assert!(
        definition.contains("\nmode: observe\n") && definition.contains("\nname: local/work\n")
    );
    project.uninstall();
    assert_eq!(project.contents(), before);
}

#[test]
fn the_hooks_give_the_agent_a_role_until_another_one_is_given() {
    let project = InitProject::new();
    let roles = || {
        let commands = hook_commands(&project.read(".claude/settings.local.json"));
        let words = commands.iter().filter_map(|(_, command)| {
            command.split_once("hook claude --role ").map(|(_, rest)| rest.to_owned())
        });
        let mut words: Vec<String> = words
            .map(|rest| rest.split([')', '\n']).next().unwrap_or_default().to_owned())
            .map(|rest| rest.trim_end_matches(" --sealed").to_owned())
            .collect();
        assert!(words.is_empty() || words.len() == commands.len(), "{commands:?}");
        words.dedup();
        words
    };
    project.install();
    assert_eq!(roles(), Vec::<String>::new());
    let install = |words: &[&str]| {
        let run = project.run_init(&[&["claude", "--yes"], words].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    };
    install(&["--role", "tester"]);
    assert_eq!(roles(), ["tester"]);
    // Without the option, the installed role stays.
    let settings = project.read(".claude/settings.local.json");
    install(&[]);
    assert_eq!(project.read(".claude/settings.local.json"), settings);
    install(&["--role", "release manager"]);
    assert_eq!(roles(), ["'release manager'"]);
    assert_eq!(project.run_init(&["claude", "--yes", "--role", ""]).code, Some(2));
    project.uninstall();
    assert!(!project.path(".claude/settings.local.json").exists());
}

#[test]
fn the_example_rule_in_the_definition_works() {
    let project = InitProject::new();
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
fn a_second_installation_changes_nothing() {
    let project = InitProject::with_settings("{ \"a\": 1 }\n");
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

/// The client ignores the settings of parent directories.
#[test]
fn in_a_subdirectory_a_person_is_told_where_to_start_the_client() {
    let project = InitProject::in_git();
    let below = project.path("src");
    fs::create_dir(&below).unwrap();
    let root = project.world.workspace().canonicalize().unwrap();
    let start = format!("start `claude` in `{}`", root.display());
    for outcome in ["wrote", "nothing to do: the guard is installed in"] {
        let mut init = project.command();
        init.current_dir(&below).args(["init", "claude", "--yes"]);
        let run = run_with_input(&mut init, b"");
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stdout.contains(outcome) && run.stderr.contains(&start), "{run:?}");
    }
    assert!(project.path(SETTINGS).is_file() && !below.join(".claude").exists());
    let run = project.install();
    assert!(!run.stderr.contains("start `claude`"), "{run:?}");
}

#[test]
fn settings_in_any_layout_are_restored_byte_for_byte() {
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
        let project = InitProject::with_settings(text);
        // The client does not accept comments, so the exit status is 1.
        let run = project.run_init(&["claude", "--yes"]);
        let strict = !text.contains("/*") && !text.contains("//");
        assert_eq!(run.code, Some(i32::from(!strict)), "{text}");
        assert_ne!(project.read(SETTINGS), text);
        project.uninstall();
        assert_eq!(project.read(SETTINGS), text);
        assert!(!project.path("jackline.yaml").exists());
    }
}

#[test]
fn later_changes_of_other_programs_are_not_reverted() {
    let project = InitProject::in_git();
    project.write(SETTINGS, "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n");
    project.install();
    let text = project.read(SETTINGS);
    let text = text.replacen("{\n", "{\n  // since\n  \"model\": \"x\",\n", 1);
    project.write(SETTINGS, &text);
    let exclude = format!("{}*.o\n", project.read(".git/info/exclude"));
    project.write(".git/info/exclude", &exclude);
    project.write("jackline.yaml", "version: 1\n");
    let run = project.uninstall();
    assert!(
        run.stdout.contains("jackline.yaml  the definition, which changed since `init` wrote it"),
        "{}",
        run.stdout
    );
    let expected = "{\n  // since\n  \"model\": \"x\",\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n";
    assert_eq!(project.read(SETTINGS), expected);
    let ours = ".jackline/\n**/.claude/settings.local.json\n";
    assert_eq!(project.read(".git/info/exclude"), exclude.replace(ours, ""));
    assert_eq!(project.read("jackline.yaml"), "version: 1\n");
}

#[test]
fn without_the_state_home_only_the_layout_is_lost() {
    let project = InitProject::with_settings("{\n  \"a\": 1\n}\n");
    project.install();
    fs::remove_dir_all(project.world.home()).unwrap();
    project.uninstall();
    assert_eq!(project.read(SETTINGS), "{\n  \"a\": 1\n}\n");
    assert!(!project.path("jackline.yaml").exists());
}

#[test]
fn an_older_installation_is_updated_and_can_still_be_undone() {
    let text = "{ \"a\": 1 }";
    let project = InitProject::with_settings(text);
    let old = project.write_client("echo 2.0.50");
    let program = ["--no-canary", "--client-program", old.to_str().unwrap()];
    let run = project.run_init(&[&["claude", "--yes"], &program[..]].concat());
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("2.0.50 lets calls through"), "{}", run.stderr);
    let settings = project.read(SETTINGS);
    assert!(!settings.contains("PostToolBatch") && settings.contains("SubagentStart"));
    project.install();
    assert_eq!(hook_commands(&project.read(SETTINGS)).len(), 12);
    project.uninstall();
    assert_eq!(project.read(SETTINGS), text);
}

#[test]
fn a_client_without_a_version_gets_the_hooks_of_the_pinned_version() {
    let project = InitProject::new();
    for script in ["exit 1", "echo nonsense", "kill -9 $$"] {
        let client = project.write_client(script);
        let args = ["claude", "--dry-run", "--client-program", client.to_str().unwrap()];
        let run = project.run_init(&args);
        assert_eq!(run.code, Some(0));
        assert!(run.stderr.contains("prints no version"), "{script}: {}", run.stderr);
        assert!(run.stdout.contains("PostToolBatch"));
        let run = project.run_init(&[&args[..], &["--diff"]].concat());
        assert!(
            run.stdout.contains("+         \"PostToolBatch\"")
                || run.stdout.contains("\"onFailure\": \"block\""),
            "{run:?}"
        );
    }
}

#[test]
fn nothing_is_written_without_a_confirmation() {
    let project = InitProject::with_settings("{}");
    let before = project.contents();
    let run = project.run_init(&["claude"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no terminal to confirm in"), "{}", run.stderr);
    assert!(run.stdout.contains("  adds 12 hooks"), "the change must be shown");
    let run = project.run_init(&["claude", "--dry-run"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.ends_with("nothing was written\n"));
    assert_eq!(project.contents(), before);
    assert!(!project.world.home().exists());
}

#[test]
fn without_a_name_all_detected_clients_are_set_up() {
    let project = InitProject::new();
    let run = project.run_init(&["--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("jackline init claude"), "{}", run.stderr);
    project.write(".claude/settings.local.json", "{}");
    assert_eq!(project.run_init(&["--yes"]).code, Some(0));
    let run = project.run_init(&["emacs", "--yes"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(2), "error: there is no client `emacs`; supported clients: `claude`\n")
    );
}

#[test]
fn the_options_choose_the_settings_file() {
    let project = InitProject::new();
    let shared = ".claude/settings.json";
    assert_eq!(project.run_init(&["claude", "--yes"]).code, Some(0));
    assert!(project.path(SETTINGS).exists() && !project.path(shared).exists());
    let run = project.run_init(&["claude", "--shared", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(project.path(shared).exists());
    assert!(run.stderr.contains("`jackline init claude --uninstall` removes it there"), "{run:?}");
    let run = project.run_init(&["claude", "--shared", "--uninstall", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let user = project.init_json(&["claude", "--user", "--yes"]);
    let person = project.world.root().join("person");
    assert!(person.join(shared).exists());
    assert!(
        user["warnings"][0].as_str().unwrap().contains("the client would call it twice"),
        "{user}"
    );
    assert_eq!(project.run_init(&["claude", "--user", "--uninstall", "--yes"]).code, Some(0));
    assert!(!person.join(".claude").exists());
    assert!(project.path("jackline.yaml").exists(), "the other installation needs it");
    let elsewhere = project.world.root().join("conf");
    let mut command = project.command();
    command.env("CLAUDE_CONFIG_DIR", &elsewhere).args(["init", "claude", "--user", "--yes"]);
    assert_eq!(run_with_input(&mut command, b"").code, Some(0));
    assert!(elsewhere.join("settings.json").exists());
}

#[test]
fn in_a_home_directory_user_and_project_settings_are_one_file() {
    let project = InitProject::new();
    let shared = &["claude", "--shared", "--yes"][..];
    for args in [shared, shared, &["claude", "--user", "--yes"]] {
        let mut command = project.command();
        let run = run_with_input(
            command.env("HOME", project.world.workspace()).arg("init").args(args),
            b"",
        );
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    }
    let run = project.run_init(&["claude", "--shared", "--uninstall", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!project.path("jackline.yaml").exists() && !project.path(".claude").exists());
}

#[test]
fn in_a_subdirectory_the_project_is_guarded() {
    let project = InitProject::in_git();
    fs::create_dir_all(project.path("src/deep")).unwrap();
    let mut command = project.command();
    command.current_dir(project.path("src/deep")).args(["init", "claude", "--yes"]);
    assert_eq!(run_with_input(&mut command, b"").code, Some(0));
    assert!(project.path(SETTINGS).exists());
    assert!(project.path("jackline.yaml").exists());
}

#[test]
fn a_worktree_uses_the_exclude_file_of_the_repository() {
    let project = InitProject::in_git();
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
    assert_eq!(run_with_input(&mut command, b"").code, Some(0));
    assert!(project.read(".git/info/exclude").contains(".jackline/"));
    assert!(tree.join(SETTINGS).exists());
}

#[test]
fn hooks_that_will_not_run_cause_a_clear_error() {
    for key in ["disableAllHooks", "allowManagedHooksOnly"] {
        let project = InitProject::new();
        project.write(".claude/settings.json", &format!("{{\"{key}\": true}}"));
        let run = project.run_init(&["claude", "--yes"]);
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains("THE HOOKS WILL NOT RUN"), "{}", run.stderr);
        assert!(run.stdout.contains("next: allow `claude` to run its hooks"), "{}", run.stdout);
        assert!(run.stderr.contains(key) && run.stderr.contains("settings.json"));
    }
    let project = InitProject::with_settings("{\n  \"a\": 1, // mine\n}\n");
    let run = project.run_init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("accepts no comments"), "{}", run.stderr);
    assert!(run.stderr.contains("because of line 2; remove them"), "{}", run.stderr);
    assert!(run.stderr.contains("install it with `--user`"), "{}", run.stderr);
    let project = InitProject::new();
    project.write(".claude/settings.json", "{} // mine\n");
    let run = project.run_init(&["claude", "--shared", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("install it without a flag"), "{}", run.stderr);
    let invalid = r#"{"hooks":{"Stop":[{"matcher":{"all":true},"hooks":[]}]}}"#;
    let project = InitProject::with_settings(invalid);
    let old = project.write_client("echo 2.1.233");
    let run = project.run_init(&["claude", "--yes", "--client-program", old.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("`hooks.Stop[0].matcher` is not a text"), "{}", run.stderr);
}

#[test]
fn unreadable_settings_are_not_changed() {
    for (text, error) in [
        ("{\n  \"a\": 1,\n  oops\n}", "line 3, column 3: "),
        ("[]", "the whole file must be an object, but is a list"),
        ("{\"hooks\": 1}", "`hooks` must be an object, but is a number"),
        ("{\"hooks\": {\"Stop\": {}}}", "`hooks.Stop` must be a list, but is an object"),
    ] {
        let project = InitProject::with_settings(text);
        let before = project.contents();
        for args in [&["claude", "--yes"][..], &["claude", "--yes", "--uninstall"]] {
            let run = project.run_init(args);
            assert_eq!(run.code, Some(2), "{run:?}");
            assert!(run.stderr.contains(error), "{}", run.stderr);
            assert!(run.stderr.contains("nothing was written"), "{}", run.stderr);
        }
        assert_eq!(project.contents(), before);
    }
    let project = InitProject::new();
    fs::create_dir(project.path(".claude")).unwrap();
    fs::write(project.path(SETTINGS), b"{\"a\": \"\xff\"}").unwrap();
    assert!(project.run_init(&["claude", "--yes"]).stderr.contains("is not UTF-8"));
}

#[test]
fn a_settings_path_that_is_not_a_file_is_not_changed() {
    let project = InitProject::new();
    let settings = project.path(SETTINGS);
    fs::create_dir_all(&settings).unwrap();
    let run = project.run_init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("is not a file"), "{}", run.stderr);
    fs::remove_dir(&settings).unwrap();
    symlink("settings.local.json", &settings).unwrap();
    let run = project.run_init(&["claude", "--yes"]);
    assert!(run.stderr.contains("links form a loop"), "{}", run.stderr);
    fs::remove_file(&settings).unwrap();
    fs::File::create(&settings).unwrap().set_len((4 << 20) + 1).unwrap();
    let run = project.run_init(&["claude", "--yes"]);
    assert!(run.stderr.contains("longer than 4 MiB"), "{}", run.stderr);
    let project = InitProject::new();
    project.write(".claude", "a file");
    let run = project.run_init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("is a file and not a directory"), "{}", run.stderr);
}

#[test]
fn a_symbolic_link_and_a_file_mode_are_preserved() {
    let project = InitProject::new();
    project.write("dots/claude.json", "{}");
    let real = project.path("dots/claude.json");
    fs::set_permissions(&real, Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(project.path(".claude")).unwrap();
    symlink("../dots/claude.json", project.path(SETTINGS)).unwrap();
    project.install();
    assert!(project.path(SETTINGS).is_symlink());
    assert!(project.read("dots/claude.json").contains("hook claude"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    project.uninstall();
    assert!(project.path(SETTINGS).is_symlink());
    assert_eq!(project.read("dots/claude.json"), "{}");
}

/// Returns whether this process ignores file permissions.
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
fn an_unwritable_file_is_reported() {
    let project = InitProject::with_settings("{}");
    if is_root(&project.world.root()) {
        // Root ignores permissions, so this tests an unusable state home instead.
        fs::write(project.world.home(), "a file").unwrap();
        let run = project.run_init(&["claude", "--yes"]);
        assert!(matches!(run.code, Some(2 | 3)), "{run:?}");
        assert_eq!(project.read(SETTINGS), "{}");
        return;
    }
    let settings = project.path(SETTINGS);
    fs::set_permissions(&settings, Permissions::from_mode(0o400)).unwrap();
    let run = project.run_init(&["claude", "--yes"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("make it writable"), "{}", run.stderr);
    assert_eq!(project.read(SETTINGS), "{}");
    assert!(!project.path("jackline.yaml").exists());
}

#[test]
fn parallel_installations_lose_nothing() {
    let project = InitProject::with_settings("{ \"a\": 1 }");
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..8).map(|_| scope.spawn(|| project.run_init(&["claude", "--yes"]))).collect();
        for run in runs {
            assert_eq!(run.join().unwrap().code, Some(0));
        }
    });
    assert_eq!(hook_commands(&project.read(SETTINGS)).len(), 12);
    assert_eq!(project.install().stdout.matches("nothing to do").count(), 1);
    project.uninstall();
    assert_eq!(project.read(SETTINGS), "{ \"a\": 1 }");
    assert_eq!(
        project.contents().len(),
        3,
        "a temporary file remains: {:?}",
        project.world.file_tree()
    );
}

#[test]
fn a_full_disk_loses_nothing() {
    let text = format!("{{ \"a\": \"{}\" }}", "x".repeat(10_000));
    let project = InitProject::with_settings(&text);
    // With 24 blocks the backup fits, with 16 not even that. The new file never fits.
    for blocks in [16, 24] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {JACKLINE} init claude --yes");
        let mut command = project.world.command("sh");
        let run = run_with_input(command.args(["-c", &script]), b"");
        assert!(matches!(run.code, Some(1..=3)), "{run:?}");
        assert!(run.stderr.contains("run this again"), "{}", run.stderr);
        assert_eq!(project.read(SETTINGS), text);
        let names = project.world.file_tree();
        assert!(!names.iter().any(|name| name.contains(".jackline-")), "{names:?}");
    }
    project.install();
    project.uninstall();
    assert_eq!(project.read(SETTINGS), text);
}

#[test]
fn status_says_that_settings_no_longer_start_the_guard() {
    let project = InitProject::in_git();
    project.install();
    let status = || run_with_input(project.command().arg("status"), b"").stdout;
    assert!(!status().contains("no longer starts the guard"), "{}", status());
    fs::remove_file(project.path(SETTINGS)).unwrap();
    assert!(status().contains("settings.local.json` no longer starts the guard"), "{}", status());
    project.install();
    project.uninstall();
    assert!(!status().contains("no longer starts the guard"), "{}", status());
}

#[test]
fn the_shared_settings_are_said_to_guard_only_branches_that_have_them() {
    let project = InitProject::in_git();
    let run = project.run_init(&["claude", "--shared", "--yes"]);
    let told = format!("{}{}", run.stdout, run.stderr);
    assert!(told.contains("a branch without this file"), "{told}");
}

#[test]
fn an_uninstall_in_one_work_tree_keeps_the_ignore_list_of_another() {
    let project = InitProject::in_git();
    project.install();
    let exclude = project.read(".git/info/exclude");
    for line in ["add jackline.yaml", "commit -q -m a", "worktree add -q ../tree -b tree"] {
        let mut git = project.world.command("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        assert!(git.args(line.split(' ')).status().unwrap().success(), "{line}");
    }
    let tree = project.world.root().join("tree");
    let in_tree = |args: &[&str]| {
        let mut init = project.command();
        init.current_dir(&tree).arg("init").args(args);
        let run = run_with_input(&mut init, b"");
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    };
    in_tree(&["claude", "--yes"]);
    let run = in_tree(&["claude", "--uninstall", "--yes"]);
    assert!(run.stdout.contains("keeps its lines, because"), "{run:?}");
    assert_eq!(project.read(".git/info/exclude"), exclude);
    project.uninstall();
    assert!(!project.read(".git/info/exclude").contains(".jackline/"));
}

#[test]
fn the_json_summary_lists_every_change() {
    let project = InitProject::with_settings("{}");
    let dry = project.init_json(&["claude", "--dry-run"]);
    assert_eq!(dry["outcome"], "dry_run");
    assert_eq!(dry["changes"][1]["written"], false);
    let done = project.init_json(&["claude", "--yes"]);
    assert_eq!(done["outcome"], "installed");
    assert_eq!(done["changes"][0]["purpose"], "definition");
    assert_eq!(done["changes"][1]["action"], "change");
    assert_eq!(done["canary"][0]["result"], "not_run");
    let backup = done["changes"][1]["backup"].as_str().unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), "{}");
    assert_eq!(project.init_json(&["claude"])["outcome"], "nothing_to_do");
    assert_eq!(project.init_json(&["claude", "--uninstall", "--yes"])["outcome"], "uninstalled");
}

#[test]
fn the_plain_name_is_used_if_the_path_finds_this_program() {
    let project = InitProject::in_git();
    let bin = project.world.root().join("bin dir");
    fs::create_dir(&bin).unwrap();
    symlink(JACKLINE, bin.join("jackline")).unwrap();
    let mut command = project.command();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    command.env("PATH", path).args(["init", "claude", "--yes"]);
    let run = run_with_input(&mut command, b"");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let commands = hook_commands(&project.read(SETTINGS));
    let stop = commands.iter().find(|(event, _)| event == "Stop").unwrap();
    assert_eq!(stop.1, "jackline hook claude");
}
