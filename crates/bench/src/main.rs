//! Measures ratios of two programs in the same run, because machines are noisy.
//!
//! `cargo xtask bench` builds this program and `jackline` in release mode and runs it.

#![expect(
    clippy::disallowed_methods,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a benchmark reads clocks, computes with floats and prints"
)]

mod appends;
mod attempt;
mod cedar;
mod corpus;
mod engine;
mod hook;
mod io;
mod limits;
mod loops;
mod mix;
mod process;
mod replay;
mod report;
mod run;
mod transcript;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::report::BenchReport;

type BenchError = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let first = words.next();
    if first.as_deref() == Some(io::ECHO_ARGUMENT) {
        return io::serve_echo().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if first.as_deref() == Some(io::COPIES_ARGUMENT) {
        return io::serve_copies(io::ECHO_ARGUMENT)
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let Some(jackline) = first.map(PathBuf::from) else {
        println!(
            "usage: jackline-bench PATH-OF-JACKLINE [engine|process|replay|transcript]… | corpus FILE… | \
             loops [DIR] | io [DIR] [--bytes N] [--seconds N] [--only PART]… | attempt | run"
        );
        return ExitCode::from(2);
    };
    let wanted: Vec<String> = words.collect();
    if let [part, files @ ..] = wanted.as_slice()
        && part == "corpus"
    {
        return match files.iter().try_for_each(|file| corpus::run(file)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                println!("the corpus can't be decided: {failure}");
                ExitCode::from(3)
            }
        };
    }
    if let [part, rest @ ..] = wanted.as_slice()
        && part == "loops"
    {
        let mut report = BenchReport::default();
        let directory = rest.first().map(PathBuf::from);
        let played = loops::run(&jackline, directory.as_deref(), &mut report);
        return finish(played, &report);
    }
    if let [part, rest @ ..] = wanted.as_slice()
        && part == "io"
    {
        let mut report = BenchReport::default();
        let measured = io::run(&jackline, rest, &mut report);
        return finish(measured, &report);
    }
    if wanted == ["attempt"] {
        let mut report = BenchReport::default();
        let measured = attempt::run(&jackline, &mut report);
        return finish(measured, &report);
    }
    if wanted == ["run"] {
        let mut report = BenchReport::default();
        let measured = run::run(&jackline, &mut report);
        return finish(measured, &report);
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut report = BenchReport::default();
    let chosen = || -> Result<(), BenchError> {
        if is_wanted("engine") {
            engine::run(&mut report)?;
        }
        if is_wanted("process") {
            process::run(&jackline, &mut report)?;
            hook::run(&jackline, &mut report)?;
        }
        if is_wanted("replay") {
            replay::run(&mut report)?;
        }
        if is_wanted("transcript") {
            transcript::run(&mut report)?;
        }
        Ok(())
    };
    let ran = { chosen }();
    finish(ran, &report)
}

/// Prints the results. Fails if a value exceeds its limit.
fn finish(ran: Result<(), BenchError>, report: &BenchReport) -> ExitCode {
    if let Err(failure) = ran {
        println!("the benchmark failed: {failure}");
        return ExitCode::from(3);
    }
    report.print();
    if report.is_within() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
