//! `vitest`.

use super::count::{leading_count, visit_counts};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `Test Files  1 failed | 2 passed (3)`, then `Tests`, perhaps `Errors`, and `Duration`.
#[derive(Default)]
pub(super) struct VitestParser {
    summary: Option<TestSummary>,
    /// The number of failed files.
    failed_files: Option<u64>,
    /// The run whose `Duration` line is expected.
    run: Option<TestSummary>,
}

impl RunnerParser for VitestParser {
    const FIRST_BYTES: &'static [u8] = b"TEDN";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        if line.trimmed.starts_with("No test files found, exiting with code ") {
            self.close_run(false);
            add_run(&mut self.summary, TestSummary::without_tests(TestRunner::Vitest));
        }
        if line.has_no_indentation() {
            return;
        }
        let after = |word| line.trimmed.strip_prefix(word).map(str::trim_start);
        match line.trimmed.as_bytes().first() {
            Some(b'T') => {
                if let Some(counts) = after("Test Files  ") {
                    self.close_run(false);
                    self.failed_files = parse_counts(counts).map(|counts| counts.failed);
                } else if let Some(counts) = after("Tests  ").and_then(parse_counts) {
                    self.read_tests(&counts);
                } else if let Some(errors) = after("Type Errors  ") {
                    self.read_errors(errors);
                }
            }
            Some(b'E') => {
                if let Some(errors) = after("Errors  ") {
                    self.read_errors(errors);
                }
            }
            Some(b'D') if after("Duration  ").is_some_and(|time| leading_count(time).is_some()) => {
                self.close_run(true);
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        self.close_run(false);
        self.summary
    }
}

#[derive(Default)]
struct VitestCounts {
    passed: u64,
    failed: u64,
    skipped: u64,
    total: u64,
}

/// `2 failed | 4 passed | 1 skipped (7)`, or `no tests`.
fn parse_counts(text: &str) -> Option<VitestCounts> {
    let mut counts = VitestCounts::default();
    if text == "no tests" {
        return Some(counts);
    }
    let (list, of) = text.strip_suffix(')')?.rsplit_once(" (")?;
    counts.total = super::count::whole_number(of)?;
    let mut unsupported = false;
    visit_counts(list, " | ", |n, word| match word {
        "passed" => counts.passed = n,
        "failed" => counts.failed = n,
        "skipped" | "todo" | "expected fail" => counts.skipped += n,
        _ => unsupported = true,
    })?;
    (!unsupported).then_some(counts)
}

impl VitestParser {
    fn read_tests(&mut self, counts: &VitestCounts) {
        // A file that can't be loaded has no tests that could fail. Without the line above, it is
        // not known whether there was such a file.
        let files = self.failed_files.take();
        let run_tests = counts.passed + counts.failed + counts.skipped;
        self.run = Some(TestSummary {
            runner: TestRunner::Vitest,
            passed: Some(counts.passed),
            failed: if counts.failed == 0 { files.unwrap_or(0) } else { counts.failed },
            skipped: counts.skipped,
            // There are fewer if the run was stopped after a failure.
            complete: files.is_some() && run_tests == counts.total,
        });
    }

    /// `1 error`, which happened outside of tests.
    fn read_errors(&mut self, text: &str) {
        if let (Some(run), Some((errors, _))) = (&mut self.run, leading_count(text)) {
            run.failed += errors;
        }
    }

    fn close_run(&mut self, ended: bool) {
        let files = self.failed_files.take();
        if let Some(mut run) = self.run.take() {
            run.complete &= ended;
            add_run(&mut self.summary, run);
        } else if let Some(failed) = files {
            let runner = TestRunner::Vitest;
            let run = TestSummary { runner, passed: None, failed, skipped: 0, complete: false };
            add_run(&mut self.summary, run);
        }
    }
}
