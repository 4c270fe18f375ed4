//! Tests of git commands in a guarded repository: only a command that would really change what
//! guards is refused, and a person's own git commands never fail because of Jackline.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::hook_support::{
    SESSION, bash_finished, bash_proposed, hook_answer, hook_command, parse_answer, payload,
    permission_decision, stop_payload,
};
use crate::support::{CliWorld, run_with_input};

const SETTINGS: &str = r#"{ "hooks": { "PreToolUse": "/usr/bin/jackline hook claude" } }"#;
const GUARD_FILES: [&str; 2] = ["jackline.yaml", ".claude/settings.json"];

/// How git treats the files that guard.
#[derive(Debug, Clone, Copy, PartialEq)]
enum GuardFiles {
    /// Committed on `work`; `old` does not have them.
    Committed,
    /// Committed on `old` and `work`.
    Everywhere,
    Ignored,
    Untracked,
}

const STATES: [GuardFiles; 4] =
    [GuardFiles::Committed, GuardFiles::Everywhere, GuardFiles::Ignored, GuardFiles::Untracked];

/// A repository with a branch `old`, and a branch `work` one commit later.
struct GuardedRepository {
    world: CliWorld,
    /// How many calls were proposed. Every call has its own id.
    calls: Cell<usize>,
}

impl GuardedRepository {
    fn new(mode: &str, files: GuardFiles) -> Self {
        let world = CliWorld::new(&format!("version: 1\nmode: {mode}\n"));
        let repository = Self { world, calls: Cell::new(0) };
        repository.git("init -q -b old");
        repository.write("a.txt", "1");
        repository.write("move.sh", "git switch -q old\n");
        repository.write(".claude/settings.json", SETTINGS);
        repository.git("add a.txt move.sh");
        if files == GuardFiles::Everywhere {
            repository.git("add jackline.yaml .claude");
        }
        repository.commit();
        repository.git("switch -q -c work");
        repository.write("a.txt", "2");
        match files {
            GuardFiles::Committed => repository.git("add jackline.yaml .claude"),
            GuardFiles::Ignored => {
                repository.write(".gitignore", "jackline.yaml\n.claude/\n");
                repository.git("add .gitignore");
            }
            GuardFiles::Everywhere | GuardFiles::Untracked => {}
        }
        repository.git("add a.txt");
        repository.commit();
        assert_eq!(hook_answer(&repository.world, &repository.started()), Value::Null);
        repository
    }

    fn started(&self) -> Value {
        payload(&self.world, "SessionStart", json!({"source": "startup"}))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.workspace().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn commit(&self) {
        self.git("commit -q -m x");
    }

    /// Runs a git command, as a person or as a call that was allowed. It must succeed.
    fn git(&self, args: &str) {
        self.run(&format!("git {args}"));
    }

    fn run(&self, line: &str) {
        let mut command = self.world.command("sh");
        command.args(["-c", line]);
        for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{name}_NAME"), "t").env(format!("{name}_EMAIL"), "t@example.org");
        }
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }

    /// The payload of a new call.
    fn proposed(&self, line: &str) -> Value {
        self.calls.set(self.calls.get() + 1);
        bash_proposed(&self.world, &format!("c{}", self.calls.get()), line)
    }

    fn propose(&self, line: &str) -> Value {
        hook_answer(&self.world, &self.proposed(line))
    }

    /// Ends the last proposed call.
    fn finish(&self, line: &str) -> Value {
        let call = format!("c{}", self.calls.get());
        hook_answer(&self.world, &bash_finished(&self.world, &call, line))
    }

    /// The session goes on: a call runs, and the turn ends.
    fn check_session_continues(&self) {
        assert_eq!(self.propose("ls"), Value::Null);
        assert_eq!(self.finish("ls"), Value::Null);
        assert_eq!(hook_answer(&self.world, &stop_payload(&self.world, false)), Value::Null);
    }

    fn has_guard_files(&self) -> bool {
        GUARD_FILES.iter().all(|name| self.path(name).exists())
    }
}

fn reason(answer: &Value) -> &str {
    answer.pointer("/hookSpecificOutput/permissionDecisionReason").and_then(Value::as_str).unwrap()
}

/// Whether git would take something that guards away.
fn takes_guard(line: &str, files: GuardFiles) -> bool {
    match files {
        GuardFiles::Committed => line.contains("old") || line.contains("HEAD~1"),
        GuardFiles::Everywhere => false,
        GuardFiles::Ignored => line == "git clean -fdx",
        GuardFiles::Untracked => line == "git clean -fdx" || line == "git stash -u",
    }
}

const COMMANDS: [&str; 7] = [
    "git switch old",
    "git checkout old",
    "git reset --hard HEAD~1",
    "git checkout .",
    "git restore .",
    "git stash -u",
    "git clean -fdx",
];

/// Brings the repository back to `work`, as a person would.
fn return_to_work(repository: &GuardedRepository, line: &str, was_run: bool) {
    if was_run && line.contains("reset") {
        repository.git("reset -q --hard ORIG_HEAD");
    }
    repository.git("switch -q old");
    repository.git("switch -q work");
    assert!(repository.has_guard_files(), "{line}");
}

#[test]
fn in_mode_enforce_git_may_not_take_what_guards() {
    for files in STATES {
        for line in COMMANDS {
            let repository = GuardedRepository::new("enforce", files);
            let answer = repository.propose(line);
            let is_denied = takes_guard(line, files);
            assert_eq!(
                permission_decision(&answer),
                is_denied.then_some("deny"),
                "{files:?} {line}"
            );
            if is_denied {
                assert_eq!(
                    reason(&answer),
                    format!(
                        "`jackline.yaml` is protected, and `{line}` would remove it\n-> leave it \
                         in place; a person can run this command in their own terminal"
                    )
                );
            } else {
                repository.run(line);
                assert_eq!(repository.finish(line), Value::Null, "{files:?} {line}");
                repository.check_session_continues();
            }
            return_to_work(&repository, line, !is_denied);
            repository.world.verify_and_replay(SESSION);
        }
    }
}

#[test]
fn in_mode_observe_git_may_take_what_a_person_can_check_out_again() {
    for files in STATES {
        for line in COMMANDS {
            let repository = GuardedRepository::new("observe", files);
            let answer = repository.propose(line);
            // Untracked and ignored files would be lost.
            let is_lost = files != GuardFiles::Committed && takes_guard(line, files);
            assert_eq!(permission_decision(&answer), is_lost.then_some("deny"), "{files:?} {line}");
            if !is_lost {
                repository.run(line);
                let told = repository.finish(line);
                if takes_guard(line, files) {
                    let person = told["systemMessage"].as_str().unwrap();
                    for name in GUARD_FILES {
                        assert!(person.contains(&format!("`{name}` was removed")), "{person}");
                        assert!(!repository.path(name).exists(), "{files:?} {line}");
                    }
                } else {
                    assert_eq!(told, Value::Null, "{files:?} {line}");
                }
                repository.check_session_continues();
            }
            return_to_work(&repository, line, !is_lost);
            repository.check_session_continues();
            repository.world.verify_and_replay(SESSION);
        }
    }
}

/// A script that Jackline can't read checks out a branch from before the guard.
#[test]
fn what_a_script_moves_with_git_is_not_restored() {
    let repository = GuardedRepository::new("enforce", GuardFiles::Committed);
    assert_eq!(repository.propose("sh move.sh"), Value::Null);
    repository.run("sh move.sh");
    let told = repository.finish("sh move.sh");
    let context = told.pointer("/hookSpecificOutput/additionalContext").unwrap().as_str().unwrap();
    assert!(context.contains("`jackline.yaml` was removed while a call was running"), "{context}");
    assert!(context.contains("git moved it, so it is not restored"), "{context}");
    assert!(!repository.path("jackline.yaml").exists());
    let refused = repository.propose("ls");
    assert!(reason(&refused).contains("`jackline.yaml`"), "{refused}");
    repository.git("switch -q work");
    let prompt = payload(&repository.world, "UserPromptSubmit", json!({"prompt": "go on"}));
    assert_eq!(hook_answer(&repository.world, &prompt), Value::Null);
    repository.check_session_continues();
    repository.world.verify_and_replay(SESSION);
}

#[test]
fn in_mode_observe_a_script_pauses_nothing_and_the_warning_names_the_file() {
    let repository = GuardedRepository::new("observe", GuardFiles::Committed);
    assert_eq!(repository.propose("sh move.sh"), Value::Null);
    repository.run("sh move.sh");
    let told = repository.finish("sh move.sh");
    assert!(told["systemMessage"].as_str().unwrap().contains("`jackline.yaml`"), "{told}");
    repository.check_session_continues();
    repository.git("switch -q work");
    repository.check_session_continues();
    repository.world.verify_and_replay(SESSION);
}

/// A script that removes a committed file without git: the file comes back, and git sees no change.
#[test]
fn what_a_script_removes_without_git_is_restored_in_mode_enforce_only() {
    for (mode, is_restored) in [("enforce", true), ("observe", false)] {
        let repository = GuardedRepository::new(mode, GuardFiles::Committed);
        assert_eq!(repository.propose("make clean"), Value::Null);
        fs::remove_file(repository.path("jackline.yaml")).unwrap();
        let told = repository.finish("make clean").to_string();
        assert!(told.contains("`jackline.yaml` was"), "{told}");
        assert_eq!(repository.path("jackline.yaml").exists(), is_restored, "{mode}");
        repository.git("checkout -q -- jackline.yaml");
        repository.git("switch -q old");
        repository.git("switch -q work");
    }
}

/// Settings without Jackline do not guard, for example if it is installed for the user.
#[test]
fn git_may_change_settings_without_the_guard() {
    for mode in ["enforce", "observe"] {
        let repository = GuardedRepository::new(mode, GuardFiles::Everywhere);
        repository.write(".claude/settings.json", "{}");
        repository.git("add .claude");
        repository.commit();
        for line in ["git checkout HEAD~1 -- .claude", "git reset --hard HEAD"] {
            // The earlier version starts the guard, so it can come but not go.
            assert_eq!(repository.propose(line), Value::Null, "{mode} {line}");
            repository.finish(line);
        }
        repository.write(".claude/settings.json", "{ \"model\": \"x\" }");
        assert_eq!(repository.propose("git checkout ."), Value::Null, "{mode}");
    }
}

/// The hook entry is not committed yet, so a checkout of everything would lose it.
#[test]
fn a_hook_entry_that_is_not_committed_is_kept_in_every_mode() {
    for mode in ["enforce", "observe"] {
        let repository = GuardedRepository::new(mode, GuardFiles::Everywhere);
        repository.write(".claude/settings.json", "{}");
        repository.git("add .claude");
        repository.commit();
        repository.write(".claude/settings.json", SETTINGS);
        for line in ["git checkout .", "git restore .", "git stash", "git reset --hard"] {
            let answer = repository.propose(line);
            assert!(
                reason(&answer).starts_with("`.claude/settings.json` is protected"),
                "{answer}"
            );
        }
    }
}

#[test]
fn a_new_session_on_a_branch_without_the_definition_can_check_it_out_again() {
    for mode in ["enforce", "observe"] {
        let repository = GuardedRepository::new(mode, GuardFiles::Committed);
        repository.git("switch -q old");
        let send = |mut event: Value| {
            event["session_id"] = json!("0b6c1f6a-0000-4000-8000-000000000002");
            hook_answer(&repository.world, &event)
        };
        let started = send(repository.started());
        let told = started["systemMessage"].as_str().unwrap();
        for text in
            ["no `jackline.yaml` in", "git switch work`", "git checkout work -- jackline.yaml`"]
        {
            assert!(told.contains(text), "{text}: {told}");
        }
        let world = &repository.world;
        for line in ["ls", "git switch work && ls", "git switch other"] {
            let answer = send(bash_proposed(world, "n1", line));
            assert!(reason(&answer).contains("git switch work"), "{mode} {line}: {answer}");
        }
        assert_eq!(send(bash_proposed(world, "n2", "git switch work")), Value::Null);
        repository.git("switch -q work");
        send(bash_finished(world, "n2", "git switch work"));
        let denied = send(bash_proposed(world, "n3", "rm jackline.yaml"));
        assert!(reason(&denied).contains("is protected"), "{mode}: {denied}");
    }
}

#[test]
fn the_definition_of_another_work_tree_is_kept_too() {
    let repository = GuardedRepository::new("enforce", GuardFiles::Committed);
    let main = repository.path("");
    let main = main.to_str().unwrap().trim_end_matches('/');
    repository.git("worktree add -q ../tree -b tree");
    let tree = repository.world.root().join("tree");
    let send = |mut event: Value| {
        event["cwd"] = json!(tree);
        event["session_id"] = json!("0b6c1f6a-0000-4000-8000-000000000001");
        let mut hook = hook_command(&repository.world);
        hook.current_dir(&tree).env("CLAUDE_PROJECT_DIR", &tree);
        parse_answer(&run_with_input(&mut hook, event.to_string().as_bytes()))
    };
    let propose = |call: &str, line: &str| send(bash_proposed(&repository.world, call, line));
    assert_eq!(send(repository.started()), Value::Null);
    for (call, line) in [
        ("t1", format!("git -C {main} checkout old")),
        ("t2", format!("cd {main} && git reset --hard HEAD~1")),
        ("t3", format!("git -C {main}/.claude switch old")),
    ] {
        let answer = propose(call, &line);
        let denied = format!("{main}/.claude/settings.json` is protected, and `");
        assert!(reason(&answer).contains(&denied), "{line}: {answer}");
    }
    assert_eq!(propose("t4", &format!("git -C {main} checkout -b new")), Value::Null);
}

#[test]
fn a_definition_that_only_changes_is_refused_in_mode_enforce() {
    for (mode, decision) in [("enforce", Some("deny")), ("observe", None)] {
        let repository = GuardedRepository::new(mode, GuardFiles::Everywhere);
        let text = fs::read_to_string(repository.path("jackline.yaml")).unwrap();
        repository.write("jackline.yaml", &format!("{text}# later\n"));
        for line in ["git checkout .", "git stash", "git reset --hard", "git checkout -f old"] {
            assert_eq!(permission_decision(&repository.propose(line)), decision, "{mode} {line}");
        }
    }
}

#[test]
fn without_git_the_careful_answer_holds_in_mode_enforce() {
    for (mode, decision) in [("enforce", Some("deny")), ("observe", None)] {
        let repository = GuardedRepository::new(mode, GuardFiles::Everywhere);
        let ask = |line: &str| {
            let mut hook = hook_command(&repository.world);
            let payload = repository.proposed(line);
            hook.env("PATH", repository.world.root());
            parse_answer(&run_with_input(&mut hook, payload.to_string().as_bytes()))
        };
        assert_eq!(permission_decision(&ask("git checkout .")), decision, "{mode}");
        assert_eq!(permission_decision(&ask("git switch old")), None, "{mode}");
    }
}

/// An earlier git command in the line changes the answer of git, so it counts for nothing.
#[test]
fn an_earlier_command_in_the_line_makes_the_answer_of_git_useless() {
    let repository = GuardedRepository::new("enforce", GuardFiles::Everywhere);
    for line in [
        "git rm -q --cached jackline.yaml; git clean -fdx",
        "GIT_WORK_TREE=. git clean -fdx",
        "git -c clean.requireForce=false clean -fdx",
    ] {
        assert_eq!(permission_decision(&repository.propose(line)), Some("deny"), "{line}");
    }
    assert_eq!(repository.propose("git status && git clean -fdx"), Value::Null);
}

#[test]
fn in_mode_observe_only_the_guard_itself_is_kept() {
    let world = CliWorld::new("version: 1\nmode: observe\nprotected: [LICENSE]\n");
    let workspace = world.workspace();
    fs::create_dir_all(workspace.join(".claude")).unwrap();
    fs::write(workspace.join(".claude/settings.json"), SETTINGS).unwrap();
    fs::create_dir_all(workspace.join("sub/.claude")).unwrap();
    fs::write(workspace.join("sub/.claude/settings.json"), "{}").unwrap();
    for (number, (line, decision)) in [
        ("rm jackline.yaml", Some("deny")),
        ("rm -rf .claude", Some("deny")),
        ("echo x > .claude/settings.json", Some("deny")),
        ("rm LICENSE", None),
        ("rm -rf sub", None),
        ("echo x > sub/.claude/settings.json", None),
        ("echo '{\"disableAllHooks\": true}' > .claude/settings.local.json", Some("deny")),
        ("echo {} > .claude/settings.local.json", None),
        ("python -c 'print(open(\"jackline.yaml\").read())'", None),
        ("rm -rf .jackline", None),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = hook_answer(&world, &bash_proposed(&world, &format!("c{number}"), line));
        assert_eq!(permission_decision(&answer), decision, "{line}");
    }
    let home = format!("rm -rf {}", world.home().display());
    let answer = hook_answer(&world, &bash_proposed(&world, "home", &home));
    assert_eq!(permission_decision(&answer), Some("deny"));
}

/// The definition is outside of the workspace, so no relative pattern reaches it.
#[test]
fn a_pattern_does_not_reach_a_definition_outside_of_the_workspace() {
    let world = CliWorld::new("version: 1\n");
    let elsewhere = world.root().join("elsewhere.yaml");
    fs::rename(world.workspace().join("jackline.yaml"), &elsewhere).unwrap();
    fs::create_dir_all(world.workspace().join(".claude")).unwrap();
    fs::write(world.workspace().join(".claude/settings.json"), SETTINGS).unwrap();
    let ask = |line: &str| {
        let mut hook = hook_command(&world);
        hook.arg("-d").arg(&elsewhere);
        let payload = bash_proposed(&world, line, line).to_string();
        parse_answer(&run_with_input(&mut hook, payload.as_bytes()))
    };
    assert_eq!(ask("rm -rf *"), Value::Null);
    assert_eq!(permission_decision(&ask("rm -rf ../*")), Some("deny"));
    let reason_of_all = ask("rm -rf /");
    assert!(
        reason(&reason_of_all).starts_with("`rm -rf /` would remove the whole workspace"),
        "{reason_of_all}"
    );
    assert!(!reason(&reason_of_all).contains(".claude/settings.json"), "{reason_of_all}");
}
