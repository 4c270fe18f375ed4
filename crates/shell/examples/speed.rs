//! Measures how long the analysis of a command line takes, for the lines of the tests.
//!
//! `cargo run --release -p jackline-shell --example speed [FILE]`; the file contains
//! an array of JSON strings, one per line.

#![expect(clippy::print_stdout, reason = "an example prints its measurements")]
#![expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::hint::black_box;
use std::time::Instant;

use jackline_shell::understand;

const ROUNDS: usize = 200;

fn main() {
    let lines = match std::env::args().nth(1) {
        Some(path) => {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            serde_json::from_str(&text).unwrap_or_default()
        }
        None => table_lines(),
    };
    let mut times: Vec<u128> = Vec::with_capacity(lines.len());
    for line in &lines {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(understand(black_box(line)));
        }
        times.push(start.elapsed().as_nanos() / ROUNDS as u128);
    }
    let bytes: usize = lines.iter().map(String::len).sum();
    let total: u128 = times.iter().sum();
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("{} lines, {} bytes a line", lines.len(), bytes / lines.len().max(1));
    println!(
        "p50 {} ns, p90 {} ns, p99 {} ns, mean {} ns",
        at(50),
        at(90),
        at(99),
        total / lines.len().max(1) as u128
    );
}

/// Reads the command lines of the hand-written tables.
fn table_lines() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lines");
    let Ok(entries) = std::fs::read_dir(dir) else { return lines };
    for entry in entries.flatten() {
        for row in std::fs::read_to_string(entry.path()).unwrap_or_default().lines() {
            if let Some(line) = row.strip_prefix("$ ") {
                lines.push(line.to_owned());
            } else if let Some(more) = row.strip_prefix("> ")
                && let Some(line) = lines.last_mut()
            {
                line.push('\n');
                line.push_str(more);
            }
        }
    }
    lines
}
