//! All tests that a fresh machine with Rust can run.

use crate::shell::{self, cargo, has_cargo};
use crate::{clients, local_model, tidy};

/// Benchmarks bring a second policy engine for comparison; tests don't need it.
const WHAT: [&str; 4] = ["--workspace", "--exclude", "jackline-bench", "--locked"];

pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    if let Some((first, rest)) = filter.split_first() {
        match first.as_str() {
            "--clients" => return clients::run(rest),
            "--local-model" => return local_model::run(rest),
            _ => {}
        }
    }
    if filter.is_empty() {
        tidy::run()?;
    }
    if !has_cargo("nextest") {
        return shell::run(cargo(&["test"]).args(WHAT).args(filter));
    }
    // The quicker runner leaves out the examples in the documentation.
    if filter.is_empty() {
        shell::run(cargo(&["test", "--doc", "--quiet"]).args(WHAT))?;
    }
    shell::run(cargo(&["nextest", "run"]).args(WHAT).args(filter))
}
