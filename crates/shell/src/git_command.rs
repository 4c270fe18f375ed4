//! A `git` command as its subcommand, options and operands, for callers that ask git what the
//! command would do.

use alloc::string::String;
use alloc::vec::Vec;

use crate::command_context::{ArgReader, CommandArg};
use crate::rows::GIT_OPTIONS;
use crate::shell_line::{ShellCommand, ShellWord};

/// The options of subcommands that take a value.
const SUBCOMMAND_OPTIONS: [(&str, &str); 13] = [
    ("switch", "c C orphan conflict"),
    ("checkout", "b B orphan conflict pathspec-from-file"),
    ("restore", "s source conflict pathspec-from-file"),
    ("reset", "pathspec-from-file"),
    ("stash", "m message pathspec-from-file"),
    ("clean", "e exclude"),
    ("merge", "m F s strategy X strategy-option into-name cleanup"),
    ("pull", "s strategy X strategy-option"),
    ("rebase", "onto x exec s strategy X strategy-option"),
    ("cherry-pick", "m mainline s strategy X strategy-option cleanup"),
    ("revert", "m mainline s strategy X strategy-option cleanup"),
    ("am", "p directory exclude include whitespace C patch-format"),
    ("apply", "p directory exclude include whitespace C build-fake-ancestor"),
];

/// Subcommands that change neither the repository nor the work tree.
const READING_SUBCOMMANDS: [&str; 21] = [
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "ls-remote",
    "cat-file",
    "describe",
    "shortlog",
    "blame",
    "grep",
    "merge-base",
    "name-rev",
    "show-ref",
    "for-each-ref",
    "check-ignore",
    "version",
    "help",
];

/// A `git` command whose words are all known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCommand<'w> {
    /// The subcommand.
    pub name: &'w str,
    /// The options before the subcommand, except `-C`. They may select another repository, or
    /// change what the subcommand does.
    pub has_settings: bool,
    /// The options of the subcommand without dashes, with their values.
    pub options: Vec<(&'w str, Option<String>)>,
    /// The operands of the subcommand.
    pub operands: Vec<&'w str>,
    /// How many operands come before `--`; `None` without `--`.
    pub before_dashes: Option<usize>,
}

impl GitCommand<'_> {
    /// Whether the command has any of these options. Git accepts the beginning of a long option.
    pub fn has_option(&self, names: &[&str]) -> bool {
        let is_named = |given: &str| {
            names.iter().any(|name| given == *name || (given.len() > 2 && name.starts_with(given)))
        };
        self.options.iter().any(|(given, _)| is_named(given))
    }

    /// The value of the last of these options.
    pub fn option_value(&self, names: &[&str]) -> Option<&str> {
        let mut given = self.options.iter().rev();
        given.find(|(name, _)| names.contains(name)).and_then(|(_, value)| value.as_deref())
    }
}

impl ShellCommand<'_> {
    /// The command as a `git` command. `None` for another program, and if a word is not known.
    pub fn git_command(&self) -> Option<GitCommand<'_>> {
        if self.program() != "git" || self.words.iter().any(|word| word.exact_text().is_none()) {
            return None;
        }
        let (at, has_settings) = self.git_subcommand()?;
        let words = self.words.get(at..)?;
        let name = words.first()?.exact_text()?;
        let options = SUBCOMMAND_OPTIONS.iter().find(|(sub, _)| *sub == name);
        let dashes = words.iter().position(|word| word.text == "--");
        let mut command = GitCommand {
            name,
            has_settings,
            options: Vec::new(),
            operands: Vec::new(),
            before_dashes: None,
        };
        let mut operands = Vec::new();
        for arg in ArgReader::new(words, options.map_or("", |(_, options)| options)) {
            match arg {
                CommandArg::Operand(index) => operands.push(index),
                CommandArg::Option(option, value) => {
                    let value = value.map(|value| String::from(&*value.text));
                    command.options.push((option, value));
                }
            }
        }
        command.before_dashes =
            dashes.map(|dashes| operands.iter().filter(|index| **index < dashes).count());
        let text = |index: usize| words.get(index).and_then(ShellWord::exact_text);
        command.operands = operands.into_iter().filter_map(text).collect();
        Some(command)
    }

    /// Whether the command is a `git` command that may change the repository or the work tree.
    pub fn may_change_repository(&self) -> bool {
        if self.program() != "git" {
            return false;
        }
        let Some((at, _)) = self.git_subcommand() else { return true };
        let name = self.words.get(at).and_then(ShellWord::exact_text);
        name.is_none_or(|name| !READING_SUBCOMMANDS.contains(&name))
    }

    /// The index of the subcommand, and whether options before it change settings.
    fn git_subcommand(&self) -> Option<(usize, bool)> {
        let mut has_settings = false;
        for arg in ArgReader::new(&self.words, GIT_OPTIONS) {
            match arg {
                CommandArg::Operand(index) => return Some((index, has_settings)),
                CommandArg::Option("C" | "no-pager" | "P" | "no-optional-locks", _) => {}
                CommandArg::Option(..) => has_settings = true,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::understand;
    use alloc::vec;

    #[test]
    fn a_git_command_is_split_into_its_parts() {
        let line = understand("git -C sub restore -s HEAD~1 --staged a -- b c");
        let command = line.commands[0].git_command().unwrap();
        assert_eq!((command.name, command.has_settings), ("restore", false));
        assert_eq!(command.operands, ["a", "b", "c"]);
        assert_eq!(command.before_dashes, Some(1));
        assert_eq!(command.option_value(&["s", "source"]), Some("HEAD~1"));
        assert!(command.has_option(&["staged"]) && !command.has_option(&["worktree"]));
    }

    #[test]
    fn a_command_with_an_unknown_word_is_not_split() {
        for text in ["git switch $branch", "git $x", "rm git", "git switch a*"] {
            assert_eq!(understand(text).commands[0].git_command(), None, "{text}");
        }
        let line = understand("git -c core.worktree=/x reset --har");
        let command = line.commands[0].git_command().unwrap();
        assert!(command.has_settings && command.has_option(&["hard"]));
        assert_eq!(command.options, vec![("har", None)]);
    }

    #[test]
    fn a_reading_command_changes_nothing() {
        for (text, changes) in [
            ("git status", false),
            ("git -C x log -1", false),
            ("git add -A", true),
            ("git fetch", true),
            ("git $x", true),
            ("ls", false),
        ] {
            assert_eq!(understand(text).commands[0].may_change_repository(), changes, "{text}");
        }
    }
}
