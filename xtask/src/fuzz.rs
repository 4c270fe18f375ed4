//! Runs `cargo fuzz` on nightly, with a fixed number of inputs for each target.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::shell::{self, root};

/// The default number of inputs for each target.
const DEFAULT_RUNS: u64 = 5_000_000;

/// An input that takes longer than this counts as endless.
const TIMEOUT_SECONDS: u64 = 10;

/// A target and its build options.
struct CargoFuzzTarget {
    name: &'static str,
    /// Longer inputs only take more time.
    input_bytes_max: usize,
    /// A sanitizer is worth its cost only if dependencies contain `unsafe` code.
    sanitizer: &'static str,
    /// Whether libFuzzer traces comparisons. That finds the words of a language, at half the speed.
    traces_comparisons: bool,
    /// Options of libFuzzer for choosing inputs, if not the default.
    options: &'static [&'static str],
}

const TARGETS: [CargoFuzzTarget; 7] = [
    CargoFuzzTarget {
        name: "shell",
        input_bytes_max: 4096,
        sanitizer: "none",
        traces_comparisons: true,
        options: &[],
    },
    CargoFuzzTarget {
        name: "definition",
        input_bytes_max: 8192,
        sanitizer: "none",
        traces_comparisons: true,
        options: &[],
    },
    CargoFuzzTarget {
        name: "expression",
        input_bytes_max: 1024,
        sanitizer: "none",
        traces_comparisons: true,
        options: &[],
    },
    CargoFuzzTarget {
        name: "decode",
        input_bytes_max: 1024,
        sanitizer: "none",
        traces_comparisons: true,
        options: &[],
    },
    CargoFuzzTarget {
        name: "wire",
        input_bytes_max: 4096,
        sanitizer: "address",
        traces_comparisons: true,
        options: &[],
    },
    CargoFuzzTarget {
        name: "session",
        input_bytes_max: 120,
        sanitizer: "none",
        traces_comparisons: false,
        options: &["-entropic=0"],
    },
    // A dictionary has its words, and each input runs up to five hook processes. So speed matters
    // most.
    CargoFuzzTarget {
        name: "hook",
        input_bytes_max: 2048,
        sanitizer: "none",
        traces_comparisons: false,
        options: &["-entropic=0"],
    },
];

/// The statistics at the end of a run.
#[derive(Default)]
struct FuzzStats {
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
    println!("\n{:<12} {:>12} {:>10} {:>12}", "target", "executions", "per second", "new inputs");
    for (name, stats) in done {
        let FuzzStats { executions, per_second, new_inputs } = stats;
        println!("{name:<12} {executions:>12} {per_second:>10} {new_inputs:>12}");
    }
    Ok(())
}

fn parse(words: &[String]) -> Result<(Vec<&'static CargoFuzzTarget>, u64), String> {
    let (mut targets, mut runs) = (Vec::new(), DEFAULT_RUNS);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--runs" {
            let number = words.next().and_then(|number| number.replace('_', "").parse().ok());
            runs = number.ok_or("`--runs` takes a number")?;
            continue;
        }
        let target = TARGETS.iter().find(|target| target.name == word);
        targets.push(target.ok_or_else(|| {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            format!("no target `{word}`; the targets are {}", names.join(", "))
        })?);
    }
    if targets.is_empty() {
        targets.extend(&TARGETS);
    }
    Ok((targets, runs))
}

/// A cargo command of the nightly toolchain, independent of the current toolchain.
fn nightly(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(words).current_dir(root());
    command
}

fn check_tools() -> Result<(), String> {
    let succeeds = |words: &[&str]| {
        let mut command = nightly(words);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !succeeds(&["--version"]) {
        return Err(
            "the nightly toolchain is missing; install it with `rustup toolchain install nightly`"
                .to_owned(),
        );
    }
    if !succeeds(&["fuzz", "--version"]) {
        return Err("cargo-fuzz is missing; install it with `cargo install cargo-fuzz`".to_owned());
    }
    Ok(())
}

fn fuzz(target: &CargoFuzzTarget, runs: u64) -> Result<FuzzStats, String> {
    let CargoFuzzTarget { name, input_bytes_max, sanitizer, traces_comparisons: compares, options } =
        target;
    let corpus = format!("fuzz/corpus/{name}");
    std::fs::create_dir_all(root().join(&corpus))
        .map_err(|error| format!("can't create `{corpus}`: {error}"))?;
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

/// Shows the output of a run, except for the lines about each new input.
fn watch(name: &str, command: &mut Command) -> Result<FuzzStats, String> {
    let shown = shell::show(command);
    println!("$ {shown}");
    let cannot = |error| format!("can't run `{shown}`: {error}");
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(cannot)?;
    let mut stats = FuzzStats::default();
    for line in
        child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n'))
    {
        let line = line.map_err(cannot)?;
        let line = String::from_utf8_lossy(&line);
        let is_new_input =
            line.starts_with('#') && (line.contains("NEW") || line.contains("REDUCE"));
        if !is_new_input {
            println!("{line}");
        }
        stats.read_line(&line);
    }
    let status = child.wait().map_err(cannot)?;
    if status.success() {
        return Ok(stats);
    }
    Err(format!("`{name}` failed; see its output above and its input in `fuzz/artifacts/{name}`"))
}

impl FuzzStats {
    /// Reads a number from a line such as `stat::new_units_added: 12`.
    fn read_line(&mut self, line: &str) {
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
