//! Runs the benchmarks, which measure ratios of two programs in the same run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::limits::{Limit, Row};
use crate::shell::{self, cargo, root};

pub(crate) const USAGE: &str = "\
usage: cargo xtask bench [PART…]       several of these parts; all but `build` by default
         engine      `decide` and `apply` of an event, relative to a Cedar decision
         process     one process per event, relative to /bin/true: `stdio`, `hook claude`,
                     page faults, eight processes on one session
         replay      `replay` and `verify`, relative to parsing and hashing
         transcript  the latest usage record of a long transcript
         build       a clean release build: its time, and the size of the binary

       cargo xtask bench PART [WORD…]  one of these parts
         attempt     what attempts cost: around a trivial program, and with many files
         corpus FILE…
                     decide recorded runs (.jsonl.gz) again, and count the calls that the
                     guards would have stopped
         io [DIR] [--bytes N] [--seconds N] [--only PART]…
                     files, trees and the MCP proxy: first_page (writes 10 GB in DIR and
                     removes them), search (relative to rg), streaming, proxy, steady (a minute)
         loops [DIR] how well loops are detected: in made-up runs, and in recorded runs of
                     a directory (agentdojo*.jsonl.gz, miniswe*.jsonl.gz)
         run         what `jackline run` costs, and how soon it stops or changes its model

docs/benchmarks.md has the limit of every row; a value that exceeds its limit fails the run.
";

/// Parts that can be combined.
const TOGETHER: [&str; 5] = ["engine", "process", "replay", "transcript", "build"];

/// Parts with their own arguments, which run only if they are named.
const ALONE: [&str; 5] = ["attempt", "corpus", "io", "loops", "run"];

const BUILD: Row = Row("build: clean release build");
const BINARY: Row = Row("build: size of the binary");

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    if let Some(part) = words.first().filter(|part| ALONE.contains(&part.as_str())) {
        if part == "attempt" {
            build_release("jackline-sandbox")?;
        }
        return measure(words);
    }
    if let Some(unknown) = words.iter().find(|part| !TOGETHER.contains(&part.as_str())) {
        let (together, alone) = (TOGETHER.join(", "), ALONE.join(", "));
        return Err(format!(
            "no part `{unknown}`; parts that can be combined: {together}; parts that run alone: {alone}; see `cargo xtask bench --help`"
        ));
    }
    if words.iter().any(|part| part == "build") {
        build()?;
    }
    let others: Vec<String> = words.iter().filter(|part| *part != "build").cloned().collect();
    if words.is_empty() || !others.is_empty() { measure(&others) } else { Ok(()) }
}

/// Builds the programs and measures them.
fn measure(words: &[String]) -> Result<(), String> {
    build_release("jackline")?;
    build_release("jackline-bench")?;
    let release = target_directory()?.join("release");
    let mut bench = Command::new(release.join("jackline-bench"));
    shell::run(bench.arg(release.join("jackline")).args(words))
}

fn build_release(package: &str) -> Result<(), String> {
    shell::run(&mut cargo(&["build", "--release", "--locked", "-p", package]))
}

/// The target directory of cargo, which the environment may set.
pub(crate) fn target_directory() -> Result<PathBuf, String> {
    let metadata = shell::output(&mut cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let (_, rest) = metadata.split_once("\"target_directory\":\"").ok_or("no target directory")?;
    let (path, _) = rest.split_once('"').ok_or("no target directory")?;
    Ok(PathBuf::from(path))
}

fn build() -> Result<(), String> {
    let target = root().join("target").join("bench-build");
    let _ = fs::remove_dir_all(&target);
    shell::run(&mut cargo(&["fetch", "--locked"]))?;
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = Instant::now();
    let mut command = cargo(&["build", "--release", "--locked", "-p", "jackline"]);
    shell::run(command.env("CARGO_TARGET_DIR", &target))?;
    let seconds = start.elapsed().as_secs_f64().round();
    let binary = target.join("release/jackline");
    let length = fs::metadata(&binary)
        .map_err(|error| format!("can't read the size of `{}`: {error}", binary.display()))?
        .len();
    let _ = fs::remove_dir_all(&target);
    let megabytes = format!("{}.{:02}", length / 1_000_000, length % 1_000_000 / 10_000);
    let megabytes = megabytes.parse().unwrap_or(f64::INFINITY);
    let built = report(BUILD, "build", seconds);
    report(BINARY, "binary", megabytes).and(built)
}

/// Prints a value and its limit. Fails if the value exceeds the limit.
fn report(row: Row, name: &str, value: f64) -> Result<(), String> {
    let Some((Limit::AtMost(limit), unit)) = row.limit() else {
        return Err(format!("docs/benchmarks.md has no limit for `{}`", row.0));
    };
    println!("{}: {value} {unit}, at most {limit}", row.0);
    println!("{{\"name\":\"{name}\",\"value\":{value},\"unit\":\"{unit}\",\"limit\":{limit}}}");
    if value > limit { Err(format!("{}: {value} {unit}", row.0)) } else { Ok(()) }
}
