//! Runs the official JSON Schema test suite: draft 2020-12, required cases, formats off.
//!
//! The suite is not part of the repository: `cargo xtask test --clients` fetches it, and
//! `JACKLINE_JSON_SCHEMA_SUITE` is its path. `suite-baseline.txt` lists the cases that
//! do not pass: an unlisted failure fails the test, and so does a listed pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jackline_decode::{FormatPolicy, Schema};
use serde_json::Value;

const BASELINE: &str = include_str!("suite-baseline.txt");

#[test]
#[ignore = "needs the suite: cargo xtask test --clients suite"]
#[expect(clippy::disallowed_methods, reason = "the environment names the path of the suite")]
fn the_official_suite_passes_except_for_the_baseline() {
    let suite = std::env::var_os("JACKLINE_JSON_SCHEMA_SUITE").map(PathBuf::from);
    let suite =
        suite.expect("JACKLINE_JSON_SCHEMA_SUITE must be the path of a checkout of the suite");
    let mut passed = 0;
    let mut failed = BTreeSet::new();
    for file in files(&suite.join("tests/draft2020-12")) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let groups: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        for group in groups.as_array().unwrap() {
            let schema = Schema::compile_with(&group["schema"], FormatPolicy::Ignored);
            for test in group["tests"].as_array().unwrap() {
                let case = format!("{name} | {} | {}", text(group), text(test));
                let allowed = schema.as_ref().ok().map(|schema| schema.allows(&test["data"]));
                if allowed == test["valid"].as_bool() {
                    passed += 1;
                } else {
                    let error = schema.as_ref().err().map_or_else(String::new, ToString::to_string);
                    eprintln!("fails: {case} {error}");
                    failed.insert(case);
                }
            }
        }
    }
    eprintln!("{passed} cases pass, {} fail", failed.len());
    assert!(passed > 1000, "only {passed} cases passed, so this is not the suite");
    let listed: BTreeSet<String> = BASELINE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(ToOwned::to_owned)
        .collect();
    let unlisted: Vec<_> = failed.difference(&listed).collect();
    let passing: Vec<_> = listed.difference(&failed).collect();
    assert!(unlisted.is_empty(), "failures that the baseline does not list: {unlisted:#?}");
    assert!(passing.is_empty(), "cases of the baseline that pass: {passing:#?}");
}

fn text(case: &Value) -> &str {
    case["description"].as_str().unwrap()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some()).collect();
    files.sort();
    files
}
