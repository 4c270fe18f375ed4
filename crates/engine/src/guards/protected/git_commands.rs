//! What a `git` command would do to the work tree, as a question that git can answer.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use jackline_shell::{GitCommand, ShellCommand};

use crate::facts::GitChange;

/// The tree without files, which every repository knows.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Options of commands that continue or end an operation in progress, or that ask a person.
const UNPREDICTABLE_OPTIONS: [&str; 15] = [
    "abort",
    "continue",
    "skip",
    "quit",
    "edit-todo",
    "patch",
    "p",
    "interactive",
    "i",
    "ours",
    "theirs",
    "pathspec-from-file",
    "pathspec-file-nul",
    "recurse-submodules",
    "allow-unrelated-histories",
];

/// Options of `git clean` that a dry run gets too.
const CLEAN_FLAGS: [&str; 4] = ["d", "x", "X", "f"];

/// Returns what a command does to the work tree. `None` if it does nothing to it, or if git can't
/// predict it.
pub(super) fn git_change(command: &ShellCommand<'_>) -> Option<GitChange> {
    let git = command.git_command().filter(|git| !git.has_settings)?;
    let applies_patch = matches!(git.name, "apply" | "am");
    let unpredictable =
        UNPREDICTABLE_OPTIONS.iter().filter(|name| !(applies_patch && **name == "p"));
    if unpredictable.into_iter().any(|name| git.has_option(&[name])) {
        return None;
    }
    match git.name {
        "switch" => switch(&git),
        "checkout" => checkout(&git),
        "restore" => restore(&git),
        "reset" => reset(&git),
        "stash" => stash(&git),
        "clean" => clean(&git),
        "merge" => Some(GitChange::Merge { with: commits_or_upstream(&git) }),
        "pull" => Some(pull(&git)),
        "rebase" => Some(rebase(&git)),
        "cherry-pick" | "revert" => pick(&git),
        "apply" | "am" => patch(&git),
        _ => None,
    }
}

fn move_to(commit: &str, discards: bool) -> GitChange {
    // `-` is the branch that was checked out before.
    let commit = if commit == "-" { "@{-1}" } else { commit };
    GitChange::Move { to: commit.to_owned(), discards }
}

fn switch(git: &GitCommand<'_>) -> Option<GitChange> {
    let discards = git.has_option(&["f", "force", "discard-changes"]);
    if git.has_option(&["orphan"]) {
        return Some(move_to(EMPTY_TREE, discards));
    }
    git.operands.first().map(|commit| move_to(commit, discards))
}

fn checkout(git: &GitCommand<'_>) -> Option<GitChange> {
    let discards = git.has_option(&["f", "force"]);
    if git.option_value(&["b", "B", "orphan"]).is_some() {
        return git.operands.first().map(|commit| move_to(commit, discards));
    }
    let operands = owned(&git.operands);
    match (git.before_dashes, operands.as_slice()) {
        (_, []) if discards => Some(move_to("HEAD", true)),
        (_, []) => None,
        (Some(1), [commit]) => Some(move_to(commit, discards)),
        (Some(0), paths) => {
            Some(GitChange::Restore { from: None, paths: paths.to_vec(), removes: false })
        }
        (Some(1), [commit, paths @ ..]) => {
            let from = Some(commit.clone());
            Some(GitChange::Restore { from, paths: paths.to_vec(), removes: false })
        }
        (Some(_), _) => None,
        (None, [commit]) if commit == "-" || git.has_option(&["detach", "t", "track"]) => {
            Some(move_to(commit, discards))
        }
        (None, _) => Some(GitChange::Checkout { operands, discards }),
    }
}

fn restore(git: &GitCommand<'_>) -> Option<GitChange> {
    let is_staged = git.has_option(&["staged", "S"]);
    if git.operands.is_empty() || (is_staged && !git.has_option(&["worktree", "W"])) {
        return None;
    }
    let from = git.option_value(&["s", "source"]).map(ToString::to_string);
    let from = from.or_else(|| is_staged.then(|| "HEAD".to_owned()));
    let removes = !git.has_option(&["overlay"]);
    Some(GitChange::Restore { from, paths: owned(&git.operands), removes })
}

fn reset(git: &GitCommand<'_>) -> Option<GitChange> {
    let keeps = git.has_option(&["keep"]);
    (keeps || git.has_option(&["hard", "merge"]))
        .then(|| move_to(git.operands.first().unwrap_or(&"HEAD"), !keeps))
}

fn stash(git: &GitCommand<'_>) -> Option<GitChange> {
    let (action, rest) = match git.operands.split_first() {
        Some((action @ (&"push" | &"save" | &"pop" | &"apply"), rest)) => (*action, rest),
        // Without `--`, the first operand is an action such as `list`.
        Some(_) if git.before_dashes != Some(0) => return None,
        _ => ("push", git.operands.as_slice()),
    };
    match action {
        "pop" | "apply" => {
            let entry = rest.first().unwrap_or(&"0");
            let is_number = entry.bytes().all(|byte| byte.is_ascii_digit());
            let entry =
                if is_number { alloc::format!("stash@{{{entry}}}") } else { (*entry).to_owned() };
            Some(GitChange::Unstash { entry })
        }
        _ if git.has_option(&["staged", "S"]) => None,
        _ => {
            let ignored = git.has_option(&["a", "all"]);
            let untracked = ignored || git.has_option(&["u", "include-untracked"]);
            // The operands of `save` are a message.
            let paths = if action == "save" { Vec::new() } else { owned(rest) };
            Some(GitChange::Stash { paths, untracked, ignored })
        }
    }
}

fn clean(git: &GitCommand<'_>) -> Option<GitChange> {
    if git.has_option(&["n", "dry-run"]) {
        return None;
    }
    let mut args: Vec<String> = Vec::new();
    for (option, value) in &git.options {
        match (*option, value) {
            ("force", _) => args.push("-f".to_owned()),
            (flag, _) if CLEAN_FLAGS.contains(&flag) => args.push(alloc::format!("-{flag}")),
            ("e" | "exclude", Some(pattern)) => args.push(alloc::format!("--exclude={pattern}")),
            ("q" | "quiet", _) => {}
            _ => return None,
        }
    }
    args.push("--".to_owned());
    args.extend(owned(&git.operands));
    Some(GitChange::Clean { args })
}

fn pull(git: &GitCommand<'_>) -> GitChange {
    // What the remote repository has is not known before the command runs. The last known state is
    // the best answer.
    let with = match git.operands.as_slice() {
        [] | [_] => upstream(),
        [remote, branches @ ..] => {
            branches.iter().map(|branch| alloc::format!("{remote}/{branch}")).collect()
        }
    };
    GitChange::Merge { with }
}

fn rebase(git: &GitCommand<'_>) -> GitChange {
    let mut with = commits_or_upstream(git);
    if let Some(onto) = git.option_value(&["onto"]) {
        with.push(onto.to_owned());
    }
    GitChange::Merge { with }
}

fn pick(git: &GitCommand<'_>) -> Option<GitChange> {
    let is_range = |commit: &&str| commit.contains("..") || commit.starts_with('^');
    if git.operands.is_empty()
        || git.operands.iter().any(is_range)
        || git.option_value(&["m", "mainline"]).is_some_and(|parent| parent != "1")
        || git.has_option(&["n", "no-commit"]) && git.operands.len() > 1
    {
        return None;
    }
    Some(GitChange::Pick { commits: owned(&git.operands), reverts: git.name == "revert" })
}

fn patch(git: &GitCommand<'_>) -> Option<GitChange> {
    let only_looks = git.has_option(&["check", "stat", "numstat", "summary"]);
    let moves_paths = git.has_option(&["p", "directory", "cached", "unsafe-paths", "R", "reverse"]);
    let from_input = git.operands.is_empty() || git.operands.contains(&"-");
    (!only_looks && !moves_paths && !from_input)
        .then(|| GitChange::Patch { files: owned(&git.operands) })
}

fn commits_or_upstream(git: &GitCommand<'_>) -> Vec<String> {
    if git.operands.is_empty() { upstream() } else { owned(&git.operands) }
}

fn upstream() -> Vec<String> {
    vec!["@{upstream}".to_owned()]
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use jackline_shell::understand;

    use super::*;

    fn change(line: &str) -> Option<GitChange> {
        git_change(&understand(line).commands[0])
    }

    fn restored(from: Option<&str>, paths: &[&str], removes: bool) -> GitChange {
        GitChange::Restore { from: from.map(ToOwned::to_owned), paths: owned(paths), removes }
    }

    fn stashed(paths: &[&str], untracked: bool, ignored: bool) -> GitChange {
        GitChange::Stash { paths: owned(paths), untracked, ignored }
    }

    #[test]
    fn a_command_that_checks_out_a_commit_moves_there() {
        for (line, to, discards) in [
            ("git switch old", "old", false),
            ("git switch -f old", "old", true),
            ("git switch -", "@{-1}", false),
            ("git switch -c new old", "old", false),
            ("git switch --orphan new", EMPTY_TREE, false),
            ("git checkout -b new old", "old", false),
            ("git checkout old --", "old", false),
            ("git checkout --detach old", "old", false),
            ("git checkout -f", "HEAD", true),
            ("git reset --hard", "HEAD", true),
            ("git reset --hard HEAD~1", "HEAD~1", true),
            ("git reset --keep old", "old", false),
        ] {
            assert_eq!(change(line), Some(move_to(to, discards)), "{line}");
        }
    }

    #[test]
    fn a_command_that_restores_files_names_its_source() {
        assert_eq!(change("git restore ."), Some(restored(None, &["."], true)));
        assert_eq!(
            change("git restore -s old a b"),
            Some(restored(Some("old"), &["a", "b"], true))
        );
        assert_eq!(change("git restore -SW a"), Some(restored(Some("HEAD"), &["a"], true)));
        assert_eq!(change("git checkout -- a"), Some(restored(None, &["a"], false)));
        assert_eq!(change("git checkout old -- a"), Some(restored(Some("old"), &["a"], false)));
        let operands = owned(&["."]);
        assert_eq!(
            change("git checkout ."),
            Some(GitChange::Checkout { operands, discards: false })
        );
    }

    #[test]
    fn a_stash_takes_or_gives_back() {
        assert_eq!(change("git stash"), Some(stashed(&[], false, false)));
        assert_eq!(change("git stash -u"), Some(stashed(&[], true, false)));
        assert_eq!(change("git stash push -a -m x -- src"), Some(stashed(&["src"], true, true)));
        let popped = |entry: &str| Some(GitChange::Unstash { entry: entry.to_owned() });
        assert_eq!(change("git stash pop"), popped("stash@{0}"));
        assert_eq!(change("git stash apply 2"), popped("stash@{2}"));
        assert_eq!(change("git stash list"), None);
    }

    #[test]
    fn a_clean_becomes_a_dry_run_with_the_same_options() {
        let args = |args: &[&str]| Some(GitChange::Clean { args: owned(args) });
        assert_eq!(change("git clean -fdx"), args(&["-f", "-d", "-x", "--"]));
        assert_eq!(change("git clean -f -e keep a"), args(&["-f", "--exclude=keep", "--", "a"]));
        assert_eq!(change("git clean -ndx"), None);
        assert_eq!(change("git clean -i"), None);
    }

    #[test]
    fn joined_commits_are_named() {
        let merged = |with: &[&str]| Some(GitChange::Merge { with: owned(with) });
        assert_eq!(change("git merge a b"), merged(&["a", "b"]));
        assert_eq!(change("git rebase main"), merged(&["main"]));
        assert_eq!(change("git pull origin main"), merged(&["origin/main"]));
        assert_eq!(change("git pull"), merged(&["@{upstream}"]));
        let commits = owned(&["c1"]);
        assert_eq!(change("git revert c1"), Some(GitChange::Pick { commits, reverts: true }));
        let files = owned(&["x.patch"]);
        assert_eq!(change("git apply x.patch"), Some(GitChange::Patch { files }));
    }

    #[test]
    fn what_git_cannot_predict_is_not_asked() {
        for line in [
            "git status",
            "git switch $x",
            "git switch -c new",
            "git checkout -b new",
            "git checkout",
            "git reset",
            "git reset --soft HEAD~1",
            "git rebase --continue",
            "git merge --abort",
            "git rebase -i main",
            "git checkout -p",
            "git restore --staged a",
            "git cherry-pick a..b",
            "git apply",
            "git -c core.worktree=/x reset --hard",
            "git --git-dir=/x reset --hard",
        ] {
            assert_eq!(change(line), None, "{line}");
        }
    }
}
