//! Checks the hand-written tables of command lines and their expected results.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use jackline_shell::understand;

use crate::render::render;

/// A command line of a table and its expected result.
pub(crate) struct LineCase {
    pub(crate) line: String,
    pub(crate) expected: String,
    pub(crate) location: String,
}

/// Reads every table in a directory: `$ ` starts a line, `> ` continues it.
pub(crate) fn read_cases(dir: &str) -> Vec<LineCase> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(dir);
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases: Vec<LineCase> = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for (number, row) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            if let Some(line) = row.strip_prefix("$ ") {
                let place = format!("{name}:{}", number + 1);
                cases.push(LineCase {
                    line: line.to_owned(),
                    expected: String::new(),
                    location: place,
                });
            } else if let Some(more) = row.strip_prefix("> ") {
                let case = cases.last_mut().unwrap();
                case.line.push('\n');
                case.line.push_str(more);
            } else if !row.is_empty() && !row.starts_with('#') {
                let case = cases.last_mut().unwrap();
                case.expected.push_str(row);
                case.expected.push('\n');
            }
        }
    }
    cases
}

#[test]
fn a_command_behind_a_condition_does_not_always_run() {
    for (line, certain) in [
        ("cat a", true),
        ("ls; cat a", true),
        ("cat a | head", true),
        ("{ cat a; }", true),
        ("(cat a) &", true),
        ("f() { cat a; }; f", true),
        ("bash -c 'cat a'", true),
        ("if cat a; then ls; fi", true),
        ("cat a && ls", true),
        ("ls && cat a", false),
        ("ls || cat a", false),
        ("if ls; then cat a; fi", false),
        ("if ls; then ls; elif cat a; then ls; fi", false),
        ("if ls; then ls; else cat a; fi", false),
        ("while ls; do cat a; done", false),
        ("for i in 1; do cat a; done", false),
        ("case x in y) cat a;; esac", false),
        ("exit; cat a", false),
        ("ls || exit; cat a", false),
        ("exec ls; cat a", false),
        ("set -e; cat a", false),
        ("f() { cat a; }", false),
        ("trap 'cat a' EXIT", false),
        ("find . -exec cat a \\;", false),
        ("xargs cat a", false),
    ] {
        let found = understand(line);
        let cat = found.commands.iter().find(|command| command.matches_pattern("cat")).unwrap();
        assert_eq!(cat.always_runs, certain, "{line}");
    }
}

#[test]
fn every_line_gives_the_result_in_its_table() {
    let cases = read_cases("lines");
    let mut wrong = String::new();
    let mut count = 0;
    for case in &cases {
        let found = render(&understand(&case.line));
        if found != case.expected {
            count += 1;
            let _ = write!(
                wrong,
                "{}\n$ {}\nexpected\n{}found\n{found}\n",
                case.location, case.line, case.expected
            );
        }
    }
    assert!(cases.len() >= 300, "only {} lines", cases.len());
    assert!(count == 0, "{count} of {} lines\n{wrong}", cases.len());
}
