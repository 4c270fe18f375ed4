//! Tests of what a new user meets: the scopes of `jackline init`, its next steps, the trust that a
//! definition needs, and an uninstall that leaves nothing behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::hook_support::{SESSION, hook_answer, payload};
use crate::init::InitProject;
use crate::pseudo_terminal::PseudoTerminal;
use crate::support::{CliOutput, CliWorld, run_with_input};

/// A definition whose completion check needs trust.
const NEEDS_TRUST: &str = "version: 1\nmode: enforce\ncompletion: { command: make test }\n";

/// Runs a command as the person of a project.
fn run_as_person(project: &InitProject, line: &str) -> CliOutput {
    let mut command = project.world.person_command();
    command.env("HOME", project.world.root().join("person")).args(line.split_whitespace());
    run_with_input(&mut command, b"")
}

fn start_on_terminal(project: &InitProject, line: &str) -> PseudoTerminal {
    let mut command = project.world.person_command();
    command.env("HOME", project.world.root().join("person")).env("TERM", "xterm");
    PseudoTerminal::start(command.args(line.split_whitespace()), 200, 60)
}

/// The commands that an output names as the next steps.
fn next_commands(output: &str) -> Vec<String> {
    let (_, steps) = output.split_once("\nnext: ").unwrap_or_else(|| panic!("{output}"));
    let quoted = steps.split('`').skip(1).step_by(2);
    quoted.filter_map(|word| word.strip_prefix("jackline ").map(ToOwned::to_owned)).collect()
}

/// Starts a session of a client in the workspace, and ends it.
fn run_session(world: &CliWorld) {
    hook_answer(world, &payload(world, "SessionStart", json!({"source": "startup"})));
    hook_answer(world, &payload(world, "SessionEnd", json!({"reason": "other"})));
}

#[test]
fn the_next_steps_of_every_scope_work() {
    for scope in ["", " --shared", " --user"] {
        let project = InitProject::in_git();
        let run = run_as_person(&project, &format!("init claude --yes --no-canary{scope}"));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(next_commands(&run.stdout), ["status", "enforce"], "{run:?}");
        // Before the first session, `status` names the definition for it.
        let status = run_as_person(&project, "status");
        assert_eq!((status.code, status.stderr.as_str()), (Some(0), ""), "{status:?}");
        let name = if scope == " --user" { "local/all-projects" } else { "local/work" };
        assert!(status.stdout.starts_with(&format!("{name} (observe)\n")), "{status:?}");
        let check = run_as_person(&project, "check");
        assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{check:?}");
        assert!(check.stdout.contains(&format!("{name} in mode observe")), "{check:?}");
        let enforce = run_as_person(&project, "enforce");
        assert_eq!((enforce.code, enforce.stderr.as_str()), (Some(0), ""), "{enforce:?}");
        assert!(enforce.stdout.contains("  + mode: enforce"), "{enforce:?}");
        let for_all = enforce.stdout.contains("applies to all your projects");
        assert_eq!(for_all, scope == " --user", "{enforce:?}");
        let status = run_as_person(&project, "status");
        assert!(status.stdout.starts_with(&format!("{name} (enforce)\n")), "{status:?}");
    }
}

#[test]
fn status_and_log_before_the_first_session_are_no_wrong_usage() {
    let project = InitProject::in_git();
    let begins = "no session has worked here yet; one begins when an agent starts here";
    for (line, stdout) in [
        ("status", begins),
        ("log", begins),
        ("log --objections", begins),
        ("status --json", "{\"session\":null}\n"),
        ("status --all", "no sessions yet\n"),
    ] {
        let run = run_as_person(&project, line);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{line}: {run:?}");
        assert!(run.stdout.contains(stdout), "{line}: {run:?}");
    }
    let log = run_as_person(&project, "log --json");
    assert_eq!((log.code, log.stdout.as_str(), log.stderr.as_str()), (Some(0), "", ""));
    for line in ["status nowhere", "log nowhere", "show"] {
        assert_eq!(run_as_person(&project, line).code, Some(2), "{line}");
    }
}

/// `jackline enforce` changes one word, so the comment above it must describe both modes.
#[test]
fn the_comment_above_the_mode_stays_true_when_the_mode_changes() {
    let project = InitProject::in_git();
    assert_eq!(run_as_person(&project, "init claude --yes --no-canary").code, Some(0));
    let observing = project.read("jackline.yaml");
    assert_eq!(run_as_person(&project, "enforce").code, Some(0));
    let enforcing = project.read("jackline.yaml");
    assert_eq!(enforcing, observing.replace("\nmode: observe\n", "\nmode: enforce\n"));
    let (comment, _) = enforcing.split_once("\nmode: ").unwrap();
    let (_, comment) = comment.rsplit_once("\n\n").unwrap();
    for part in ["# enforce: a call that", "# observe: every call", "`jackline enforce`"] {
        assert!(comment.contains(part), "{part}: {comment}");
    }
}

#[test]
fn the_next_steps_of_an_enforcing_definition_say_what_holds() {
    let project = InitProject::in_git();
    project.write("jackline.yaml", "version: 1\nmode: enforce\n");
    let run = run_as_person(&project, "init claude --yes --no-canary");
    assert!(run.stdout.contains("it enforces: denied calls don't run"), "{run:?}");
    assert!(!run.stdout.contains("would have been denied"), "{run:?}");
    assert_eq!(next_commands(&run.stdout), ["status", "observe"], "{run:?}");
    assert_eq!(run_as_person(&project, "observe").code, Some(0));

    let project = InitProject::in_git();
    project.write("jackline.yaml", "versoin: 1\n");
    let run = run_as_person(&project, "init claude --yes --no-canary");
    assert_eq!(next_commands(&run.stdout), ["check"], "{run:?}");
    assert_eq!(run_as_person(&project, "check").code, Some(1));
}

/// Without it, the hooks would find no definition in other directories.
#[test]
fn the_user_scope_has_a_definition_even_if_the_project_has_one() {
    let project = InitProject::in_git();
    project.write("jackline.yaml", "version: 1\n");
    let run = run_as_person(&project, "init claude --user --yes --no-canary");
    assert_eq!(run.code, Some(0), "{run:?}");
    let user = project.world.root().join("person/.config/jackline/jackline.yaml");
    assert!(fs::read_to_string(user).unwrap().contains("name: local/all-projects"));
}

#[test]
fn shared_settings_have_a_way_out_for_people_without_the_program() {
    let project = InitProject::in_git();
    let bin = project.world.root().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(crate::support::JACKLINE, bin.join("jackline")).unwrap();
    let mut command = project.command();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    command.env("PATH", path).args(["init", "claude", "--shared", "--yes", "--no-canary"]);
    let run = run_with_input(&mut command, b"");
    let warning = "where `jackline` is not installed, Claude Code blocks every call";
    assert!(run.code == Some(0) && run.stderr.contains(warning), "{run:?}");
    let settings: Value = serde_json::from_str(&project.read(".claude/settings.json")).unwrap();
    let gate = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    // A colleague has no `jackline`.
    let blocked = run_with_input(project.world.command("sh").args(["-c", gate]), b"{}");
    assert_eq!(blocked.code, Some(2), "{blocked:?}");
    for part in
        ["cargo install --path crates/cli", "disableAllHooks", ".claude/settings.local.json"]
    {
        assert!(blocked.stderr.contains(part), "{part}: {blocked:?}");
    }
    let uninstall = run_as_person(&project, "init claude --uninstall --yes");
    let there = "`jackline init claude --uninstall --shared` removes it there";
    assert!(uninstall.stdout.contains(there), "{uninstall:?}");
}

#[test]
fn a_definition_that_needs_trust_says_so_where_a_person_looks() {
    let project = InitProject::in_git();
    project.write("jackline.yaml", NEEDS_TRUST);
    let needs = "needs your trust: without it, this file may not run `make test`";
    let how = "to trust it, read it and run `jackline trust`";
    for line in ["init claude --yes --no-canary", "init claude --yes", "check", "status"] {
        let run = run_as_person(&project, line);
        assert!(run.stdout.contains(needs) && run.stdout.contains(how), "{line}: {run:?}");
    }
    run_session(&project.world);
    let status = run_as_person(&project, &format!("status {SESSION}")).stdout;
    let row = format!("to run `make test`: `jackline trust`, then `jackline reload {SESSION}`");
    assert!(status.contains(&row), "{status}");
    assert_eq!(run_as_person(&project, "trust --yes").code, Some(0));
    for line in ["init claude --yes", "check"] {
        let run = run_as_person(&project, line);
        assert!(!run.stdout.contains("needs your trust"), "{line}: {run:?}");
    }
}

#[test]
fn a_person_on_a_terminal_is_asked_for_trust() {
    let project = InitProject::in_git();
    project.write("jackline.yaml", NEEDS_TRUST);
    let is_trusted = || run_as_person(&project, "trust --list").stdout.contains("  trusted  ");
    let mut terminal = start_on_terminal(&project, "check");
    terminal.wait_for("as it is now? [y/N]");
    terminal.press("n\n");
    let (status, screen) = terminal.final_screen();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(screen.contains("not trusted; `jackline trust` trusts it later"), "{screen}");
    assert!(!is_trusted());
    let mut terminal = start_on_terminal(&project, "init claude --no-canary");
    terminal.wait_for("Write this? [y/N]");
    terminal.press("y\n");
    terminal.wait_for("as it is now? [y/N]");
    terminal.press("y\n");
    let (status, screen) = terminal.final_screen();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(is_trusted(), "{screen}");
}

/// A project in which the guard has worked and its definition has changed, and another project.
fn used_project() -> (InitProject, PathBuf) {
    let project = InitProject::in_git();
    assert_eq!(run_as_person(&project, "init claude --yes --no-canary").code, Some(0));
    assert_eq!(run_as_person(&project, "enforce").code, Some(0));
    run_session(&project.world);
    project.write(".jackline/BLOCKER.md", "x");
    let other = project.world.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("jackline.yaml"), "version: 1\n").unwrap();
    let mut command = project.world.person_command();
    let event = br#"{"session":"other","event":"session_started","workspace":"."}"#;
    let run = run_with_input(command.current_dir(&other).arg("stdio"), event);
    assert_eq!(run.code, Some(0), "{run:?}");
    (project, other)
}

fn session_names(project: &InitProject) -> Vec<String> {
    run_as_person(project, "status --all --json").session_ids()
}

#[test]
fn an_uninstall_says_what_stays_and_purge_removes_it() {
    let (project, other) = used_project();
    let uninstall = run_as_person(&project, "init claude --uninstall --yes");
    assert_eq!(uninstall.code, Some(0), "{uninstall:?}");
    let root = project.world.workspace();
    for part in [
        format!("{}  the definition, which changed", root.join("jackline.yaml").display()),
        format!("{}  reports and control files", root.join(".jackline").display()),
        "/sessions  1 session of this project, ".to_owned(),
        "to remove them: `jackline init claude --uninstall --purge`".to_owned(),
    ] {
        assert!(uninstall.stdout.contains(&part), "{part}: {uninstall:?}");
    }
    assert!(project.path("jackline.yaml").exists() && project.path(".jackline").exists());
    assert_eq!(session_names(&project), [SESSION, "other"]);

    let changed = project.read("jackline.yaml");
    let purge = run_as_person(&project, "init claude --uninstall --purge");
    assert_eq!(purge.code, Some(2), "it asks first: {purge:?}");
    let purge = run_as_person(&project, "init claude --uninstall --purge --yes");
    assert_eq!(purge.code, Some(0), "{purge:?}");
    assert!(purge.stdout.contains("removed 1 session of this project"), "{purge:?}");
    let backup = purge.stdout.lines().find(|line| line.contains("jackline.yaml  backup: "));
    let backup = backup.unwrap().split_once("backup: ").unwrap().1;
    assert_eq!(fs::read_to_string(backup).unwrap(), changed);
    let home = project.world.home();
    assert!(purge.stdout.contains(&format!("`rm -r {}` removes it", home.display())), "{purge:?}");
    assert!(!project.path("jackline.yaml").exists() && !project.path(".jackline").exists());
    assert_eq!(session_names(&project), ["other"]);
    assert!(other.join("jackline.yaml").exists());
    let again = run_as_person(&project, "init claude --uninstall --purge --yes");
    assert!(again.stdout.contains("nothing to do"), "{again:?}");
}

#[test]
fn a_purge_leaves_files_of_others_and_what_another_installation_needs() {
    let project = InitProject::in_git();
    project.write("jackline.yaml", "version: 1\n");
    for scope in ["", " --shared"] {
        let run = run_as_person(&project, &format!("init claude --yes --no-canary{scope}"));
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    run_session(&project.world);
    let run = run_as_person(&project, "init claude --uninstall --purge --yes");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(session_names(&project), [SESSION], "the shared installation needs it");
    let run = run_as_person(&project, "init claude --shared --uninstall --purge --yes");
    assert!(run.stdout.contains("stays, because `jackline init` did not write it"), "{run:?}");
    assert!(session_names(&project).is_empty());
    assert_eq!(project.read("jackline.yaml"), "version: 1\n");
}

#[test]
fn an_uninstall_on_a_terminal_asks_about_what_stays() {
    let (project, _) = used_project();
    let mut terminal = start_on_terminal(&project, "init claude --uninstall");
    terminal.wait_for("Remove this? [y/N]");
    terminal.press("y\n");
    terminal.wait_for("Remove these as well? [y/N]");
    terminal.press("y\n");
    let (status, screen) = terminal.final_screen();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(!project.path("jackline.yaml").exists() && !project.path(".jackline").exists());
    assert_eq!(session_names(&project), ["other"]);
}

/// An approval is for the name of a definition.
#[test]
fn an_approval_in_one_project_does_not_shut_another() {
    let project = InitProject::in_git();
    assert_eq!(run_as_person(&project, "init claude --yes --no-canary").code, Some(0));
    run_session(&project.world);
    assert_eq!(run_as_person(&project, "identity approve --yes").code, Some(0));
    let list = run_as_person(&project, "identity list").stdout;
    assert!(list.contains("  local/work  "), "{list}");
}

/// The output of a definition of 40 lines had 140 lines.
#[test]
fn check_is_short_and_lists_the_rules_of_packs_on_request() {
    let world = CliWorld::new(
        "version: 1\nname: a/b\nextends: [coding-agent]\nrules:\n  - name: mine\n    command: make\n    \
         deny: No.\n    examples: { deny: [make x], allow: [ls] }\n",
    );
    let short = world.jackline(&["check"]).stdout;
    assert!(short.starts_with("jackline.yaml: ok\n  a/b in mode enforce\n"), "{short}");
    assert!(short.lines().count() < 10 && short.contains("rule `mine`"), "{short}");
    assert!(short.contains("; `--details` lists the rules\n"), "{short}");
    let long = world.jackline(&["check", "--details"]).stdout;
    assert!(long.contains("git/push-force") && long.lines().count() > 100, "{long}");
}

#[test]
fn the_word_version_suggests_no_hidden_command() {
    let run = CliWorld::new("").jackline(&["version"]);
    assert_eq!(run.code, Some(2));
    assert!(!run.stderr.contains("verification"), "{run:?}");
}
