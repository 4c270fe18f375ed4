//! `git`: what its subcommands do to the files of a repository.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::archives::patched;
use super::wrappers::joined;
use crate::line::{Access, Known, Lines, Reason, Word};
use crate::scene::{Arg, Args, Scene};
use crate::state::moved;

/// The options before a subcommand that take a value.
pub(super) const OPTIONS: &str =
    "C c git-dir work-tree namespace exec-path super-prefix config-env attr-source";

/// Keys whose values git runs.
const RUNNING_KEYS: [&str; 16] = [
    "alias.",
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.hookspath",
    "core.askpass",
    "diff.external",
    "sequence.editor",
    "credential.",
    "gpg.",
    "pager.",
    "filter.",
    "mergetool.",
    "difftool.",
    "include.",
];

/// A subcommand and the words behind it.
struct Sub<'w, 'a> {
    name: &'w str,
    /// The subcommand stands first, as a program would.
    words: &'w [Word<'a>],
}

impl<'w, 'a> Sub<'w, 'a> {
    fn args(&self, options: &'static str) -> Args<'w, 'a> {
        Args::new(self.words, options)
    }

    fn operands(&self, options: &'static str) -> Vec<Word<'a>> {
        self.args(options)
            .filter_map(|arg| match arg {
                Arg::Operand(index) => self.words.get(index).cloned(),
                Arg::Option(..) => None,
            })
            .collect()
    }

    fn has(&self, names: &[&str]) -> bool {
        self.args("").any(|arg| matches!(arg, Arg::Option(name, _) if names.contains(&name)))
    }

    fn value(&self, options: &'static str) -> Option<Word<'a>> {
        self.args(options).find_map(|arg| match arg {
            Arg::Option(name, value) if options.split(' ').any(|option| option == name) => value,
            _ => None,
        })
    }

    /// What stands behind `--`, where there is one.
    fn after_dashes(&self) -> Option<&'w [Word<'a>]> {
        let at = self.words.iter().position(|word| word.text == "--")?;
        self.words.get(at + 1..)
    }
}

pub(super) fn git(scene: &mut Scene<'_, '_>) {
    let mut dir = None;
    let mut at = None;
    let mut aliases = Vec::new();
    for arg in scene.args() {
        match arg {
            Arg::Operand(index) => {
                at = Some(index);
                break;
            }
            Arg::Option("C", Some(path)) => {
                let from = dir.unwrap_or_else(|| scene.walk.state.dir.clone());
                dir = Some(moved(&from, &path));
            }
            Arg::Option("c" | "config-env", Some(setting)) => {
                running_setting(scene, &setting);
                aliases.push(setting);
            }
            Arg::Option("git-dir" | "work-tree", Some(_)) => dir = Some(crate::line::Dir::Unknown),
            Arg::Option("exec-path", Some(path)) => scene.opaque(Reason::ScriptFile, path.text),
            Arg::Option(..) => {}
        }
    }
    if let Some(dir) = dir {
        scene.works_in(dir);
    }
    let Some(at) = at else { return };
    let Some(name) = scene.exact(at) else {
        scene.opaque(Reason::UnknownProgram, "");
        return;
    };
    let words = scene.words.get(at..).unwrap_or_default();
    let meant = aliases.iter().find_map(|setting| {
        let (key, value) = setting.exact()?.split_once('=')?;
        let (section, alias) = key.split_at_checked("alias.".len())?;
        let named = section.eq_ignore_ascii_case("alias.") && alias.eq_ignore_ascii_case(name);
        named.then(|| String::from(value))
    });
    if let Some(meant) = meant {
        aliased(scene, &meant, words.get(1..).unwrap_or_default());
        return;
    }
    subcommand(scene, &Sub { name, words });
}

/// `git -c alias.p=push p`, `git -c alias.p='!text' p`.
fn aliased<'a>(scene: &mut Scene<'_, 'a>, meant: &str, rest: &[Word<'a>]) {
    if let Some(text) = meant.strip_prefix('!') {
        let text = Word::literal(String::from(text));
        scene.child_text(&text, None);
        return;
    }
    let mut words = alloc::vec![Word::literal("git")];
    words.extend(meant.split_whitespace().map(|word| Word::literal(String::from(word))));
    words.extend(rest.iter().cloned());
    scene.run(words, scene.exit);
}

/// `-c key=value`, `git config key value`.
fn running_setting(scene: &mut Scene<'_, '_>, setting: &Word<'_>) {
    let key = setting.text.to_ascii_lowercase();
    let runs = RUNNING_KEYS.iter().any(|running| key.starts_with(running));
    if runs || setting.exact().is_none() || setting.text.contains("=!") {
        scene.opaque(Reason::InlineScript, String::from(&*setting.text));
    }
    // Most of them are texts for a shell.
    if let Some((_, value)) = setting.exact().filter(|_| runs).and_then(|text| text.split_once('='))
        && !key.starts_with("alias.")
        && value.contains(' ')
    {
        scene.child_text(&Word::literal(String::from(value)), None);
    }
}

/// A path as git reads it: `:/x` and `:(top)x` start at the root of the
/// repository, and nobody knows where that is.
fn pathspec<'a>(word: &Word<'a>) -> Word<'a> {
    let Some(magic) = word.exact().and_then(|text| text.strip_prefix(':')) else {
        return word.clone();
    };
    let rest = match magic.strip_prefix('(').and_then(|long| long.split_once(')')) {
        Some((words, _)) if words.contains("exclude") => "",
        Some((_, rest)) => rest,
        None if magic.starts_with(['!', '^']) => "",
        None => magic.trim_start_matches(['/', ':']),
    };
    if rest.is_empty() { repository() } else { Word::unknown([":/", rest].concat()) }
}

fn repository<'a>() -> Word<'a> {
    Word { text: Cow::Borrowed("."), known: Known::Repository }
}

fn subcommand<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    if let Some(path) = sub.value("output") {
        scene.write(path);
    }
    if let Some(text) = sub.value("upload-pack receive-pack open-files-in-pager") {
        scene.opaque(Reason::InlineScript, text.text);
    }
    match sub.name {
        "add" | "stage" => {
            for path in sub.operands("chmod pathspec-from-file") {
                scene.effect(Access::Read(Lines::Some), path, true);
            }
        }
        "checkout" => checkout(scene, sub),
        "restore" => restore(scene, sub),
        "clean" => clean(scene, sub),
        "reset" if sub.has(&["hard", "merge", "keep"]) => {
            scene.effect(Access::Write, repository(), true);
        }
        "rm" if !sub.has(&["cached", "n", "dry-run"]) => {
            let recursive = sub.has(&["r"]);
            for path in sub.operands("pathspec-from-file") {
                scene.delete(pathspec(&path), recursive);
            }
        }
        "mv" => moves(scene, sub),
        "apply" | "am" => apply(scene, sub),
        "stash" => stash(scene, sub),
        "config" => config(scene, sub),
        "switch" | "merge" | "pull" | "rebase" | "cherry-pick" | "revert" | "sparse-checkout"
        | "update-ref" | "filter-repo" | "filter-branch" | "submodule" | "bisect" | "read-tree"
        | "subtree" | "lfs" => tree_changes(scene, sub),
        "checkout-index" => scene.effect(Access::Write, repository(), true),
        "worktree" => {
            if matches!(sub.words.get(1).map(|word| &*word.text), Some("add"))
                && let Some(path) = sub.operands("b B").into_iter().nth(1)
            {
                scene.effect(Access::Write, path, true);
            }
            if matches!(sub.words.get(1).map(|word| &*word.text), Some("remove"))
                && let Some(path) = sub.operands("").into_iter().nth(1)
            {
                scene.delete(path, true);
            }
        }
        "clone" | "init" => {
            if let Some(path) = sub.operands("b o u c j branch origin depth config template").pop()
            {
                scene.effect(Access::Touch, path, false);
            }
            if let Some(setting) = sub.value("c config template u upload-pack") {
                scene.opaque(Reason::InlineScript, setting.text);
            }
        }
        "archive" | "format-patch" | "bundle" => {
            if let Some(text) = sub.value("exec") {
                scene.opaque(Reason::InlineScript, text.text);
            }
            if let Some(path) = sub.value("o output-directory") {
                scene.write(path);
            }
            if sub.name == "bundle"
                && let Some(path) = sub.operands("").into_iter().nth(1)
            {
                scene.write(path);
            }
        }
        "grep" => {
            // `-Oless` opens what was found in a program.
            if sub.words.iter().any(|word| word.text.starts_with("-O")) {
                scene.opaque(Reason::InlineScript, joined(sub.words));
            }
            scene.effect(Access::Read(Lines::Some), Word::literal("."), true);
        }
        "difftool" | "mergetool" | "daemon" | "instaweb" | "send-email" | "gui" => {
            scene.opaque(Reason::Runner, joined(sub.words));
        }
        "blame" | "diff" | "log" | "show" | "status" | "branch" | "commit" | "push" | "fetch"
        | "remote" | "tag" | "rev-parse" | "rev-list" | "ls-files" | "ls-tree" | "ls-remote"
        | "cat-file" | "describe" | "shortlog" | "reflog" | "merge-base" | "name-rev" | "reset"
        | "rm" | "gc" | "prune" | "fsck" | "count-objects" | "hash-object" | "update-index"
        | "write-tree" | "commit-tree" | "symbolic-ref" | "for-each-ref" | "check-ignore"
        | "check-attr" | "diff-tree" | "diff-index" | "diff-files" | "notes" | "help"
        | "version" | "show-ref" | "show-branch" | "whatchanged" | "cherry" | "var" | "repack"
        | "pack-refs" | "maintenance" | "verify-commit" | "verify-tag" | "range-diff"
        | "interpret-trailers" | "stripspace" | "patch-id" | "get-tar-commit-id" | "rerere" => {}
        name => scene.opaque(Reason::Alias, String::from(name)),
    }
}

/// `git checkout -- path`, `git checkout ref path`, `git checkout branch`.
fn checkout<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    if sub.has(&["f", "force"]) {
        scene.effect(Access::Write, repository(), true);
    }
    if let Some(paths) = sub.after_dashes() {
        for path in paths {
            scene.effect(Access::Write, pathspec(path), true);
        }
        return;
    }
    if sub.has(&["b", "B", "orphan"]) {
        return;
    }
    let operands = sub.operands("conflict pathspec-from-file");
    if operands.iter().any(|word| word.text == ".") {
        scene.effect(Access::Write, Word::literal("."), true);
        return;
    }
    // A single word is a branch or a path; of several the first may be either.
    for path in &operands {
        scene.effect(Access::Write, pathspec(path), true);
    }
    if operands.len() == 1 {
        scene.opaque(Reason::Contents, ".");
    }
}

fn restore<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    if sub.has(&["staged", "S"]) && !sub.has(&["worktree", "W"]) {
        return;
    }
    for path in sub.operands("s source pathspec-from-file") {
        scene.effect(Access::Write, pathspec(&path), true);
    }
}

fn clean<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    if sub.has(&["n", "dry-run"]) || !sub.has(&["f", "force", "i", "interactive"]) {
        return;
    }
    let mut operands = sub.operands("e exclude");
    if operands.is_empty() {
        operands.push(Word::literal("."));
    }
    for path in operands {
        scene.delete(pathspec(&path), true);
    }
}

fn moves<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    let mut operands = sub.operands("");
    let Some(target) = operands.pop() else { return };
    if operands.len() == 1 {
        scene.effect(Access::Write, target.clone(), true);
    }
    for source in operands {
        let path = Scene::inside(&target, &source);
        scene.effect(Access::Write, path, true);
        scene.delete(source, true);
    }
}

fn apply<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    if sub.has(&["check", "stat", "numstat", "summary"]) {
        return;
    }
    let operands = sub.operands("p exclude include directory whitespace C");
    let from_input = operands.iter().all(|word| word.text == "-");
    for path in operands {
        scene.read(path, Lines::Some);
    }
    if from_input {
        patched(scene, Some(1));
    } else {
        scene.opaque(Reason::Contents, ".");
    }
}

fn stash<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    match sub.words.get(1).map(|word| &*word.text) {
        Some("list" | "show" | "drop" | "clear" | "create" | "store") => {}
        Some("pop" | "apply" | "branch") => scene.opaque(Reason::Contents, "."),
        _ => {
            scene.effect(Access::Write, repository(), true);
            if sub.has(&["u", "include-untracked", "a", "all"]) {
                stash_untracked(scene, sub);
            }
        }
    }
}

/// What git does not know yet is taken out of the tree with the rest.
fn stash_untracked<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    let mut operands = sub.operands("m message");
    operands.retain(|word| !matches!(&*word.text, "push" | "save"));
    if operands.is_empty() {
        operands.push(Word::literal("."));
    }
    for path in operands {
        scene.delete(pathspec(&path), true);
    }
}

fn config<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    let operands = sub.operands("f file type default blob");
    let reads = sub.has(&["get", "get-all", "get-regexp", "l", "list", "get-urlmatch"])
        || matches!(operands.first().map(|word| &*word.text), Some("get" | "list"));
    let removes = sub.has(&["unset", "unset-all", "remove-section", "rename-section", "e", "edit"]);
    if reads || (operands.len() < 2 && !removes) {
        return;
    }
    let path = match sub.value("f file") {
        Some(path) => path,
        None if sub.has(&["global"]) => {
            Word { text: Cow::Borrowed("~/.gitconfig"), known: Known::Home }
        }
        None if sub.has(&["system"]) => Word::literal("/etc/gitconfig"),
        None => Word::literal(".git/config"),
    };
    scene.effect(Access::Edit, path, false);
    for operand in &operands {
        running_setting(scene, operand);
    }
    if operands.iter().any(|word| word.text.starts_with('!')) {
        scene.opaque(Reason::InlineScript, joined(sub.words));
    }
}

/// Subcommands after which other files are in the tree, and those that run things.
fn tree_changes<'a>(scene: &mut Scene<'_, 'a>, sub: &Sub<'_, 'a>) {
    if sub.name == "switch" && sub.has(&["c", "C", "orphan"]) {
        return;
    }
    if sub.has(&["f", "force", "discard-changes"]) {
        scene.effect(Access::Write, repository(), true);
    }
    match sub.name {
        "rebase" => {
            if let Some(text) = sub.value("x exec") {
                scene.child_text(&text, None);
            }
        }
        "bisect" if sub.words.get(1).is_some_and(|word| word.text == "run") => {
            let words = sub.words.get(2..).unwrap_or_default().to_vec();
            scene.run_each(words);
        }
        "submodule" => {
            let at = sub.words.iter().position(|word| word.text == "foreach");
            if let Some(text) = at.and_then(|at| sub.words.get(at + 1..)) {
                let text: Vec<_> =
                    text.iter().filter(|w| !w.text.starts_with("--")).cloned().collect();
                let known = if text.iter().all(|word| word.exact().is_some()) {
                    Known::Literal
                } else {
                    Known::Unknown
                };
                scene.child_text(&Word { text: Cow::Owned(joined(&text)), known }, None);
            }
        }
        "filter-branch" | "filter-repo" => {
            scene.opaque(Reason::InlineScript, joined(sub.words));
        }
        _ => {}
    }
    scene.opaque(Reason::Contents, ".");
}
