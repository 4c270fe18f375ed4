//! Runs all tests that a fresh machine with Rust can run.

use crate::shell::{self, cargo, has_cargo};
use crate::{client_tests, full_tests, local_model, tidy};

const USAGE: &str = "\
usage: cargo xtask test [FILTER…]
         Without a filter: check the house rules, run the examples in the
         documentation and all tests. With one: run the tests that match it.

       cargo xtask test --clients [FILTER…]
         Install the pinned agent client, MCP servers and the JSON Schema suite into a
         cache directory, and run the tests that need them. `.ci/run` does this too.

       cargo xtask test --local-model [FILTER…]
         Fetch a small model (98 MB) into a cache directory, build with the feature
         `local-model`, and run the tests that use the model.

       cargo xtask test --full AREA [WORD…]
         Run tests that take too long for `.ci/run`. Without an area: list the areas.
";

/// The benchmarks depend on a second policy engine for comparison, which the tests don't need.
const PACKAGES: [&str; 4] = ["--workspace", "--exclude", "jackline-bench", "--locked"];

pub(crate) fn run(filter: &[String]) -> Result<(), String> {
    if let Some((first, rest)) = filter.split_first() {
        match first.as_str() {
            "--help" | "-h" => {
                println!("{USAGE}\nareas of --full:\n{}", full_tests::list());
                return Ok(());
            }
            "--full" => return full_tests::run(rest),
            "--clients" => return client_tests::run(rest),
            "--local-model" => return local_model::run(rest),
            _ => {}
        }
    }
    if filter.is_empty() {
        tidy::run()?;
    }
    if !has_cargo("nextest") {
        return shell::run(cargo(&["test"]).args(PACKAGES).args(filter));
    }
    // nextest does not run the examples in the documentation.
    if filter.is_empty() {
        shell::run(cargo(&["test", "--doc", "--quiet"]).args(PACKAGES))?;
        shell::run(&mut cargo(&["run", "--quiet", "--locked", "-p", "jackline-example-embed"]))?;
    }
    shell::run(cargo(&["nextest", "run"]).args(PACKAGES).args(filter))
}
