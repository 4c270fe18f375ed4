//! Tests of rules that depend on the state of a real git repository.

use std::fs;
use std::process::Command;

use crate::session_events::{
    event_lines, human_prompt, send_events, shell_proposed, verdict_summary,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// A repository with one commit on `main`.
struct Repository {
    world: CliWorld,
}

impl Repository {
    fn new() -> Self {
        Self::with_definition("extends: [pack/git, pack/destructive]\n")
    }

    fn with_definition(definition: &str) -> Self {
        let repository = Self { world: CliWorld::new(definition) };
        repository.git(&["init", "-q", "-b", "main"]);
        repository.write("tracked.txt", "1");
        repository.write(".gitignore", "node_modules/\n");
        repository.commit();
        repository
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.world.workspace().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        self.git(&[&identity[..], &["commit", "-q", "-m", "x"]].concat());
    }

    fn git(&self, args: &[&str]) {
        let mut command = self.world.command("git");
        command.args(args);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        assert!(command.status().unwrap().success(), "{args:?}");
    }

    /// Returns the decision on a shell command. The prompt ends the call, so the next call may have
    /// the same id.
    fn decide(&self, line: &str) -> String {
        verdict_summary(
            &send_events(&self.world, "s", &[shell_proposed("c", line), human_prompt()])[0],
        )
    }
}

const RESET_DENIED: &str = "deny git/reset-hard";
const CLEAN_DENIED: &str = "deny git/clean";

#[test]
fn a_hard_reset_needs_a_clean_tree() {
    let repository = Repository::new();
    assert_eq!(repository.decide("git reset --hard"), "allow");
    repository.write("tracked.txt", "2");
    for line in [
        "git reset --hard",
        "git reset --hard HEAD~1",
        "git -c core.pager=cat reset --hard",
        "cd .. && git -C work reset --hard",
        "cd /tmp; cd - ; git reset --hard",
        "bash -c 'git fetch && git reset --hard'",
    ] {
        assert_eq!(repository.decide(line), RESET_DENIED, "{line}");
    }
    assert_eq!(repository.decide("git reset --soft HEAD"), "allow");
    repository.git(&["add", "-A"]);
    assert_eq!(repository.decide("git reset --hard"), RESET_DENIED);
    repository.commit();
    assert_eq!(repository.decide("git reset --hard"), "allow");
    // An untracked file survives a reset.
    repository.write("new.txt", "1");
    assert_eq!(repository.decide("git reset --hard"), "allow");
    repository.world.verify_and_replay("s");
}

#[test]
fn a_checkout_of_everything_needs_a_clean_tree() {
    let repository = Repository::new();
    repository.write("tracked.txt", "2");
    for line in ["git checkout -- .", "git checkout .", "git restore ."] {
        assert!(repository.decide(line).starts_with("deny "), "{line}");
        assert!(repository.decide(line).contains(" git/"), "{line}");
    }
    assert_eq!(repository.decide("git checkout -- tracked.txt"), "allow");
    repository.commit();
    // The definition is protected too, and git would not change it.
    assert_eq!(repository.decide("git checkout -- ."), "allow");
    assert_eq!(repository.decide("git checkout -f main"), "allow");
    repository.world.verify_and_replay("s");
}

#[test]
fn a_clean_needs_a_tree_without_untracked_files() {
    let repository = Repository::new();
    let is_denied_by_git_rule = |line: &str| repository.decide(line).contains("git/clean");
    assert!(!is_denied_by_git_rule("git clean -fd"));
    repository.write("node_modules/x/y.js", "ignored");
    assert!(!is_denied_by_git_rule("git clean -fd"));
    repository.write("new.txt", "never committed");
    assert_eq!(repository.decide("git clean -fd"), CLEAN_DENIED);
    assert_eq!(repository.decide("git clean -n"), "allow");
    assert_eq!(repository.decide("git clean -fd node_modules"), "allow");
    repository.commit();
    assert!(!is_denied_by_git_rule("git clean -fd"));
    repository.world.verify_and_replay("s");
}

#[test]
fn a_push_to_a_protected_branch_asks_a_person() {
    let repository = Repository::new();
    let asked = "ask git/push-protected";
    for line in ["git push", "git push origin HEAD", "git push -u origin HEAD"] {
        assert_eq!(repository.decide(line), asked, "{line}");
    }
    repository.git(&["checkout", "-q", "-b", "fix-login"]);
    for line in ["git push", "git push origin HEAD", "git push -u origin HEAD"] {
        assert_eq!(repository.decide(line), "allow", "{line}");
    }
    assert_eq!(repository.decide("git push origin main"), asked);
    assert_eq!(repository.decide("git push origin HEAD:main"), asked);
    repository.world.verify_and_replay("s");
}

#[test]
fn each_command_is_decided_by_the_repository_in_which_it_runs() {
    let repository = Repository::new();
    repository.write("tracked.txt", "dirty");
    fs::create_dir(repository.world.workspace().join("sub")).unwrap();
    repository.git(&["init", "-q", "sub"]);
    assert_eq!(repository.decide("git -C sub reset --hard"), "allow");
    assert_eq!(repository.decide("cd sub && git reset --hard"), "allow");
    assert_eq!(repository.decide("cd sub && git status; cd .. && git reset --hard"), RESET_DENIED);
    repository.write("sub/new.txt", "1");
    assert_eq!(repository.decide("(cd sub; git clean -fd)"), "deny git/clean");
    repository.world.verify_and_replay("s");
}

const KEEP_WORK: &str = "\
rules:
  - name: keep-work
    tool: exec
    when: 'deletes.exists(p, !ignored(p))'
    deny: This may be the only copy.
    examples: { deny: [rm -rf src], allow: [ls src] }
";

#[test]
fn ignored_files_of_a_repository_are_recognised() {
    let repository = Repository::with_definition(KEEP_WORK);
    repository.write("node_modules/x/y.js", "1");
    repository.write("src/new.txt", "1");
    for (line, expected) in [
        ("rm -rf node_modules", "allow"),
        ("rm -rf ./node_modules/x", "allow"),
        ("rm -rf node_modules src", "deny keep-work"),
        ("rm -rf src", "deny keep-work"),
        ("rm tracked.txt", "deny keep-work"),
    ] {
        assert_eq!(repository.decide(line), expected, "{line}");
    }
    // If git does not answer, no file counts as ignored.
    let path = path_with_fake_git(&repository, "exec sleep 1000");
    let run = run_within_10_seconds(&repository, &path, "hangs", "rm -rf node_modules");
    assert_eq!(verdict_summary(&run.json_lines()[0]), "deny keep-work");
    fs::write(repository.world.workspace().join(".gitignore"), "").unwrap();
    assert_eq!(repository.decide("rm -rf node_modules"), "deny keep-work");
    repository.world.verify_and_replay("s");
    repository.world.verify_and_replay("hangs");
}

/// A `git` program in front of the real one in the path. Another process writes it: the system
/// refuses to run a file that a thread of this process still has open for writing.
fn path_with_fake_git(repository: &Repository, script: &str) -> String {
    let directory = repository.world.root().join("bin");
    fs::create_dir_all(&directory).unwrap();
    let mut writer = repository.world.command("sh");
    writer.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#]);
    assert!(writer.arg(directory.join("git")).arg(script).status().unwrap().success());
    format!("{}:/usr/bin:/bin", directory.display())
}

/// Runs `jackline stdio` with the given path, for at most 10 seconds.
fn run_within_10_seconds(
    repository: &Repository,
    path: &str,
    session: &str,
    line: &str,
) -> CliOutput {
    let mut command: Command = repository.world.command("/usr/bin/timeout");
    command.args(["10", JACKLINE, "stdio"]).env("PATH", path);
    let run =
        run_with_input(&mut command, event_lines(session, &[shell_proposed("c", line)]).as_bytes());
    assert_ne!(run.code, Some(124), "timed out after 10 s");
    run
}

#[test]
fn without_an_answer_of_git_everything_counts_as_uncommitted() {
    let repository = Repository::new();
    let nothing = repository.world.root().join("nowhere").display().to_string();
    for (name, path) in
        [("hangs", path_with_fake_git(&repository, "exec sleep 1000")), ("none", nothing)]
    {
        for (number, (line, expected)) in [
            ("git reset --hard", RESET_DENIED),
            // Without git, the definition counts as untracked too.
            ("git clean -fd", "deny protected_write git/clean"),
            ("git -C a reset --hard; git -C b reset --hard; git -C c reset --hard", RESET_DENIED),
            ("ls", "allow"),
        ]
        .into_iter()
        .enumerate()
        {
            let session = format!("{name}-{number}");
            let run = run_within_10_seconds(&repository, &path, &session, line);
            assert_eq!(verdict_summary(&run.json_lines()[0]), expected, "{name}: {line}");
            repository.world.verify_and_replay(&session);
        }
    }
}

/// The `git` program that hangs is stopped together with the processes that it started.
#[test]
fn a_git_that_hangs_leaves_no_processes() {
    let repository = Repository::new();
    let pids = repository.world.root().join("pids");
    let script = format!("sleep 1000 & echo $! >> {}; wait", pids.display());
    let path = path_with_fake_git(&repository, &script);
    run_within_10_seconds(&repository, &path, "s", "git reset --hard");
    for pid in fs::read_to_string(&pids).unwrap().lines() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        assert!(stat.as_ref().map_or(true, |stat| stat.contains(") Z ")), "{stat:?}");
    }
}
