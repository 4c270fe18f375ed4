//! Rules that know what is committed, in real repositories.

use std::fs;
use std::process::Command;

use crate::support::{JACKLINE, Run, World, feed};
use crate::words::{prompt, run, stream, tell, words};

/// A repository with one commit on `main`.
struct Repository {
    world: World,
}

impl Repository {
    fn new() -> Self {
        Self::with("extends: [pack/git, pack/destructive]\n")
    }

    fn with(definition: &str) -> Self {
        let repository = Self { world: World::new(definition) };
        repository.git(&["init", "-q", "-b", "main"]);
        repository.write("kept.txt", "1");
        repository.write(".gitignore", "node_modules/\n");
        repository.commit();
        repository
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.world.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        self.git(&[&who[..], &["commit", "-q", "-m", "x"]].concat());
    }

    fn git(&self, args: &[&str]) {
        let mut command = self.world.command("git");
        command.args(args);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        assert!(command.status().unwrap().success(), "{args:?}");
    }

    /// What is decided on a command line. The prompt ends the call, so that the
    /// next one may have the same id.
    fn asked(&self, line: &str) -> String {
        words(&tell(&self.world, "s", &[run("c", line), prompt()])[0])
    }
}

const RESET: &str = "deny git/reset-hard";
const CLEAN: &str = "deny protected_write git/clean";

#[test]
fn a_hard_reset_is_for_a_clean_tree() {
    let repository = Repository::new();
    assert_eq!(repository.asked("git reset --hard"), "allow");
    repository.write("kept.txt", "2");
    for line in [
        "git reset --hard",
        "git reset --hard HEAD~1",
        "git -c core.pager=cat reset --hard",
        "cd .. && git -C work reset --hard",
        "cd /tmp; cd - ; git reset --hard",
        "bash -c 'git fetch && git reset --hard'",
    ] {
        assert_eq!(repository.asked(line), RESET, "{line}");
    }
    assert_eq!(repository.asked("git reset --soft HEAD"), "allow");
    repository.git(&["add", "-A"]);
    assert_eq!(repository.asked("git reset --hard"), RESET);
    repository.commit();
    assert_eq!(repository.asked("git reset --hard"), "allow");
    // What is not tracked survives a reset.
    repository.write("new.txt", "1");
    assert_eq!(repository.asked("git reset --hard"), "allow");
    repository.world.prove("s");
}

#[test]
fn a_checkout_of_everything_is_for_a_clean_tree() {
    let repository = Repository::new();
    repository.write("kept.txt", "2");
    for line in ["git checkout -- .", "git checkout .", "git restore ."] {
        assert!(repository.asked(line).starts_with("deny "), "{line}");
        assert!(repository.asked(line).contains(" git/"), "{line}");
    }
    assert_eq!(repository.asked("git checkout -- kept.txt"), "allow");
    repository.commit();
    // The definition lies there too, whatever git would make of it.
    assert_eq!(repository.asked("git checkout -- ."), "deny protected_write");
    assert_eq!(repository.asked("git checkout -f main"), "allow");
    repository.world.prove("s");
}

#[test]
fn a_clean_is_for_a_tree_without_new_files() {
    let repository = Repository::new();
    let of_git = |line: &str| repository.asked(line).contains("git/clean");
    assert!(!of_git("git clean -fd"));
    repository.write("node_modules/x/y.js", "ignored");
    assert!(!of_git("git clean -fd"));
    repository.write("new.txt", "never committed");
    assert_eq!(repository.asked("git clean -fd"), CLEAN);
    assert_eq!(repository.asked("git clean -n"), "allow");
    assert_eq!(repository.asked("git clean -fd node_modules"), "allow");
    repository.commit();
    assert!(!of_git("git clean -fd"));
    repository.world.prove("s");
}

#[test]
fn a_push_is_asked_about_on_the_branch_of_everybody() {
    let repository = Repository::new();
    let asked = "ask git/push-protected";
    for line in ["git push", "git push origin HEAD", "git push -u origin HEAD"] {
        assert_eq!(repository.asked(line), asked, "{line}");
    }
    repository.git(&["checkout", "-q", "-b", "fix-login"]);
    for line in ["git push", "git push origin HEAD", "git push -u origin HEAD"] {
        assert_eq!(repository.asked(line), "allow", "{line}");
    }
    assert_eq!(repository.asked("git push origin main"), asked);
    assert_eq!(repository.asked("git push origin HEAD:main"), asked);
    repository.world.prove("s");
}

#[test]
fn each_command_is_judged_by_the_repository_it_works_in() {
    let repository = Repository::new();
    repository.write("kept.txt", "dirty");
    fs::create_dir(repository.world.work().join("sub")).unwrap();
    repository.git(&["init", "-q", "sub"]);
    assert_eq!(repository.asked("git -C sub reset --hard"), "allow");
    assert_eq!(repository.asked("cd sub && git reset --hard"), "allow");
    assert_eq!(repository.asked("cd sub && git status; cd .. && git reset --hard"), RESET);
    repository.write("sub/new.txt", "1");
    assert_eq!(repository.asked("(cd sub; git clean -fd)"), "deny git/clean");
    repository.world.prove("s");
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
fn what_a_repository_ignores_is_told_apart() {
    let repository = Repository::with(KEEP_WORK);
    repository.write("node_modules/x/y.js", "1");
    repository.write("src/new.txt", "1");
    for (line, expected) in [
        ("rm -rf node_modules", "allow"),
        ("rm -rf ./node_modules/x", "allow"),
        ("rm -rf node_modules src", "deny keep-work"),
        ("rm -rf src", "deny keep-work"),
        ("rm kept.txt", "deny keep-work"),
    ] {
        assert_eq!(repository.asked(line), expected, "{line}");
    }
    // Nobody but git knows what is ignored.
    let path = with_git(&repository, "exec sleep 1000");
    let run = in_time(&repository, &path, "hangs", "rm -rf node_modules");
    assert_eq!(words(&run.verdicts()[0]), "deny keep-work");
    fs::write(repository.world.work().join(".gitignore"), "").unwrap();
    assert_eq!(repository.asked("rm -rf node_modules"), "deny keep-work");
    repository.world.prove("s");
    repository.world.prove("hangs");
}

/// A `git` in front of the real one. Another process writes it, so that no
/// thread that starts a program in the same moment holds it open: the system
/// runs no such file.
fn with_git(repository: &Repository, script: &str) -> String {
    let directory = repository.world.root().join("bin");
    fs::create_dir_all(&directory).unwrap();
    let mut writer = repository.world.command("sh");
    writer.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#]);
    assert!(writer.arg(directory.join("git")).arg(script).status().unwrap().success());
    format!("{}:/usr/bin:/bin", directory.display())
}

/// What is decided within a few seconds, whatever is in the path.
fn in_time(repository: &Repository, path: &str, session: &str, line: &str) -> Run {
    let mut command: Command = repository.world.command("/usr/bin/timeout");
    command.args(["10", JACKLINE, "stdio"]).env("PATH", path);
    let run = feed(&mut command, stream(session, &[run("c", line)]).as_bytes());
    assert_ne!(run.code, Some(124), "cut off after 10 s");
    run
}

#[test]
fn where_git_cannot_say_everything_counts_as_unsaved() {
    let repository = Repository::new();
    let nothing = repository.world.root().join("nowhere").display().to_string();
    for (name, path) in [("hangs", with_git(&repository, "exec sleep 1000")), ("none", nothing)] {
        for (number, (line, expected)) in [
            ("git reset --hard", RESET),
            ("git clean -fd", CLEAN),
            ("git -C a reset --hard; git -C b reset --hard; git -C c reset --hard", RESET),
            ("ls", "allow"),
        ]
        .into_iter()
        .enumerate()
        {
            let session = format!("{name}-{number}");
            let run = in_time(&repository, &path, &session, line);
            assert_eq!(words(&run.verdicts()[0]), expected, "{name}: {line}");
            repository.world.prove(&session);
        }
    }
}

/// The tree is clean, so it is the program that is asked, and what it starts
/// goes with it.
#[test]
fn a_git_that_hangs_leaves_nothing_behind() {
    let repository = Repository::new();
    let pids = repository.world.root().join("pids");
    let script = format!("sleep 1000 & echo $! >> {}; wait", pids.display());
    let path = with_git(&repository, &script);
    in_time(&repository, &path, "s", "git reset --hard");
    for pid in fs::read_to_string(&pids).unwrap().lines() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        assert!(stat.as_ref().map_or(true, |stat| stat.contains(") Z ")), "{stat:?}");
    }
}
