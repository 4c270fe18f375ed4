//! Tells which programs a command line runs, which files they read and write,
//! and which parts it cannot understand.
//!
//! [`understand`] reads a line as bash would and follows it without running
//! it: through pipes, lists, subshells, `$(…)`, `bash -c`, `env`, `xargs`,
//! `sudo`, `find -exec`, functions and here-documents. For each simple command
//! it returns the words, the effects on files, the working directory, and
//! what the line's exit status proves about the command. A value that only a
//! running shell could compute is marked as unknown. A part that could run
//! something Jackline cannot see is listed as [`ShellOpaquePart`] with its
//! text, so that a caller can search that text.
//!
//! The crate is pure and bounded: no clock, file or environment, no
//! dependency, no recursion without a limit. A guard calls it on every Bash
//! event; a typical line takes about a microsecond.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ansi_quotes;
mod braces;
mod command_context;
mod command_pattern;
mod compound_command;
mod continued_lines;
mod created_files;
mod expansions;
mod git_command;
mod limits;
mod nested_texts;
mod parameter_operators;
mod redirection;
mod redirection_effects;
mod rows;
mod shell_line;
mod shell_parser;
mod shell_state;
mod shell_walk;
mod simple_command;
mod syntax_tree;
mod word_expansion;
mod word_scanner;

use alloc::vec::Vec;

pub use git_command::GitCommand;
pub use limits::{
    BRACE_WORDS_MAX, COMMANDS_MAX, LINE_BYTES_MAX, LOOP_ITEMS_MAX, NESTED_TEXTS_MAX,
    NESTING_DEPTH_MAX, WORDS_MAX,
};
pub use shell_line::{
    Access, ExitEvidence, FileEffect, LineSpan, OpaqueReason, ReadExtent, ShellCommand, ShellLine,
    ShellOpaquePart, ShellWord, WordKind, WorkingDir,
};

/// Analyses a command line as far as that is possible without running it.
///
/// ```
/// use jackline_shell::{ExitEvidence, understand};
///
/// let line = understand("cd src && r''m -f \"old file\" | tail");
/// let rm = line.commands.iter().find(|command| command.matches_pattern("rm")).unwrap();
/// assert_eq!(rm.effects[0].path.text, "old file");
/// assert_eq!(rm.exit_evidence, ExitEvidence::Lost);
/// assert!(line.opaque_parts.is_empty());
/// ```
pub fn understand(line: &str) -> ShellLine<'_> {
    let mut walk = shell_walk::ShellWalk::new(line);
    walk.walk_borrowed_text(line, shell_walk::ExitProof::LINE);
    walk.walk_uncalled_functions();
    walk.follow_links();
    if walk.shared.has_trap {
        walk.commands.iter_mut().for_each(|command| command.exit_evidence = ExitEvidence::Lost);
    }
    ShellLine { text: line, commands: walk.commands, opaque_parts: walk.opaque_parts }
}

/// Whether bash would accept a line (`bash -n`). `None` where the line is beyond a
/// limit, so that it was not read to its end.
pub fn is_valid(line: &str) -> Option<bool> {
    if line.len() > LINE_BYTES_MAX || line.as_bytes().contains(&0) {
        return None;
    }
    let mut parsed = shell_parser::parse_shell(line);
    if parsed.is_err()
        && let Some(joined) = continued_lines::join_continued_lines(line)
    {
        parsed = shell_parser::parse_shell(&joined);
    }
    match parsed {
        Ok(_) => Some(true),
        Err(shell_parser::ShellParseError::Syntax(_)) => Some(false),
        Err(
            shell_parser::ShellParseError::ContinuedLine(_)
            | shell_parser::ShellParseError::TooDeep
            | shell_parser::ShellParseError::TooManyWords,
        ) => None,
    }
}

/// The simple commands of a line as they are written, with their quotes, without
/// the commands inside their words. Tests compare them with other parsers.
#[doc(hidden)]
pub fn written_commands(line: &str) -> Option<Vec<Vec<&str>>> {
    let (tree, _) = shell_parser::parse_shell(line).ok()?;
    let mut commands = Vec::new();
    let mut nodes: Vec<_> = tree.nodes.iter().collect();
    nodes.sort_by_key(|node| (node.start, core::cmp::Reverse(node.end)));
    let mut past = 0;
    for node in nodes {
        if let syntax_tree::NodeKind::Simple { words } = node.kind
            && node.start >= past
        {
            past = node.end;
            let words = tree.words_from(words);
            let words = words.filter_map(|raw| line.get(raw.start as usize..raw.end as usize));
            commands.push(words.collect());
        }
    }
    Some(commands)
}
