//! Measures a search over a large tree, compared with ripgrep.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use super::bench_server::BenchServer;
use crate::BenchError;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const ROUNDS: usize = 9;
const FILES: usize = 100_000;
const PATTERN: &str = r"needle_\d+";
const SEARCH: Row = Row("io: search in 100,000 files relative to rg");

pub(super) fn run(
    jackline: &Path,
    place: &Path,
    report: &mut BenchReport,
) -> Result<(), BenchError> {
    let root = place.join("work");
    create_tree(&root)?;
    let mut server = BenchServer::start_serve(jackline, place)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut same = true;
    // The first round only warms the cache.
    for round in 0..=ROUNDS {
        let start = Instant::now();
        let matches = server.call("search", &json!({ "pattern": PATTERN }))?;
        let our_time = start.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        let lines = match count_rg_lines(&root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            lines => lines?,
        };
        let their_time = start.elapsed().as_secs_f64() * 1e3;
        same &= matches.pointer("/structuredContent/total_matches") == Some(&json!(lines));
        if round > 0 {
            ours.push(our_time);
            theirs.push(their_time);
        }
    }
    if theirs.is_empty() {
        return measure_alone(&mut server, report);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let context = format!("of rg; {ours:.0} vs {theirs:.0} ms, median of {ROUNDS}");
    report.add(SEARCH, ours / theirs, context);
    report.add_claim(Row("io: search finds the lines that rg finds"), same, String::new());
    Ok(())
}

/// Measures without a comparison, because ripgrep is missing.
fn measure_alone(server: &mut BenchServer, report: &mut BenchReport) -> Result<(), BenchError> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        server.call("search", &json!({ "pattern": PATTERN }))?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let why =
        "rg is not installed, so there is no ratio: `apt install ripgrep`, or put it on the PATH";
    report.add_missing(SEARCH, why);
    report.add(Row("io: search without rg"), median(times), String::new());
    Ok(())
}

/// Creates files with some lines. A tenth of them is ignored, and one in a hundred has a match.
fn create_tree(root: &Path) -> Result<(), BenchError> {
    fs::create_dir_all(root.join(".git"))?;
    fs::write(root.join(".gitignore"), "*.log\nbuild/\n")?;
    for number in 0..FILES {
        let directory = root.join(format!("part{}/sub{}", number / 5000, number % 50));
        fs::create_dir_all(&directory)?;
        let ending = if number % 10 == 9 { "log" } else { "rs" };
        let mut text = "    let value = compute(first, second) + offset;\n".repeat(number % 60 + 5);
        if number % 100 == 0 {
            writeln!(text, "// needle_{number}")?;
        }
        fs::write(directory.join(format!("file{number}.{ending}")), text)?;
    }
    Ok(())
}

/// How many lines ripgrep finds with the same settings as our search: the same ignore rules, line
/// and column of each match, the same maximum line length, any order.
fn count_rg_lines(root: &Path) -> io::Result<u64> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--no-ignore-global", "--color=never", "--no-heading"]);
    command.args(["-n", "--column", "--max-columns=500", "--max-columns-preview"]);
    command.args(["-e", PATTERN, "."]);
    let output = command.current_dir(root).stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().count() as u64)
}
