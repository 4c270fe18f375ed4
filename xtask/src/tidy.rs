//! Checks house rules that no compiler checks.

mod benchmarks;
mod confined_words;
mod documents;
mod plain_words;
mod repeats;
mod type_names;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use documents::pages;

use crate::shell::{cargo, output, root};

/// How many external crates `jackline` may use. Start-up and build time are a part of the product:
/// raise this only with a reason. Of the 160, 40 are the validator of JSON Schema, 19
/// `ratatui-core`, 18 ripgrep's libraries, 18 `ureq` with its TLS and 7 `ed25519-dalek`.
const CRATES_MAX: usize = 160;

/// How many lines a source file may have before it should be split. Tests may be longer.
const LINES_MAX: usize = 600;
const TEST_LINES_MAX: usize = 900;

/// Which of our crates the hook may use, directly or indirectly: it starts for every event.
const HOOK_MAY_USE: &str = "clients decode definition engine host journal runtime shell workspace";

/// What the engine may depend on. None of these does I/O.
const ENGINE_MAY_USE: [&str; 7] =
    ["jiff", "once_cell", "postcard", "serde", "serde_json", "sha2", "thiserror"];

/// A crate of ours that does no I/O either.
const PURE: &str = "jackline-shell";

/// Which of our crates may use which others.
const LAYERS: [(&str, &str); 24] = [
    ("engine", "shell"),
    ("shell", ""),
    ("definition", "decode engine"),
    ("journal", "engine"),
    ("host", "engine journal"),
    ("runtime", "decode definition engine host journal"),
    ("analysis", "decode engine host journal runtime"),
    ("evidence", "analysis engine runtime"),
    ("http", ""),
    ("model", "http"),
    ("clients", "engine host journal runtime workspace"),
    ("setup", "clients engine host journal model runtime"),
    ("decode", "engine"),
    ("workspace", "engine"),
    ("attempt", "engine"),
    ("sandbox-host", "attempt"),
    ("sandbox", "attempt sandbox-host"),
    ("mcp", "engine host http journal runtime workspace"),
    (
        "task",
        "analysis attempt decode definition engine host journal model runtime sandbox-host workspace",
    ),
    (
        "supervisor",
        "attempt decode definition engine host journal model runtime sandbox-host task workspace",
    ),
    (
        "cli",
        "analysis attempt clients definition engine evidence host journal mcp model runtime sandbox-host setup supervisor task workspace",
    ),
    ("conformance", "analysis clients decode definition engine host journal runtime workspace"),
    ("fuzzing", "analysis clients decode definition engine host journal runtime shell"),
    (
        "bench",
        "analysis attempt clients decode definition engine host journal model runtime sandbox-host setup shell supervisor task workspace",
    ),
];

pub(crate) fn run() -> Result<(), String> {
    let mut problems = Vec::new();
    check_crates(&mut problems)?;
    check_layers(&mut problems);
    check_hook(&mut problems);
    check_engine(&mut problems);
    check_sources(&mut problems);
    confined_words::check(&mut problems);
    benchmarks::check(&mut problems);
    repeats::check(&mut problems);
    type_names::check(&mut problems);
    documents::check(&mut problems);
    plain_words::check(&mut problems);
    check_example(&mut problems);
    check_changelog(&mut problems);
    if problems.is_empty() {
        println!("tidy: no house rule is broken");
        return Ok(());
    }
    problems.iter().for_each(|problem| println!("tidy: {problem}"));
    Err(format!("{} house rules are broken", problems.len()))
}

fn check_crates(problems: &mut Vec<String>) -> Result<(), String> {
    let tree = ["tree", "--locked", "-p", "jackline", "-e", "normal,build", "--prefix", "none"];
    let tree = output(&mut cargo(&tree))?;
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let crates: BTreeSet<&str> = names.filter(|name| !name.starts_with("jackline")).collect();
    println!("tidy: jackline uses {} external crates, at most {CRATES_MAX}", crates.len());
    if crates.len() > CRATES_MAX {
        problems.push(format!(
            "jackline uses {} external crates, at most {CRATES_MAX} are allowed",
            crates.len()
        ));
    }
    Ok(())
}

fn check_layers(problems: &mut Vec<String>) {
    let crates = root().join("crates");
    let mut unlisted: BTreeSet<String> = children(&crates).iter().map(|path| name(path)).collect();
    for (layer, may_use) in LAYERS {
        unlisted.remove(layer);
        let manifest = read(&crates.join(layer).join("Cargo.toml"));
        if !manifest.contains("[lints]\nworkspace = true") {
            problems.push(format!("crates/{layer} does not use the lints of the workspace"));
        }
        for dependency in dependencies(&manifest) {
            if let Some(own) = dependency.strip_prefix("jackline-")
                && !may_use.split(' ').any(|name| name == own)
            {
                problems.push(format!("crates/{layer} must not use crates/{own}"));
            }
        }
    }
    problems.extend(
        unlisted.iter().map(|layer| format!("crates/{layer} is missing in the list of layers")),
    );
}

/// The module of `jackline hook` uses few of our crates, and these use no others.
fn check_hook(problems: &mut Vec<String>) {
    let may_use = |name: &str| HOOK_MAY_USE.split(' ').any(|allowed| allowed == name);
    let module = read(&root().join("crates/cli/src/commands/hook.rs"));
    let imported = module.split("jackline_").skip(1).filter_map(|rest| rest.split(':').next());
    for name in imported.filter(|name| !may_use(name)) {
        problems.push(format!("the hook must not use crates/{name}"));
    }
    for (layer, uses) in LAYERS.iter().filter(|(layer, _)| may_use(layer)) {
        for used in uses.split(' ').filter(|used| !used.is_empty() && !may_use(used)) {
            problems.push(format!("the hook uses crates/{layer}, which uses crates/{used}"));
        }
    }
}

/// The engine can't read a clock, a file or the environment: it is `no_std`, forbids `unsafe`, and
/// its dependencies do no I/O.
fn check_engine(problems: &mut Vec<String>) {
    let engine = root().join("crates/engine");
    let manifest = read(&engine.join("Cargo.toml"));
    for dependency in dependencies(&manifest) {
        if !ENGINE_MAY_USE.contains(&dependency.as_str()) && dependency != PURE {
            problems.push(format!("the engine must not use `{dependency}`"));
        }
    }
    let workspace = read(&root().join("Cargo.toml"));
    for used in ENGINE_MAY_USE {
        let declared = workspace.lines().find(|line| line.starts_with(&format!("{used} = ")));
        if !declared.is_some_and(|line| line.contains("default-features = false")) {
            problems.push(format!("`{used}` must be declared without default features"));
        }
    }
    if !workspace.contains("unsafe_code = \"forbid\"") {
        problems.push("the workspace must forbid `unsafe`".to_owned());
    }
    let lib = read(&engine.join("src/lib.rs"));
    let head = lib.lines().skip_while(|line| line.starts_with("//!")).collect::<Vec<_>>();
    if !head.contains(&"#![no_std]") {
        problems.push("the engine must be `no_std`".to_owned());
    }
    if !lib.contains("#[cfg(test)]\nextern crate std;") {
        problems.push("the engine may link `std` for its tests only".to_owned());
    }
    for file in sources(&engine.join("src")) {
        let product = product_part(&read(&file));
        let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code.filter(|line| line.contains("std::")) {
            problems.push(format!("{}: the engine has no `std`: `{}`", show(&file), line.trim()));
        }
    }
}

fn check_sources(problems: &mut Vec<String>) {
    // Written in halves, so that this file does not contain the marks.
    let marks = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat());
    for directory in ["crates", "xtask"] {
        for file in sources(&root().join(directory)) {
            let text = read(&file);
            let lines = product_part(&text).lines().count();
            let is_test = file.components().any(|part| part.as_os_str() == "tests");
            if lines > if is_test { TEST_LINES_MAX } else { LINES_MAX } {
                problems.push(format!("{} has {lines} lines; can it be split?", show(&file)));
            }
            if let Some(mark) = marks.iter().find(|mark| text.contains(mark.as_str())) {
                problems.push(format!("{} has a `{mark}`", show(&file)));
            }
            if !text.starts_with("//!") && !text.starts_with("#![doc") {
                problems.push(format!(
                    "{} has no `//!` header that says what the file is for",
                    show(&file)
                ));
            }
        }
    }
}

/// The README of the runtime, which is also its rustdoc, shows the example that CI runs.
fn check_example(problems: &mut Vec<String>) {
    let example = read(&root().join("examples/embed/src/main.rs"));
    let readme = read(&root().join("crates/runtime/README.md"));
    let shown = readme.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```\n"));
    if shown.is_none_or(|(shown, _)| shown != example) {
        problems.push("the README of crates/runtime does not show examples/embed".to_owned());
    }
}

/// A change of the semantics number has an entry in the changelog.
fn check_changelog(problems: &mut Vec<String>) {
    let lib = read(&root().join("crates/engine/src/lib.rs"));
    let number = lib
        .split_once("pub const SEMANTICS: u32 = ")
        .and_then(|(_, rest)| rest.split_once(';'))
        .map(|(number, _)| number.to_owned());
    let changelog = read(&root().join("CHANGELOG.md"));
    if !number.is_some_and(|number| changelog.contains(&format!("semantics {number}"))) {
        problems.push("CHANGELOG.md does not name the current semantics number".to_owned());
    }
}

/// A file without its test module.
fn product_part(text: &str) -> String {
    text.split_once("\n#[cfg(test)]\nmod tests").map_or(text, |(before, _)| before).to_owned()
}

/// The names under `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<String> {
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(ToOwned::to_owned)
        .collect()
}

pub(crate) fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in children(directory) {
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

pub(crate) fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn show(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
