//! Runs tests that take too long for the gate, one area at a time and on request.

use crate::shell::{self, cargo};
use crate::{client_tests, fuzz, local_model};

/// Tests that belong together and run on request.
struct TestArea {
    name: &'static str,
    about: &'static str,
    /// Gets the arguments after the name of the area.
    run: fn(&[String]) -> Result<(), String>,
}

const AREAS: [TestArea; 6] = [
    TestArea {
        name: "clients",
        about: "every test with the real Claude Code, real MCP servers, and the official\n\
                JSON Schema suite; [FILTER…]",
        run: client_tests::run,
    },
    TestArea {
        name: "detector",
        about: "a million events: compares the loop detector with its reference model, a minute",
        run: detector,
    },
    TestArea {
        name: "fuzz",
        about: "every fuzz target with 5,000,000 inputs, hours; [TARGET…] [--runs N]",
        run: fuzz::run,
    },
    TestArea {
        name: "kills",
        about: "1,000 kills at random moments of each: an attempt, a shell command,\n\
                a change of the tool registry",
        run: kills,
    },
    TestArea {
        name: "local-model",
        about: "tests with a small model in the same process; the first build takes a\n\
                quarter of an hour; [FILTER…]",
        run: local_model::run,
    },
    TestArea {
        name: "soak",
        about: "10,000 iterations of `jackline run` with failing models, crashing tools and\n\
                kills of the supervisor",
        run: soak,
    },
];

/// How often the tests kill a process that is changing something.
const KILLS: &str = "1000";

/// How many iterations of `jackline run` a soak has.
const SOAK_ITERATIONS: &str = "10000";

/// Runs an area. Without one, lists them.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let Some((name, rest)) = words.split_first() else {
        println!("usage: cargo xtask test --full AREA [WORD…]\n\n{}", list());
        return Ok(());
    };
    let Some(area) = AREAS.iter().find(|area| area.name == name) else {
        let names: Vec<_> = AREAS.iter().map(|area| area.name).collect();
        return Err(format!("no area `{name}`; the areas are {}", names.join(", ")));
    };
    (area.run)(rest)
}

/// All areas with their descriptions, as lines of a usage text.
pub(crate) fn list() -> String {
    let describe = |area: &TestArea| {
        let about = area.about.replace('\n', &format!("\n{:23}", ""));
        format!("    {:<18} {about}\n", area.name)
    };
    AREAS.iter().map(describe).collect()
}

fn detector(words: &[String]) -> Result<(), String> {
    takes_no_words("detector", words)?;
    test(&["-p", "jackline-engine", "--lib", "a_million_events"], &["--ignored"], &[])
}

fn kills(words: &[String]) -> Result<(), String> {
    takes_no_words("kills", words)?;
    let often = [("UNDO_KILLS", KILLS), ("REGISTRY_KILLS", KILLS)];
    test(&["-p", "jackline-workspace", "--test", "tools", "killed_at_any_moment"], &[], &often)?;
    test(&["-p", "jackline-task", "--test", "tasks", "after_a_kill"], &[], &often)
}

fn soak(words: &[String]) -> Result<(), String> {
    takes_no_words("soak", words)?;
    let iterations = [("RUN_ITERATIONS", SOAK_ITERATIONS)];
    test(&["-p", "jackline", "--test", "cli", "soak"], &[], &iterations)
}

/// Runs some tests and shows their output, which has the measured values.
fn test(which: &[&str], options: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut command = cargo(&["test", "--locked"]);
    command.args(which).arg("--").args(options).arg("--nocapture");
    shell::run(command.envs(environment.iter().copied()))
}

fn takes_no_words(area: &str, words: &[String]) -> Result<(), String> {
    match words.first() {
        None => Ok(()),
        Some(word) => Err(format!("unexpected argument `{word}`; `{area}` takes none")),
    }
}
