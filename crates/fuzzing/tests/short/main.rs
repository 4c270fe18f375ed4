//! Runs every fuzz target briefly on the stable toolchain: with the seeds, and with inputs that are
//! made from them with a fixed random seed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod dictionary;
mod mutation;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use jackline_fuzzing::{FuzzTarget, TARGETS};

use mutation::Mutator;

/// The directory of the fuzzer.
fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn target(name: &str) -> FuzzTarget {
    *TARGETS.iter().find(|target| target.name == name).unwrap()
}

/// The seeds of a target, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(fuzz().join("seeds").join(name)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Runs a target on its seeds, and on this many inputs that are made from them.
fn run(name: &str, inputs: usize) {
    let target = target(name);
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "there are no seeds for {name}");
    for seed in &seeds {
        assert!(seed.len() <= target.input_bytes_max, "a seed of {name} is too long");
        try_input(target, seed);
    }
    let words = dictionary::read(&fuzz().join("dictionaries").join(format!("{name}.dict")));
    let mut mutator = Mutator::new(seeds, words, target.input_bytes_max);
    for _ in 0..inputs {
        try_input(target, &mutator.next_input());
    }
}

/// Reports the input if the target fails on it.
fn try_input(target: FuzzTarget, input: &[u8]) {
    let result = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    assert!(result.is_ok(), "{} fails on \"{}\"", target.name, input.escape_ascii());
}

#[test]
fn every_line_is_understood_or_opaque() {
    run("shell", 10_000);
}

#[test]
fn every_file_loads_or_has_errors_with_a_position() {
    run("definition", 1_000);
}

#[test]
fn every_condition_is_parsed_or_has_an_error_with_a_position() {
    run("expression", 5_000);
}

#[test]
fn decoded_values_are_valid_and_valid_texts_pass_the_streaming_check() {
    run("decode", 5_000);
}

#[test]
fn every_line_on_the_wire_is_an_event_or_an_error() {
    run("wire", 10_000);
}

#[test]
fn every_session_is_answered_and_restored() {
    run("session", 1_500);
}

#[test]
fn no_payload_of_a_client_opens_a_gate() {
    run("hook", 1_000);
}

#[test]
fn every_target_is_built_by_the_fuzzer() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for target in TARGETS {
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
    }
}
