//! Fuzzing: `cargo fuzz` on nightly, a fixed number of inputs a target.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::shell::{self, root};

/// How many inputs each target gets unless told otherwise.
const RUNS: u64 = 5_000_000;

/// One input may take this long before it counts as one that does not end.
const TIMEOUT_SECONDS: u64 = 10;

/// A target and how it is built.
struct Target {
    name: &'static str,
    /// Longer inputs bring nothing but time.
    input_bytes_max: usize,
    /// Worth its price where dependencies have `unsafe` code of their own.
    sanitizer: &'static str,
    /// Watching comparisons finds the words of a language, and costs half the speed.
    compares: bool,
    /// How libFuzzer chooses what it keeps, where not in its usual way.
    options: &'static [&'static str],
}

const TARGETS: [Target; 7] = [
    Target {
        name: "shell",
        input_bytes_max: 4096,
        sanitizer: "none",
        compares: true,
        options: &[],
    },
    Target {
        name: "definition",
        input_bytes_max: 8192,
        sanitizer: "none",
        compares: true,
        options: &[],
    },
    Target {
        name: "expression",
        input_bytes_max: 1024,
        sanitizer: "none",
        compares: true,
        options: &[],
    },
    Target {
        name: "decode",
        input_bytes_max: 1024,
        sanitizer: "none",
        compares: true,
        options: &[],
    },
    Target {
        name: "wire",
        input_bytes_max: 4096,
        sanitizer: "address",
        compares: true,
        options: &[],
    },
    Target {
        name: "session",
        input_bytes_max: 120,
        sanitizer: "none",
        compares: false,
        options: &["-entropic=0"],
    },
    // Its words are in a dictionary, and every input is up to five processes of
    // the client's: what counts is how many.
    Target {
        name: "hook",
        input_bytes_max: 2048,
        sanitizer: "none",
        compares: false,
        options: &["-entropic=0"],
    },
];

/// What a run says at its end.
#[derive(Default)]
struct Stats {
    executions: u64,
    per_second: u64,
    new_inputs: u64,
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (targets, runs) = parse(words)?;
    check_tools()?;
    let mut done = Vec::new();
    for target in targets {
        done.push((target.name, fuzz(target, runs)?));
    }
    println!("\n{:<12} {:>12} {:>10} {:>12}", "target", "executions", "a second", "new inputs");
    for (name, stats) in done {
        let Stats { executions, per_second, new_inputs } = stats;
        println!("{name:<12} {executions:>12} {per_second:>10} {new_inputs:>12}");
    }
    Ok(())
}

fn parse(words: &[String]) -> Result<(Vec<&'static Target>, u64), String> {
    let (mut targets, mut runs) = (Vec::new(), RUNS);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--runs" {
            let number = words.next().and_then(|number| number.replace('_', "").parse().ok());
            runs = number.ok_or("`--runs` takes a number")?;
            continue;
        }
        let known = TARGETS.iter().find(|target| target.name == word);
        targets.push(known.ok_or_else(|| {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            format!("no target `{word}`; there are {}", names.join(", "))
        })?);
    }
    if targets.is_empty() {
        targets.extend(&TARGETS);
    }
    Ok((targets, runs))
}

/// A command of nightly's cargo, whichever toolchain runs this.
fn nightly(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(words).current_dir(root());
    command
}

fn check_tools() -> Result<(), String> {
    let works = |words: &[&str]| {
        let mut command = nightly(words);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !works(&["--version"]) {
        return Err("there is no nightly toolchain; `rustup toolchain install nightly`".to_owned());
    }
    if !works(&["fuzz", "--version"]) {
        return Err("cargo-fuzz is missing; `cargo install cargo-fuzz`".to_owned());
    }
    Ok(())
}

fn fuzz(target: &Target, runs: u64) -> Result<Stats, String> {
    let Target { name, input_bytes_max, sanitizer, compares, options } = target;
    let corpus = format!("fuzz/corpus/{name}");
    std::fs::create_dir_all(root().join(&corpus))
        .map_err(|error| format!("can't make `{corpus}`: {error}"))?;
    let mut command = nightly(&["fuzz", "run", name, "--sanitizer", sanitizer]);
    if !compares {
        command.arg("--no-trace-compares");
    }
    command.args([&corpus, &format!("fuzz/seeds/{name}"), "--"]);
    command.args([
        format!("-runs={runs}"),
        format!("-max_len={input_bytes_max}"),
        format!("-dict=fuzz/dictionaries/{name}.dict"),
        format!("-timeout={TIMEOUT_SECONDS}"),
        "-print_final_stats=1".to_owned(),
        "-print_funcs=0".to_owned(),
    ]);
    command.args(*options);
    watch(name, &mut command)
}

/// Shows what a run says, but not every input that it keeps.
fn watch(name: &str, command: &mut Command) -> Result<Stats, String> {
    let shown = shell::show(command);
    println!("$ {shown}");
    let cannot = |error| format!("can't run `{shown}`: {error}");
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(cannot)?;
    let mut stats = Stats::default();
    for line in child.stderr.take().into_iter().flat_map(|said| BufReader::new(said).split(b'\n')) {
        let line = line.map_err(cannot)?;
        let line = String::from_utf8_lossy(&line);
        let kept = line.starts_with('#') && (line.contains("NEW") || line.contains("REDUCE"));
        if !kept {
            println!("{line}");
        }
        stats.note(&line);
    }
    let status = child.wait().map_err(cannot)?;
    if status.success() {
        return Ok(stats);
    }
    Err(format!("`{name}` failed; what it said is above, its input is in `fuzz/artifacts/{name}`"))
}

impl Stats {
    /// Takes a number from a line such as `stat::new_units_added: 12`.
    fn note(&mut self, line: &str) {
        let Some((stat, number)) = line.strip_prefix("stat::").and_then(|l| l.split_once(':'))
        else {
            return;
        };
        let slot = match stat {
            "number_of_executed_units" => &mut self.executions,
            "average_exec_per_sec" => &mut self.per_second,
            "new_units_added" => &mut self.new_inputs,
            _ => return,
        };
        *slot = number.trim().parse().unwrap_or(0);
    }
}
