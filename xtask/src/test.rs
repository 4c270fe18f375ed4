//! All tests that a fresh machine with Rust can run.

use crate::shell::{self, cargo, has_cargo};
use crate::tidy;

/// Benchmarks bring a second policy engine for comparison; tests don't need it.
const WHAT: [&str; 4] = ["--workspace", "--exclude", "jackline-bench", "--locked"];

pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    if filter.is_empty() {
        tidy::run()?;
    }
    let runner: &[&str] = if has_cargo("nextest") { &["nextest", "run"] } else { &["test"] };
    shell::run(cargo(runner).args(WHAT).args(filter))
}
