//! Real outputs of test runners and builders, with their expected summaries.
//!
//! `summaries/README.md` describes how each output was made. The table next to it was compared with
//! the runners' own reports.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use jackline_engine::observe::{BuildOutcome, Summaries, TestRunner, TestVerdict, parse_summaries};
use proptest::prelude::*;

/// A row of the table.
struct SummaryCase {
    name: String,
    text: String,
    expected: String,
    failing: bool,
    /// The number of lines at which the text can be cut so that it reads as a passed run: first
    /// without its end, then without its beginning. This is the case if the remaining text is a
    /// complete run, such as the first of several packages.
    blind: [usize; 2],
}

fn cases() -> Vec<SummaryCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/summaries");
    let table = fs::read_to_string(folder.join("expected.tsv")).unwrap();
    let rows = table.lines().skip(1).map(|row| {
        let (name, rest) = row.split_once('\t').unwrap();
        let (rest, headless) = rest.rsplit_once('\t').unwrap();
        let (expected, endless) = rest.rsplit_once('\t').unwrap();
        let bytes = fs::read(folder.join(name).with_extension("txt")).unwrap();
        SummaryCase {
            name: name.to_owned(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            expected: expected.to_owned(),
            failing: expected.contains("failing"),
            blind: [endless.parse().unwrap(), headless.parse().unwrap()],
        }
    });
    rows.collect()
}

/// The summaries in the form of the table.
fn format_row(read: &Summaries) -> String {
    let mut row = String::new();
    match &read.tests {
        None => row.push_str("-\t-\t-\t-\t-\t-"),
        Some(tests) => {
            let passed = tests.passed.map_or("?".to_owned(), |passed| passed.to_string());
            let complete = if tests.complete { "complete" } else { "cut" };
            let verdict = match tests.verdict() {
                TestVerdict::Passing => "passing",
                TestVerdict::Failing => "failing",
                TestVerdict::Unknown => "unknown",
            };
            let (runner, failed, skipped) = (tests.runner.as_str(), tests.failed, tests.skipped);
            write!(row, "{runner}\t{passed}\t{failed}\t{skipped}\t{complete}\t{verdict}").unwrap();
        }
    }
    row.push_str(match read.build {
        None => "\t-",
        Some(BuildOutcome::Ok) => "\tok",
        Some(BuildOutcome::Failed) => "\tfailed",
    });
    row
}

fn check_all(change: impl Fn(&str) -> String) {
    let wrong: Vec<String> = cases()
        .iter()
        .filter_map(|case| {
            let row = format_row(&parse_summaries(&change(&case.text)));
            (row != case.expected)
                .then(|| format!("{}\n  is   {row}\n  not  {}", case.name, case.expected))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn passes(text: &str) -> bool {
    let tests = parse_summaries(text).tests;
    tests.is_some_and(|tests| tests.verdict() == TestVerdict::Passing)
}

#[test]
fn every_output_has_the_counts_of_its_runner() {
    check_all(str::to_owned);
}

#[test]
fn every_file_is_in_the_table_and_there_are_enough() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/summaries");
    let mut files = Vec::new();
    for runner in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(outputs) = fs::read_dir(&runner) else { continue };
        files.extend(outputs.map(|output| {
            let path = output.unwrap().path().with_extension("");
            path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned()
        }));
    }
    files.sort();
    let cases = cases();
    let mut rows: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    rows.sort_unstable();
    assert_eq!(files, rows);
    let is_covered = |runner: &str| cases.iter().any(|case| case.expected.starts_with(runner));
    assert!(cases.len() >= 60);
    assert!(
        TestRunner::ALL.iter().all(|(word, _)| is_covered(word)),
        "a runner without a real output"
    );
}

#[test]
fn colours_line_ends_and_quotes_change_nothing() {
    check_all(|text| text.replace('\n', "\r\n"));
    check_all(|text| text.replace('\n', "\u{1b}[0m\n\u{1b}[32;1m"));
    check_all(|text| text.replace(' ', "\u{1b}]8;;file:///a\u{7} \u{1b}(B\u{1b}[m"));
    // Some clients return a command's output within JSON.
    check_all(|text| {
        // Output that is JSON itself would be parsed as the quoted text.
        if text.starts_with('{') {
            return text.to_owned();
        }
        serde_json::json!({ "stdout": text, "interrupted": false }).to_string()
    });
}

/// Reports that list every part but have no total at the end. If the text is too long to be read
/// completely, the first parts may be missing.
fn has_no_last_word(name: &str) -> bool {
    ["json", "junit/ant", "junit/xml", "xunit", "mixed-junit"].iter().any(|it| name.contains(it))
}

#[test]
fn a_summary_after_a_megabyte_is_read_and_never_too_good() {
    let noise = "[12:00:01] GET /tests/ok 200 in 5 ms, 3 items, 0 left …\n".repeat(20_000);
    assert!(noise.len() > 1 << 20);
    let mut text = noise.clone();
    for case in cases() {
        text.truncate(noise.len());
        text.push_str(&case.text);
        let read = parse_summaries(&text);
        if has_no_last_word(&case.name) {
            let verdict = read.tests.map(|tests| tests.verdict());
            let opposite = if case.failing { TestVerdict::Passing } else { TestVerdict::Failing };
            assert_ne!(verdict, Some(opposite), "{}", case.name);
        } else {
            assert_eq!(format_row(&read), case.expected, "{}", case.name);
        }
    }
}

#[test]
fn a_failing_run_that_is_cut_never_passes() {
    let mut wrong = Vec::new();
    for case in cases().iter().filter(|case| case.failing) {
        let ends: Vec<usize> = case.text.match_indices('\n').map(|(at, _)| at + 1).collect();
        let endless = ends.iter().filter(|at| passes(case.text.get(..**at).unwrap())).count();
        let headless = ends.iter().filter(|at| passes(case.text.get(**at..).unwrap())).count();
        if [endless, headless] != case.blind {
            wrong.push(format!("{}: {endless}, {headless} cuts pass", case.name));
        }
        for (start, end) in ends.iter().zip(ends.iter().skip(3)) {
            let (head, tail) = (case.text.get(..*start).unwrap(), case.text.get(*end..).unwrap());
            if passes(&format!("{head}\n... [3 lines truncated] ...\n{tail}")) {
                wrong.push(format!("{} passes without its line at {start}", case.name));
            }
            if passes(&format!("{head}\n… [output truncated]\n")) {
                wrong.push(format!("{} passes although the end is known to be cut", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_passing_run_that_is_cut_never_fails() {
    for case in cases().iter().filter(|case| passes(&case.text)) {
        for (at, _) in case.text.match_indices('\n') {
            let (head, tail) = case.text.split_at(at + 1);
            for text in [head, tail] {
                let failed = parse_summaries(text).tests.map_or(0, |tests| tests.failed);
                assert_eq!(failed, 0, "{} fails as\n{text}", case.name);
            }
        }
    }
}

#[test]
fn a_text_that_only_looks_like_a_summary_is_not_one() {
    for text in [
        "",
        "5 passed in review, 2 failed in practice\n",
        "5 passed in 3 rounds\n",
        "All tests passed in 3s\n",
        "3 tests completed\n",
        "Tests: 3 passed\nTime: now\n",
        "ok then\nok 1 is enough\n",
        "# tests 5\n# pass 5\n# fail 0\n",
        "FAIL\n",
        "FAILED\n",
        "OK\n",
        "Ran 5 miles in 40m\nOK\n",
        "test result: ok. all passed; none failed\n",
        "Summary [done] 5 files run: 5 passed\n",
        "DONE 5 tests in the morning\n",
        "100% tests passed, I hope\n",
        "3 passing\n2 failing\n",
        "  3 passing (cars)\n",
        "99999999999999999999 passed in 0.01s\n",
        "error: something else\nsrc/a.rs:1:2: error: no\n",
        "see make: *** in the manual\n",
        "note.txt:3:4: error: not a program\n",
        "compiled successfully, says webpack\n",
        "<testsuite> is a tag\n<testsuites tests=\"many\" failures=\"few\">\n",
    ] {
        assert_eq!(parse_summaries(text), Summaries::default(), "{text}");
    }
}

#[test]
fn runs_of_several_runners_are_added() {
    let pytest = "=== 2 passed, 1 skipped in 0.01s ===\n";
    let cargo = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let nextest = "     Summary [   0.1s] 4 tests run: 4 passed, 0 skipped\n";
    let doctests =
        "   Doc-tests a\n\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    let row = |text: &str| format_row(&parse_summaries(text));
    assert_eq!(row(&[pytest, cargo].concat()), "cargo_test\t5\t1\t1\tcomplete\tfailing\t-");
    assert_eq!(row(&[nextest, doctests].concat()), "nextest\t5\t0\t0\tcomplete\tpassing\t-");
    // Something failed that is not a test or was not understood.
    let make = "make: *** [Makefile:3: check] Error 1\n";
    assert_eq!(row(&[pytest, make].concat()), "pytest\t2\t0\t1\tcut\tunknown\tfailed");
}

#[test]
fn a_recorded_summary_can_be_parsed_again() {
    for case in cases() {
        let Some(tests) = parse_summaries(&case.text).tests else { continue };
        let recorded = serde_json::to_string(&tests).unwrap();
        assert!(recorded.len() < 100, "{recorded}");
        assert_eq!(
            serde_json::from_str::<jackline_engine::observe::TestSummary>(&recorded).unwrap(),
            tests
        );
    }
}

#[test]
fn a_hundred_megabytes_are_read_quickly() {
    let huge = "x = 1 passed, 2 failed\n".repeat(5 << 20);
    let read = parse_summaries(&format!("{huge}=== 1 failed, 2 passed in 3.21s ===\n"));
    assert_eq!(format_row(&read), "pytest\t2\t1\t0\tcomplete\tfailing\t-");
    assert_eq!(parse_summaries(&"é".repeat(1 << 20)), Summaries::default());
}

/// Lines from runners, and other texts.
fn piece() -> impl Strategy<Value = String> {
    let lines: Vec<String> = cases()
        .iter()
        .flat_map(|case| case.text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>())
        .collect();
    prop_oneof![
        4 => proptest::sample::select(lines),
        1 => "[ -~\\n\\r\\x1b\\t…é]{0,40}",
        1 => any::<String>(),
        1 => "[=]{0,3}[ ]?[0-9]{1,25} (passed|failed|tests?|errors?|passing|examples?)[,;|]? ?",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_failed_run_never_passes_whatever_is_around_it(
        before in proptest::collection::vec(piece(), 0..12),
        after in proptest::collection::vec(piece(), 0..12),
    ) {
        // A failure that is recognised alone must be recognised in any context.
        let failing = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let text = format!("{}\n{failing}{}", before.concat(), after.concat());
        prop_assert!(!passes(&text));
        let read = parse_summaries(&text);
        prop_assert_eq!(&read, &parse_summaries(&text));
        let tests = read.tests.unwrap();
        if tests.failed > 0 {
            prop_assert_eq!(tests.verdict(), TestVerdict::Failing);
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(parse_summaries(&text), parse_summaries(&text));
    }
}
