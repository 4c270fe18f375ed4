//! `git`: what its subcommands do to the files of a repository.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::archives::report_patched_files;
use super::wrappers::join_words;
use crate::command_context::{ArgReader, CommandArg, CommandContext};
use crate::shell_line::{Access, OpaqueReason, ReadExtent, ShellWord, WordKind};
use crate::shell_state::dir_after_cd;

/// The options before a subcommand that take a value.
pub(crate) const OPTIONS: &str =
    "C c git-dir work-tree namespace exec-path super-prefix config-env attr-source";

/// Settings whose values git runs as programs.
const PROGRAM_RUNNING_KEYS: [&str; 16] = [
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
struct GitSubcommand<'w, 'a> {
    name: &'w str,
    /// The subcommand is the first word, as a program would be.
    words: &'w [ShellWord<'a>],
}

impl<'w, 'a> GitSubcommand<'w, 'a> {
    fn args(&self, options: &'static str) -> ArgReader<'w, 'a> {
        ArgReader::new(self.words, options)
    }

    fn operands(&self, options: &'static str) -> Vec<ShellWord<'a>> {
        self.args(options)
            .filter_map(|arg| match arg {
                CommandArg::Operand(index) => self.words.get(index).cloned(),
                CommandArg::Option(..) => None,
            })
            .collect()
    }

    fn has_option(&self, names: &[&str]) -> bool {
        self.args("").any(|arg| matches!(arg, CommandArg::Option(name, _) if names.contains(&name)))
    }

    fn option_value(&self, options: &'static str) -> Option<ShellWord<'a>> {
        self.args(options).find_map(|arg| match arg {
            CommandArg::Option(name, value) if options.split(' ').any(|option| option == name) => {
                value
            }
            _ => None,
        })
    }

    /// The words behind `--`. `None` where there is no `--`.
    fn words_after_dashes(&self) -> Option<&'w [ShellWord<'a>]> {
        let at = self.words.iter().position(|word| word.text == "--")?;
        self.words.get(at + 1..)
    }
}

pub(super) fn git(context: &mut CommandContext<'_, '_>) {
    let mut dir = None;
    let mut at = None;
    let mut aliases = Vec::new();
    for arg in context.args() {
        match arg {
            CommandArg::Operand(index) => {
                at = Some(index);
                break;
            }
            CommandArg::Option("C", Some(path)) => {
                let from = dir.unwrap_or_else(|| context.walk.state.dir.clone());
                dir = Some(dir_after_cd(&from, &path));
            }
            CommandArg::Option("c" | "config-env", Some(setting)) => {
                report_setting(context, &setting);
                aliases.push(setting);
            }
            CommandArg::Option("git-dir" | "work-tree", Some(_)) => {
                dir = Some(crate::shell_line::WorkingDir::Unknown);
            }
            CommandArg::Option("exec-path", Some(path)) => {
                context.add_opaque(OpaqueReason::ScriptFile, path.text);
            }
            CommandArg::Option(..) => {}
        }
    }
    if let Some(dir) = dir {
        context.set_working_dir(dir);
    }
    let Some(at) = at else { return };
    let Some(name) = context.exact_text(at) else {
        context.add_opaque(OpaqueReason::UnknownProgram, "");
        return;
    };
    let words = context.words.get(at..).unwrap_or_default();
    let definition = aliases.iter().find_map(|setting| {
        let (key, value) = setting.exact_text()?.split_once('=')?;
        let (section, alias) = key.split_at_checked("alias.".len())?;
        let named = section.eq_ignore_ascii_case("alias.") && alias.eq_ignore_ascii_case(name);
        named.then(|| String::from(value))
    });
    if let Some(definition) = definition {
        run_alias(context, &definition, words.get(1..).unwrap_or_default());
        return;
    }
    report_subcommand(context, &GitSubcommand { name, words });
}

/// `git -c alias.p=push p`, `git -c alias.p='!text' p`.
fn run_alias<'a>(context: &mut CommandContext<'_, 'a>, definition: &str, rest: &[ShellWord<'a>]) {
    if let Some(text) = definition.strip_prefix('!') {
        let text = ShellWord::literal(String::from(text));
        context.run_child_text(&text, None);
        return;
    }
    let mut words = alloc::vec![ShellWord::literal("git")];
    words.extend(definition.split_whitespace().map(|word| ShellWord::literal(String::from(word))));
    words.extend(rest.iter().cloned());
    context.run_words(words, context.exit);
}

/// Reports a setting that may run programs: `-c key=value`, `git config key value`.
fn report_setting(context: &mut CommandContext<'_, '_>, setting: &ShellWord<'_>) {
    let key = setting.text.to_ascii_lowercase();
    let runs = PROGRAM_RUNNING_KEYS.iter().any(|running| key.starts_with(running));
    if runs || setting.exact_text().is_none() || setting.text.contains("=!") {
        context.add_opaque(OpaqueReason::InlineScript, String::from(&*setting.text));
    }
    // The values of most of these settings are shell texts.
    if let Some((_, value)) =
        setting.exact_text().filter(|_| runs).and_then(|text| text.split_once('='))
        && !key.starts_with("alias.")
        && value.contains(' ')
    {
        context.run_child_text(&ShellWord::literal(String::from(value)), None);
    }
}

/// A path as git reads it. `:/x` and `:(top)x` start at the root of the repository,
/// which the line does not show.
fn pathspec_word<'a>(word: &ShellWord<'a>) -> ShellWord<'a> {
    let Some(magic) = word.exact_text().and_then(|text| text.strip_prefix(':')) else {
        return word.clone();
    };
    let rest = match magic.strip_prefix('(').and_then(|long| long.split_once(')')) {
        Some((words, _)) if words.contains("exclude") => "",
        Some((_, rest)) => rest,
        None if magic.starts_with(['!', '^']) => "",
        None => magic.trim_start_matches(['/', ':']),
    };
    if rest.is_empty() { repository_word() } else { ShellWord::unknown([":/", rest].concat()) }
}

fn repository_word<'a>() -> ShellWord<'a> {
    ShellWord { text: Cow::Borrowed("."), kind: WordKind::Repository }
}

fn report_subcommand<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    if let Some(path) = sub.option_value("output") {
        context.add_write(path);
    }
    if let Some(text) = sub.option_value("upload-pack receive-pack open-files-in-pager") {
        context.add_opaque(OpaqueReason::InlineScript, text.text);
    }
    match sub.name {
        "add" | "stage" => {
            for path in sub.operands("chmod pathspec-from-file") {
                context.add_effect(Access::Read(ReadExtent::Partial), path, true);
            }
        }
        "checkout" => checkout(context, sub),
        "restore" => restore(context, sub),
        "clean" => clean(context, sub),
        "reset" if sub.has_option(&["hard", "merge", "keep"]) => {
            context.add_effect(Access::Write, repository_word(), true);
        }
        "rm" if !sub.has_option(&["cached", "n", "dry-run"]) => {
            let recursive = sub.has_option(&["r"]);
            for path in sub.operands("pathspec-from-file") {
                context.add_delete(pathspec_word(&path), recursive);
            }
        }
        "mv" => move_files(context, sub),
        "apply" | "am" => apply(context, sub),
        "stash" => stash(context, sub),
        "config" => config(context, sub),
        "switch" | "merge" | "pull" | "rebase" | "cherry-pick" | "revert" | "sparse-checkout"
        | "update-ref" | "filter-repo" | "filter-branch" | "submodule" | "bisect" | "read-tree"
        | "subtree" | "lfs" => change_tree(context, sub),
        "checkout-index" => context.add_effect(Access::Write, repository_word(), true),
        "worktree" => {
            if matches!(sub.words.get(1).map(|word| &*word.text), Some("add"))
                && let Some(path) = sub.operands("b B").into_iter().nth(1)
            {
                context.add_effect(Access::Write, path, true);
            }
            if matches!(sub.words.get(1).map(|word| &*word.text), Some("remove"))
                && let Some(path) = sub.operands("").into_iter().nth(1)
            {
                context.add_delete(path, true);
            }
        }
        "clone" | "init" => {
            if let Some(path) = sub.operands("b o u c j branch origin depth config template").pop()
            {
                context.add_effect(Access::Touch, path, false);
            }
            if let Some(setting) = sub.option_value("c config template u upload-pack") {
                context.add_opaque(OpaqueReason::InlineScript, setting.text);
            }
        }
        "archive" | "format-patch" | "bundle" => {
            if let Some(text) = sub.option_value("exec") {
                context.add_opaque(OpaqueReason::InlineScript, text.text);
            }
            if let Some(path) = sub.option_value("o output-directory") {
                context.add_write(path);
            }
            if sub.name == "bundle"
                && let Some(path) = sub.operands("").into_iter().nth(1)
            {
                context.add_write(path);
            }
        }
        "grep" => {
            // `-Oless` opens the matching files in a program.
            if sub.words.iter().any(|word| word.text.starts_with("-O")) {
                context.add_opaque(OpaqueReason::InlineScript, join_words(sub.words));
            }
            context.add_effect(Access::Read(ReadExtent::Partial), ShellWord::literal("."), true);
        }
        "difftool" | "mergetool" | "daemon" | "instaweb" | "send-email" | "gui" => {
            context.add_opaque(OpaqueReason::Runner, join_words(sub.words));
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
        name => context.add_opaque(OpaqueReason::Alias, String::from(name)),
    }
}

/// `git checkout -- path`, `git checkout ref path`, `git checkout branch`.
fn checkout<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    if sub.has_option(&["f", "force"]) {
        context.add_effect(Access::Write, repository_word(), true);
    }
    if let Some(paths) = sub.words_after_dashes() {
        for path in paths {
            context.add_effect(Access::Write, pathspec_word(path), true);
        }
        return;
    }
    if sub.has_option(&["b", "B", "orphan"]) {
        return;
    }
    let operands = sub.operands("conflict pathspec-from-file");
    if operands.iter().any(|word| word.text == ".") {
        context.add_effect(Access::Write, ShellWord::literal("."), true);
        return;
    }
    // A single word is a branch or a path. Of several words the first may be either.
    for path in &operands {
        context.add_effect(Access::Write, pathspec_word(path), true);
    }
    if operands.len() == 1 {
        context.add_opaque(OpaqueReason::Contents, ".");
    }
}

fn restore<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    if sub.has_option(&["staged", "S"]) && !sub.has_option(&["worktree", "W"]) {
        return;
    }
    for path in sub.operands("s source pathspec-from-file") {
        context.add_effect(Access::Write, pathspec_word(&path), true);
    }
}

fn clean<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    if sub.has_option(&["n", "dry-run"]) || !sub.has_option(&["f", "force", "i", "interactive"]) {
        return;
    }
    let mut operands = sub.operands("e exclude");
    if operands.is_empty() {
        operands.push(ShellWord::literal("."));
    }
    for path in operands {
        context.add_delete(pathspec_word(&path), true);
    }
}

fn move_files<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    let mut operands = sub.operands("");
    let Some(target) = operands.pop() else { return };
    if operands.len() == 1 {
        context.add_effect(Access::Write, target.clone(), true);
    }
    for source in operands {
        let path = CommandContext::path_inside(&target, &source);
        context.add_effect(Access::Write, path, true);
        context.add_delete(source, true);
    }
}

fn apply<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    if sub.has_option(&["check", "stat", "numstat", "summary"]) {
        return;
    }
    let operands = sub.operands("p exclude include directory whitespace C");
    let from_input = operands.iter().all(|word| word.text == "-");
    for path in operands {
        context.add_read(path, ReadExtent::Partial);
    }
    if from_input {
        report_patched_files(context, Some(1));
    } else {
        context.add_opaque(OpaqueReason::Contents, ".");
    }
}

fn stash<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    match sub.words.get(1).map(|word| &*word.text) {
        Some("list" | "show" | "drop" | "clear" | "create" | "store") => {}
        Some("pop" | "apply" | "branch") => context.add_opaque(OpaqueReason::Contents, "."),
        _ => {
            context.add_effect(Access::Write, repository_word(), true);
            if sub.has_option(&["u", "include-untracked", "a", "all"]) {
                stash_untracked(context, sub);
            }
        }
    }
}

/// `git stash -u` also removes the files that git does not track.
fn stash_untracked<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    let mut operands = sub.operands("m message");
    operands.retain(|word| !matches!(&*word.text, "push" | "save"));
    if operands.is_empty() {
        operands.push(ShellWord::literal("."));
    }
    for path in operands {
        context.add_delete(pathspec_word(&path), true);
    }
}

fn config<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    let operands = sub.operands("f file type default blob");
    let reads = sub.has_option(&["get", "get-all", "get-regexp", "l", "list", "get-urlmatch"])
        || matches!(operands.first().map(|word| &*word.text), Some("get" | "list"));
    let removes =
        sub.has_option(&["unset", "unset-all", "remove-section", "rename-section", "e", "edit"]);
    if reads || (operands.len() < 2 && !removes) {
        return;
    }
    let path = match sub.option_value("f file") {
        Some(path) => path,
        None if sub.has_option(&["global"]) => {
            ShellWord { text: Cow::Borrowed("~/.gitconfig"), kind: WordKind::Home }
        }
        None if sub.has_option(&["system"]) => ShellWord::literal("/etc/gitconfig"),
        None => ShellWord::literal(".git/config"),
    };
    context.add_effect(Access::Edit, path, false);
    for operand in &operands {
        report_setting(context, operand);
    }
    if operands.iter().any(|word| word.text.starts_with('!')) {
        context.add_opaque(OpaqueReason::InlineScript, join_words(sub.words));
    }
}

/// Subcommands that replace files in the working tree or run commands.
fn change_tree<'a>(context: &mut CommandContext<'_, 'a>, sub: &GitSubcommand<'_, 'a>) {
    if sub.name == "switch" && sub.has_option(&["c", "C", "orphan"]) {
        return;
    }
    if sub.has_option(&["f", "force", "discard-changes"]) {
        context.add_effect(Access::Write, repository_word(), true);
    }
    match sub.name {
        "rebase" => {
            if let Some(text) = sub.option_value("x exec") {
                context.run_child_text(&text, None);
            }
        }
        "bisect" if sub.words.get(1).is_some_and(|word| word.text == "run") => {
            let words = sub.words.get(2..).unwrap_or_default().to_vec();
            context.run_repeatedly(words);
        }
        "submodule" => {
            let at = sub.words.iter().position(|word| word.text == "foreach");
            if let Some(text) = at.and_then(|at| sub.words.get(at + 1..)) {
                let text: Vec<_> =
                    text.iter().filter(|w| !w.text.starts_with("--")).cloned().collect();
                let known = if text.iter().all(|word| word.exact_text().is_some()) {
                    WordKind::Literal
                } else {
                    WordKind::Unknown
                };
                context.run_child_text(
                    &ShellWord { text: Cow::Owned(join_words(&text)), kind: known },
                    None,
                );
            }
        }
        "filter-branch" | "filter-repo" => {
            context.add_opaque(OpaqueReason::InlineScript, join_words(sub.words));
        }
        _ => {}
    }
    context.add_opaque(OpaqueReason::Contents, ".");
}
