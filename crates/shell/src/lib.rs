//! Which programs a command line runs, what they read and write, and what
//! cannot be known.
//!
//! [`understand`] reads a line as bash would and follows it without running
//! it: through pipes, lists, subshells, `$(…)`, `bash -c`, `env`, `xargs`,
//! `sudo`, `find -exec`, functions and here-documents. Each simple command comes
//! out with its words, its effects on files, the directory it works in, and
//! what the line's exit status says about it. Whatever would need a running
//! shell is marked as unknown, and whatever could run something unseen is
//! listed as [`Opaque`] with its text, so that a caller can search it.
//!
//! The crate is pure and bounded: no clock, file or environment, no
//! dependency, no recursion without a limit. A guard calls it on every Bash
//! event, so a typical line takes about a microsecond.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ansi;
mod braces;
mod compound;
mod continued;
mod dollar;
mod expand;
mod limits;
mod line;
mod made;
mod matching;
mod parse;
mod redirect;
mod rows;
mod scan;
mod scene;
mod simple;
mod state;
mod streams;
mod texts;
mod transform;
mod tree;
mod walk;

use alloc::vec::Vec;

pub use limits::{
    BRACES_MAX, COMMANDS_MAX, DEPTH_MAX, ITEMS_MAX, LINE_BYTES_MAX, TEXTS_MAX, WORDS_MAX,
};
pub use line::{
    Access, Command, Dir, Effect, Exit, Known, Line, Lines, Opaque, Reason, Span, Word,
};

/// Understands a command line as far as that is possible without running it.
///
/// ```
/// use jackline_shell::{Exit, understand};
///
/// let line = understand("cd src && r''m -f \"old file\" | tail");
/// let rm = line.commands.iter().find(|command| command.is("rm")).unwrap();
/// assert_eq!(rm.effects[0].path.text, "old file");
/// assert_eq!(rm.exit, Exit::Lost);
/// assert!(line.opaque.is_empty());
/// ```
pub fn understand(line: &str) -> Line<'_> {
    let mut walk = walk::Walk::new(line);
    walk.borrowed(line, walk::Status::LINE);
    walk.uncalled();
    walk.follow_links();
    if walk.shared.trapped {
        walk.commands.iter_mut().for_each(|command| command.exit = Exit::Lost);
    }
    Line { text: line, commands: walk.commands, opaque: walk.opaque }
}

/// Whether bash would accept a line, as `bash -n` says; `None` where the line
/// is beyond a limit and was not read to its end.
pub fn is_valid(line: &str) -> Option<bool> {
    if line.len() > LINE_BYTES_MAX || line.as_bytes().contains(&0) {
        return None;
    }
    let mut parsed = parse::parse(line);
    if parsed.is_err()
        && let Some(joined) = continued::joined(line)
    {
        parsed = parse::parse(&joined);
    }
    match parsed {
        Ok(_) => Some(true),
        Err(parse::Halt::Syntax(_)) => Some(false),
        Err(parse::Halt::Continued(_) | parse::Halt::Deep | parse::Halt::Many) => None,
    }
}

/// The simple commands of a line as they are written, quotes and all, without
/// those inside their words. For comparison with other parsers.
#[doc(hidden)]
pub fn written(line: &str) -> Option<Vec<Vec<&str>>> {
    let (tree, _) = parse::parse(line).ok()?;
    let mut commands = Vec::new();
    let mut nodes: Vec<_> = tree.nodes.iter().collect();
    nodes.sort_by_key(|node| (node.start, core::cmp::Reverse(node.end)));
    let mut past = 0;
    for node in nodes {
        if let tree::NodeKind::Simple { words } = node.kind
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
