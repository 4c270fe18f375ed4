//! Rejects words that make a text hard to understand: dummy persons and old adverbs.

use std::fs;
use std::path::{Path, PathBuf};

use super::{children, show};
use crate::shell::root;

/// Files that search foreign text for such a word, or whose text other people wrote.
const FOREIGN: [&str; 0] = [];

/// What is looked at, beside the Markdown files at the root.
const DIRECTORIES: [&str; 6] = ["crates", "docs", "examples", "fuzz", "xtask", ".ci"];

pub(super) fn check(problems: &mut Vec<String>) {
    // Written in halves, so that this file does not contain what it rejects.
    let words = [["no", "body"], ["some", "body"], ["who", "ever"], ["an", "ew"], ["of ", "now"]]
        .map(|halves| halves.concat());
    for file in files().into_iter().filter(|file| !FOREIGN.contains(&show(file).as_str())) {
        // Data for tests may be no text.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            for word in words.iter().filter(|word| has_word(&line, word)) {
                problems.push(format!(
                    "{}:{}: name who acts instead of `{word}`",
                    show(&file),
                    number + 1
                ));
            }
        }
    }
}

/// Sources, documents and definitions. Text files of tests hold what real programs print.
fn files() -> Vec<PathBuf> {
    let is_text = |path: &Path| {
        let extension = path.extension().unwrap_or_default();
        ["rs", "md", "yaml", "toml", "sh", "snap"].iter().any(|known| extension == *known)
    };
    let mut files: Vec<PathBuf> = children(&root());
    let mut open: Vec<PathBuf> = DIRECTORIES.iter().map(|name| root().join(name)).collect();
    while let Some(directory) = open.pop() {
        for path in children(&directory) {
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| path.is_file() && is_text(path));
    files
}

fn has_word(line: &str, word: &str) -> bool {
    let is_border =
        |neighbour: Option<char>| neighbour.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(word).any(|(at, _)| {
        is_border(line[..at].chars().next_back())
            && is_border(line[at + word.len()..].chars().next())
    })
}

#[test]
fn a_word_is_found_between_borders_only() {
    assert!(has_word("ask again, x y.", "x y"));
    assert!(!has_word("prefix yes", "fix y"));
    assert!(!has_word("a_word", "word"));
}
