//! `cargo xtask`: the project's own commands. It has no dependencies, so that it builds quickly on
//! a fresh machine.

#![expect(clippy::print_stdout, reason = "these commands print for people")]

mod bench;
mod client_tests;
mod full_tests;
mod fuzz;
mod generate;
mod hook_functions;
mod language;
#[path = "../../crates/bench/src/limits.rs"]
mod limits;
mod local_model;
mod markdown;
mod record;
mod schema_suite;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [FILTER…]   check the house rules and run all tests, with nextest where it
                   is installed; `test --help` lists further groups of tests
  test --full AREA run tests that take too long for `.ci/run`
  tidy             check the house rules that no compiler checks
  language         count the words per sentence in the documents that people read from
                   top to bottom; `language sample` draws files and texts for readers
  generate         write the files that are made from code: the reference of the
                   definition and its JSON Schema
  hook-functions   trace a hook with valgrind and write the list of its functions, which
                   the linker places next to each other: crates/cli/hook-functions.txt
  record [PROGRAM] run the quickstart and draw its output: docs/quickstart.svg
  bench [PART…]    run the benchmarks and compare them with the limits of
                   docs/benchmarks.md; `bench --help` lists the parts
  fuzz [TARGET…] [--runs N]
                   fuzz shell, definition, expression, decode, wire, session, hook with cargo-fuzz,
                   5,000,000 inputs each by default";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match words.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let done = match command {
        "test" => test::run(rest),
        "tidy" => tidy::run(),
        "language" => language::run(rest),
        "generate" => generate::all(),
        "hook-functions" => hook_functions::write(),
        "record" => record::quickstart(rest.first()),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        other => {
            println!("no command `{other}`\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("\nxtask {command}: {reason}");
            ExitCode::FAILURE
        }
    }
}
