//! `jest`.

use super::count::{leading_count, visit_counts};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `Test Suites: 1 failed, 2 passed, 3 total`, then `Tests:`, `Snapshots:` and `Time:`.
#[derive(Default)]
pub(super) struct JestParser {
    summary: Option<TestSummary>,
    /// The number of failed suites, and whether all suites were run.
    suites: Option<(u64, bool)>,
    /// The run whose `Time:` line is expected.
    run: Option<TestSummary>,
}

/// The words of a run that found no test. The option `--passWithNoTests` makes it a success.
const NO_TESTS: [&str; 2] =
    ["No tests found, exiting with code ", "No tests found related to files changed since "];

impl RunnerParser for JestParser {
    const FIRST_BYTES: &'static [u8] = b"TN";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        if !line.has_no_indentation() || !matches!(line.text.as_bytes().first(), Some(b'T' | b'N'))
        {
            return;
        }
        if NO_TESTS.iter().any(|words| line.text.starts_with(words)) {
            add_run(&mut self.summary, TestSummary::without_tests(TestRunner::Jest));
        } else if let Some(counts) = line.text.strip_prefix("Test Suites: ") {
            self.close_run(false);
            let mut failed = 0;
            let mut all = true;
            let read = visit_counts(counts, ", ", |n, word| match word {
                "failed" => failed = n,
                // `1 of 3 total`: the other suites were skipped after a failure.
                _ => all &= !word.starts_with("of "),
            });
            self.suites = read.map(|()| (failed, all));
        } else if let Some(counts) = line.text.strip_prefix("Tests: ") {
            self.read_tests(counts);
        } else if line
            .text
            .strip_prefix("Time: ")
            .is_some_and(|time| leading_count(time.trim()).is_some())
        {
            self.close_run(true);
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        self.close_run(false);
        self.summary
    }
}

impl JestParser {
    fn read_tests(&mut self, counts: &str) {
        let (mut passed, mut failed, mut skipped, mut total) = (0, 0, 0, false);
        let read = visit_counts(counts, ", ", |n, word| match word {
            "passed" => passed = n,
            "failed" => failed = n,
            "skipped" | "todo" => skipped += n,
            _ => total |= word == "total",
        });
        if read.is_none() || !total {
            return;
        }
        // A suite that can't be loaded has no tests that could fail. Without the line above, it is
        // not known whether there was such a suite.
        let suites = self.suites.take();
        let (suites_failed, all) = suites.unwrap_or((0, false));
        self.run = Some(TestSummary {
            runner: TestRunner::Jest,
            passed: Some(passed),
            failed: if failed == 0 { suites_failed } else { failed },
            skipped,
            complete: all,
        });
    }

    fn close_run(&mut self, ended: bool) {
        if let Some(mut run) = self.run.take() {
            run.complete &= ended;
            add_run(&mut self.summary, run);
        } else if let Some((failed, _)) = self.suites.take() {
            let runner = TestRunner::Jest;
            let run = TestSummary { runner, passed: None, failed, skipped: 0, complete: false };
            add_run(&mut self.summary, run);
        }
    }
}
