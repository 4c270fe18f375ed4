//! Finds product code that is repeated in two files, line by line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{children, product_part, read, show, sources};
use crate::shell::root;

/// How many consecutive lines count as a repeat. Blank lines, comments, imports and lines with only
/// punctuation do not count.
const LINES_MIN: usize = 6;

/// The lines of a file that count, each with its number.
struct CodeFile {
    name: String,
    lines: Vec<(usize, String)>,
}

/// The beginning of a repeat: the file, and the index of its first line that counts.
type Position = (usize, usize);

pub(super) fn check(problems: &mut Vec<String>) {
    let files = product_files();
    let mut repeats: Vec<String> =
        repeats(&files).into_iter().map(|repeat| describe(&files, repeat)).collect();
    println!("tidy: {} repeats of {LINES_MIN} or more lines", repeats.len());
    problems.append(&mut repeats);
}

fn product_files() -> Vec<CodeFile> {
    let crates = children(&root().join("crates"));
    let mut directories: Vec<_> = crates.iter().map(|path| path.join("src")).collect();
    directories.push(root().join("xtask/src"));
    let paths: Vec<_> = directories.iter().flat_map(|directory| sources(directory)).collect();
    let tests: Vec<PathBuf> = paths.iter().flat_map(|path| test_modules(path)).collect();
    let is_test = |path: &Path| tests.iter().any(|module| path.starts_with(module));
    let product = paths.iter().filter(|path| !is_test(&path.with_extension("")));
    product.map(|path| CodeFile::of(path)).collect()
}

/// The modules that a file declares for tests only, as paths without `.rs`.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let is_root = ["lib.rs", "main.rs"].iter().any(|name| file.ends_with(name));
    let directory = if is_root { file.with_file_name("") } else { file.with_extension("") };
    let text = read(file);
    let declared = text.split("#[cfg(test)]\nmod ").skip(1);
    let names = declared.filter_map(|rest| rest.split_once(';').map(|(name, _)| name));
    names.filter(|name| !name.contains([' ', '{'])).map(|name| directory.join(name)).collect()
}

impl CodeFile {
    fn of(path: &Path) -> Self {
        let text = product_part(&read(path));
        let mut lines = Vec::new();
        let (mut in_import, mut in_signature) = (false, false);
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            // A signature is one line, however rustfmt breaks it.
            let continues_signature = in_signature;
            in_signature = (in_signature || is_signature(line)) && !line.ends_with(['{', ';', '}']);
            if continues_signature {
                continue;
            }
            let starts_import = line.starts_with("use ") || line.starts_with("pub use ");
            if in_import || starts_import {
                in_import = !line.ends_with(';');
                continue;
            }
            if !line.starts_with("//") && line.chars().any(char::is_alphanumeric) {
                lines.push((at + 1, line.to_owned()));
            }
        }
        Self { name: show(path), lines }
    }

    fn line(&self, at: usize) -> Option<&str> {
        self.lines.get(at).map(|(_, line)| line.as_str())
    }
}

/// Whether a line begins a function.
fn is_signature(line: &str) -> bool {
    line.split("fn ").next().is_some_and(|before| {
        before.len() < line.len()
            && before.split_whitespace().all(|word| {
                word.starts_with("pub") || matches!(word, "const" | "async" | "unsafe" | "in")
            })
    })
}

/// The pairs of positions with the same lines, each with the number of lines. Lines that occur more
/// than twice are paired with their first position.
fn repeats(files: &[CodeFile]) -> Vec<(Position, Position, usize)> {
    let mut first_positions: BTreeMap<Vec<&str>, Position> = BTreeMap::new();
    let mut repeats = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let mut at = 0;
        while at + LINES_MIN <= file.lines.len() {
            let window: Vec<&str> = (at..at + LINES_MIN).filter_map(|at| file.line(at)).collect();
            let first = *first_positions.entry(window).or_insert((number, at));
            // Lines that overlap themselves are a list of equal lines.
            if first == (number, at) || (first.0 == number && first.1 + LINES_MIN > at) {
                at += 1;
                continue;
            }
            let lines = run_length(files, first, (number, at));
            repeats.push((first, (number, at), lines));
            at += lines;
        }
    }
    repeats
}

fn run_length(files: &[CodeFile], (one, from): Position, (other, at): Position) -> usize {
    let line = |file: usize, at: usize| files.get(file).and_then(|file| file.line(at));
    let same = |ahead: &usize| {
        let shared = line(one, from + ahead);
        shared.is_some() && shared == line(other, at + ahead)
    };
    let most = files.get(one).map_or(0, |file| file.lines.len());
    (0..most).take_while(same).count()
}

fn describe(files: &[CodeFile], (one, other, lines): (Position, Position, usize)) -> String {
    let position = |(file, at): Position| {
        let file = files.get(file);
        let name = file.map_or("?", |file| file.name.as_str());
        let line = file.and_then(|file| file.lines.get(at)).map_or(0, |(line, _)| *line);
        format!("{name}:{line}")
    };
    format!("{} repeats {lines} lines of {}; share the code", position(other), position(one))
}
