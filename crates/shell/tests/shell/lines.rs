//! The hand-written tables: lines, and what they do.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use jackline_shell::understand;

use crate::render::render;

/// A line of a table and the rows expected for it.
pub(crate) struct Case {
    pub(crate) line: String,
    pub(crate) expected: String,
    pub(crate) place: String,
}

/// Reads every table in a directory: `$ ` starts a line, `> ` continues it.
pub(crate) fn cases(dir: &str) -> Vec<Case> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(dir);
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases: Vec<Case> = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for (number, row) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            if let Some(line) = row.strip_prefix("$ ") {
                let place = format!("{name}:{}", number + 1);
                cases.push(Case { line: line.to_owned(), expected: String::new(), place });
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
fn what_stands_behind_a_condition_is_not_certain() {
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
        let cat = found.commands.iter().find(|command| command.is("cat")).unwrap();
        assert_eq!(cat.certain, certain, "{line}");
    }
}

#[test]
fn every_line_does_what_the_tables_say() {
    let cases = cases("lines");
    let mut wrong = String::new();
    let mut count = 0;
    for case in &cases {
        let found = render(&understand(&case.line));
        if found != case.expected {
            count += 1;
            let _ = write!(
                wrong,
                "{}\n$ {}\nexpected\n{}found\n{found}\n",
                case.place, case.line, case.expected
            );
        }
    }
    assert!(cases.len() >= 300, "only {} lines", cases.len());
    assert!(count == 0, "{count} of {} lines\n{wrong}", cases.len());
}
