//! Measures how well loops are detected: `jackline backtest` decides runs of real agents and
//! made-up runs, and a simple reference detector is the comparison.
//!
//! The recorded runs are not in the repository. Their files are recognised by name: `agentdojo*`
//! and `miniswe*`. Results are given for all runs and for two halves, split by a hash of their
//! names. So rules can be tuned on one half and tested on the other.

mod corpus;
mod reference;
mod synthetic;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::Deserialize;

use crate::BenchError;
use crate::report::BenchReport;
use corpus::Corpus;

const NO_RUNS: &str = "no recorded runs: give a directory that contains them as `agentdojo*.jsonl.gz` \
                     and `miniswe*.jsonl.gz`, with one run per line (see docs/guide/backtest.md)";

/// How often each file is decided. The fastest round counts, because other processes use the
/// machine too.
const ROUNDS: usize = 15;

/// The result of `jackline backtest --json` for one run.
#[derive(Deserialize)]
struct BacktestResult {
    id: String,
    soft: Option<u64>,
    hard: Option<u64>,
}

/// Runs all measurements and fills the report.
pub(crate) fn run(
    jackline: &Path,
    directory: Option<&Path>,
    report: &mut BenchReport,
) -> Result<(), BenchError> {
    synthetic::run(jackline, report)?;
    let Some(directory) = directory else {
        println!("{NO_RUNS}\n");
        return Ok(());
    };
    let files = corpus_files(directory)?;
    if files.is_empty() {
        return Err(NO_RUNS.into());
    }
    for file in files {
        let corpus = Corpus::read(&file)?;
        let (results, mut seconds) = backtest(jackline, &file)?;
        for _ in 1..ROUNDS {
            seconds = seconds.min(backtest(jackline, &file)?.1);
        }
        corpus.measure(&results, seconds, report)?;
    }
    Ok(())
}

/// The files whose names say which corpus they belong to.
fn corpus_files(directory: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_packed = path.to_string_lossy().ends_with(".jsonl.gz");
        if is_packed && corpus::CorpusKind::of(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Runs `jackline backtest` on a file. Returns the results and the seconds, including the start of
/// the process and all JSON.
fn backtest(jackline: &Path, file: &Path) -> Result<(Vec<BacktestResult>, f64), BenchError> {
    let empty = tempfile::tempdir()?;
    let start = Instant::now();
    let output = Command::new(jackline)
        .args(["backtest", "--json"])
        .arg(file)
        // An empty directory, so that the default definition applies.
        .current_dir(empty.path())
        .env("HOME", empty.path())
        .env("JACKLINE_HOME", empty.path().join("state"))
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    if !output.status.success() {
        let error_text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("`jackline backtest {}` failed: {error_text}", file.display()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let results = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok((results, seconds))
}

/// The same for made-up runs.
fn backtest_lines(jackline: &Path, lines: &[String]) -> Result<Vec<BacktestResult>, BenchError> {
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile()?;
    for line in lines {
        writeln!(file, "{line}")?;
    }
    file.flush()?;
    Ok(backtest(jackline, file.path())?.0)
}
