//! How well loops are found: runs of real agents, and made-up ones, decided by
//! `jackline backtest` beside a plain yardstick.
//!
//! The recorded runs are not in the repository. A file of them is told by its
//! name: `agentdojo*` and `miniswe*`. Figures are given for all runs and for two
//! halves, split by a hash of their names, so that one half can be left alone
//! while rules are tuned on the other.

mod corpus;
mod reference;
mod synthetic;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::Deserialize;

use crate::Failure;
use crate::report::Report;
use corpus::Corpus;

const WHERE: &str = "no recorded runs: give a directory that holds them as `agentdojo*.jsonl.gz` and \
                     `miniswe*.jsonl.gz`, one run a line (see docs/guide/backtest.md)";

/// How often a file is decided on; the fastest counts, because others work too.
const ROUNDS: usize = 15;

/// What `jackline backtest --json` says of a run.
#[derive(Deserialize)]
struct Found {
    id: String,
    soft: Option<u64>,
    hard: Option<u64>,
}

/// Decides on everything and fills the table.
pub(crate) fn run(
    jackline: &Path,
    directory: Option<&Path>,
    report: &mut Report,
) -> Result<(), Failure> {
    synthetic::run(jackline, report)?;
    let Some(directory) = directory else {
        println!("{WHERE}\n");
        return Ok(());
    };
    let files = files(directory)?;
    if files.is_empty() {
        return Err(WHERE.into());
    }
    for file in files {
        let corpus = Corpus::read(&file)?;
        let (found, mut seconds) = backtest(jackline, &file)?;
        for _ in 1..ROUNDS {
            seconds = seconds.min(backtest(jackline, &file)?.1);
        }
        corpus.measure(&found, seconds, report)?;
    }
    Ok(())
}

/// The files whose names say what they are.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_packed = path.to_string_lossy().ends_with(".jsonl.gz");
        if is_packed && corpus::Kind::of(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Has `jackline` decide on a file, and says how many seconds that took, the
/// start of the process and all JSON included.
fn backtest(jackline: &Path, file: &Path) -> Result<(Vec<Found>, f64), Failure> {
    let empty = tempfile::tempdir()?;
    let start = Instant::now();
    let output = Command::new(jackline)
        .args(["backtest", "--json"])
        .arg(file)
        // No definition but the default one.
        .current_dir(empty.path())
        .env("HOME", empty.path())
        .env("JACKLINE_HOME", empty.path().join("state"))
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("`jackline backtest {}` failed: {said}", file.display()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let found = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok((found, seconds))
}

/// The same for runs that are made up.
fn backtest_lines(jackline: &Path, lines: &[String]) -> Result<Vec<Found>, Failure> {
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile()?;
    for line in lines {
        writeln!(file, "{line}")?;
    }
    file.flush()?;
    Ok(backtest(jackline, file.path())?.0)
}
