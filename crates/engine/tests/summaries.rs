//! Real outputs of test runners and builders, and what they come to.
//!
//! `summaries/README.md` says how each was made. The table beside it was checked
//! against the runners' own reports.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use jackline_engine::observe::{BuildOutcome, Runner, Summaries, TestVerdict, summaries};
use proptest::prelude::*;

/// A row of the table.
struct Case {
    name: String,
    text: String,
    expected: String,
    failing: bool,
    /// At how many of its lines the text may be cut to read as a run that passed,
    /// without its end and without its beginning: where what is left is a whole
    /// run, such as the first of several packages.
    blind: [usize; 2],
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/summaries");
    let table = fs::read_to_string(folder.join("expected.tsv")).unwrap();
    let rows = table.lines().skip(1).map(|row| {
        let (name, rest) = row.split_once('\t').unwrap();
        let (rest, headless) = rest.rsplit_once('\t').unwrap();
        let (expected, endless) = rest.rsplit_once('\t').unwrap();
        let bytes = fs::read(folder.join(name).with_extension("txt")).unwrap();
        Case {
            name: name.to_owned(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            expected: expected.to_owned(),
            failing: expected.contains("failing"),
            blind: [endless.parse().unwrap(), headless.parse().unwrap()],
        }
    });
    rows.collect()
}

/// What was read, as the table writes it.
fn told(read: &Summaries) -> String {
    let mut told = String::new();
    match &read.tests {
        None => told.push_str("-\t-\t-\t-\t-\t-"),
        Some(tests) => {
            let passed = tests.passed.map_or("?".to_owned(), |passed| passed.to_string());
            let complete = if tests.complete { "complete" } else { "cut" };
            let verdict = match tests.verdict() {
                TestVerdict::Passing => "passing",
                TestVerdict::Failing => "failing",
                TestVerdict::Unknown => "unknown",
            };
            let (runner, failed, skipped) = (tests.runner.word(), tests.failed, tests.skipped);
            write!(told, "{runner}\t{passed}\t{failed}\t{skipped}\t{complete}\t{verdict}").unwrap();
        }
    }
    told.push_str(match read.build {
        None => "\t-",
        Some(BuildOutcome::Ok) => "\tok",
        Some(BuildOutcome::Failed) => "\tfailed",
    });
    told
}

fn check_all(change: impl Fn(&str) -> String) {
    let wrong: Vec<String> = cases()
        .iter()
        .filter_map(|case| {
            let told = told(&summaries(&change(&case.text)));
            (told != case.expected)
                .then(|| format!("{}\n  is   {told}\n  not  {}", case.name, case.expected))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn passes(text: &str) -> bool {
    let tests = summaries(text).tests;
    tests.is_some_and(|tests| tests.verdict() == TestVerdict::Passing)
}

#[test]
fn every_output_comes_to_what_its_runner_counted() {
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
    let heard = |runner: &str| cases.iter().any(|case| case.expected.starts_with(runner));
    assert!(cases.len() >= 60);
    assert!(Runner::ALL.iter().all(|(word, _)| heard(word)), "a runner without a real output");
}

#[test]
fn colours_line_ends_and_quotes_change_nothing() {
    check_all(|text| text.replace('\n', "\r\n"));
    check_all(|text| text.replace('\n', "\u{1b}[0m\n\u{1b}[32;1m"));
    check_all(|text| text.replace(' ', "\u{1b}]8;;file:///a\u{7} \u{1b}(B\u{1b}[m"));
    // Some clients hand over a command's output within JSON.
    check_all(|text| {
        // What is JSON itself would be read as what it quotes.
        if text.starts_with('{') {
            return text.to_owned();
        }
        serde_json::json!({ "stdout": text, "interrupted": false }).to_string()
    });
}

/// Reports that name every part and sum up nowhere at their end. Of a text that is
/// too long to be read whole, the first parts may be missing.
fn has_no_last_word(name: &str) -> bool {
    ["json", "junit/ant", "junit/xml", "xunit", "mixed-junit"].iter().any(|it| name.contains(it))
}

#[test]
fn what_stands_behind_a_megabyte_is_read_and_never_better_than_it_is() {
    let noise = "[12:00:01] GET /tests/ok 200 in 5 ms, 3 items, 0 left …\n".repeat(20_000);
    assert!(noise.len() > 1 << 20);
    let mut text = noise.clone();
    for case in cases() {
        text.truncate(noise.len());
        text.push_str(&case.text);
        let read = summaries(&text);
        if has_no_last_word(&case.name) {
            let verdict = read.tests.map(|tests| tests.verdict());
            let opposite = if case.failing { TestVerdict::Passing } else { TestVerdict::Failing };
            assert_ne!(verdict, Some(opposite), "{}", case.name);
        } else {
            assert_eq!(told(&read), case.expected, "{}", case.name);
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
                let failed = summaries(text).tests.map_or(0, |tests| tests.failed);
                assert_eq!(failed, 0, "{} fails as\n{text}", case.name);
            }
        }
    }
}

#[test]
fn what_only_looks_like_a_summary_is_none() {
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
        assert_eq!(summaries(text), Summaries::default(), "{text}");
    }
}

#[test]
fn runs_of_several_runners_are_added() {
    let pytest = "=== 2 passed, 1 skipped in 0.01s ===\n";
    let cargo = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let nextest = "     Summary [   0.1s] 4 tests run: 4 passed, 0 skipped\n";
    let doctests =
        "   Doc-tests a\n\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    let told = |text: &str| told(&summaries(text));
    assert_eq!(told(&[pytest, cargo].concat()), "cargo_test\t5\t1\t1\tcomplete\tfailing\t-");
    assert_eq!(told(&[nextest, doctests].concat()), "nextest\t5\t0\t0\tcomplete\tpassing\t-");
    // Something failed that is not a test, or was not understood.
    let make = "make: *** [Makefile:3: check] Error 1\n";
    assert_eq!(told(&[pytest, make].concat()), "pytest\t2\t0\t1\tcut\tunknown\tfailed");
}

#[test]
fn a_summary_is_read_back_as_it_was_recorded() {
    for case in cases() {
        let Some(tests) = summaries(&case.text).tests else { continue };
        let kept = serde_json::to_string(&tests).unwrap();
        assert!(kept.len() < 100, "{kept}");
        assert_eq!(
            serde_json::from_str::<jackline_engine::observe::TestSummary>(&kept).unwrap(),
            tests
        );
    }
}

#[test]
fn a_hundred_megabytes_are_read_like_a_page() {
    let huge = "x = 1 passed, 2 failed\n".repeat(5 << 20);
    let read = summaries(&format!("{huge}=== 1 failed, 2 passed in 3.21s ===\n"));
    assert_eq!(told(&read), "pytest\t2\t1\t0\tcomplete\tfailing\t-");
    assert_eq!(summaries(&"é".repeat(1 << 20)), Summaries::default());
}

/// Pieces of what runners say, and of what they do not.
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
    fn nothing_that_failed_passes_whatever_stands_around_it(
        before in proptest::collection::vec(piece(), 0..12),
        after in proptest::collection::vec(piece(), 0..12),
    ) {
        // A failure that is understood by itself stays one in any company.
        let failing = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let text = format!("{}\n{failing}{}", before.concat(), after.concat());
        prop_assert!(!passes(&text));
        let read = summaries(&text);
        prop_assert_eq!(&read, &summaries(&text));
        let tests = read.tests.unwrap();
        if tests.failed > 0 {
            prop_assert_eq!(tests.verdict(), TestVerdict::Failing);
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(summaries(&text), summaries(&text));
    }
}
