//! `phpunit`.

use super::count::{leading_count, whole_number};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `OK (2 tests, 2 assertions)`, or `Tests: 6, Assertions: 2, Failures: 1.`
#[derive(Default)]
pub(super) struct PhpunitParser {
    summary: Option<TestSummary>,
    /// Whether the headline was `WARNINGS!`. Up to version 9, a warning is the outcome of a test.
    warnings: bool,
}

impl RunnerParser for PhpunitParser {
    const FIRST_BYTES: &'static [u8] = b"WOT";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let text = line.text;
        match text.as_bytes().first() {
            Some(b'W') => self.warnings |= text == "WARNINGS!",
            Some(b'O') => {
                let tests = text.strip_prefix("OK (").and_then(leading_count);
                if let Some((tests, rest)) = tests
                    && text.ends_with(" assertions)") | text.ends_with(" assertion)")
                    && rest.starts_with("test")
                {
                    add_run(&mut self.summary, phpunit_summary(Some(tests), 0, 0));
                }
            }
            Some(b'T') => {
                if let Some(run) = self.read_counts(text) {
                    self.warnings = false;
                    add_run(&mut self.summary, run);
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        self.summary
    }
}

fn phpunit_summary(passed: Option<u64>, failed: u64, skipped: u64) -> TestSummary {
    TestSummary { runner: TestRunner::Phpunit, passed, failed, skipped, complete: true }
}

impl PhpunitParser {
    fn read_counts(&self, text: &str) -> Option<TestSummary> {
        let (mut run, mut failed, mut skipped, mut other, mut asserts) = (None, 0, 0, 0, false);
        for part in text.strip_suffix('.')?.split(", ") {
            let (word, n) = part.split_once(": ")?;
            let n = whole_number(n)?;
            match word {
                "Tests" => run = Some(n),
                "Assertions" => asserts = true,
                "Errors" | "Failures" => failed += n,
                "Skipped" | "Incomplete" => skipped += n,
                "Risky" => other += n,
                "Warnings" if self.warnings => other += n,
                _ => {}
            }
        }
        let run = run.filter(|_| asserts)?;
        Some(phpunit_summary(run.checked_sub(failed + skipped + other), failed, skipped))
    }
}
