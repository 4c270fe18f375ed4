//! `cargo xtask language`: how hard our texts are to read, and samples for readers.

use std::path::{Path, PathBuf};

use crate::markdown;
use crate::shell::{output, root};
use crate::tidy::{read, show, sources};

/// The limits for the pages that people read from top to bottom: words per sentence.
const MEDIAN_MAX: usize = 14;
const PERCENTILE_95_MAX: usize = 30;

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    match words.first().map(String::as_str) {
        None => sentences(),
        Some("sample") => sample(),
        Some(other) => Err(format!("no part `{other}`; use `language` or `language sample`")),
    }
}

/// Prints the words per sentence of each page, and fails where all pages together exceed a limit.
fn sentences() -> Result<(), String> {
    let mut all = Vec::new();
    for page in pages() {
        let mut lengths = markdown::sentence_lengths(&read(&page));
        println!("{:<36} {}", show(&page), summary(&mut lengths));
        all.append(&mut lengths);
    }
    println!("{:<36} {}", "all", summary(&mut all));
    let (median, percentile_95) = (at(&all, 50), at(&all, 95));
    if median > MEDIAN_MAX || percentile_95 > PERCENTILE_95_MAX {
        return Err(format!(
            "at most {MEDIAN_MAX} words at the median, {PERCENTILE_95_MAX} at 95 %"
        ));
    }
    Ok(())
}

fn pages() -> Vec<PathBuf> {
    let mut pages =
        ["README.md", "ARCHITECTURE.md", "SECURITY.md"].map(|name| root().join(name)).to_vec();
    pages.extend(
        crate::tidy::pages().into_iter().filter(|page| page.starts_with(root().join("docs/guide"))),
    );
    pages
}

fn summary(lengths: &mut [usize]) -> String {
    lengths.sort_unstable();
    format!(
        "{:>4} sentences, median {:>2}, 95 % {:>2}",
        lengths.len(),
        at(lengths, 50),
        at(lengths, 95)
    )
}

fn at(sorted: &[usize], percent: usize) -> usize {
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}

/// Draws ten files from ten crates and twenty texts that people or models read. The commit id seeds
/// the draw, so that it can be repeated and not chosen.
fn sample() -> Result<(), String> {
    let commit =
        output(std::process::Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()))?;
    let mut draw = Draw::seeded(commit.trim());
    println!("commit {}\n\nfiles:", commit.trim());
    let mut crates: Vec<PathBuf> = crate::tidy::children(&root().join("crates"));
    for _ in 0..10 {
        let drawn = crates.swap_remove(draw.below(crates.len()));
        let mut files = sources(&drawn.join("src"));
        files.retain(|file| (60..=400).contains(&read(file).lines().count()) && is_product(file));
        if let Some(file) = files.get(draw.below(files.len())) {
            println!("  {}", show(file));
        }
    }
    println!("\ntexts:");
    let mut texts = texts();
    for _ in 0..20 {
        let (file, text) = texts.swap_remove(draw.below(texts.len()));
        println!("  {}: {text}", show(&file));
    }
    Ok(())
}

/// The literals of product code that read like an error or a denial: several words, and words that
/// errors have.
fn texts() -> Vec<(PathBuf, String)> {
    let signs =
        ["can't", "cannot", "must", "invalid", "missing", "denied", "refused", "not ", "no `"];
    let mut texts = Vec::new();
    for file in sources(&root().join("crates"))
        .into_iter()
        .filter(|file| is_product(file) && !is_tool(file))
    {
        let text = read(&file);
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code: Vec<&str> = product.lines().filter(|line| !is_comment(line)).collect();
        let code = code.join("\n");
        for (at, literal) in code.split('"').enumerate() {
            let words = literal.split_whitespace().count();
            let is_text = at % 2 == 1 && (6..=45).contains(&words) && !literal.contains("::");
            // The sentences about keys are reference, not messages.
            let is_reference = show(&file).starts_with("crates/definition/src/sections")
                && literal.starts_with(char::is_uppercase);
            if is_text && !is_reference && signs.iter().any(|sign| literal.contains(sign)) {
                texts
                    .push((file.clone(), literal.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
        }
    }
    texts
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.contains("reason = ")
}

fn is_product(file: &Path) -> bool {
    let path = show(file);
    !["/tests/", "tests.rs"].iter().any(|part| path.contains(part))
}

/// Whether a file belongs to a crate that only we run.
fn is_tool(file: &Path) -> bool {
    let path = show(file);
    ["crates/bench/", "crates/fuzzing/", "crates/conformance/"]
        .iter()
        .any(|part| path.contains(part))
}

/// Numbers that follow from a text.
struct Draw(u64);

impl Draw {
    fn seeded(text: &str) -> Self {
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % end.max(1)
    }
}
