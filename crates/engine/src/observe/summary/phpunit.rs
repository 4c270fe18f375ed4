//! `phpunit`.

use super::count::{count, number};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `OK (2 tests, 2 assertions)`, or `Tests: 6, Assertions: 2, Failures: 1.`
#[derive(Default)]
pub(super) struct Phpunit {
    heard: Option<TestSummary>,
    /// The headline: up to version 9 a warning is a test's outcome.
    warnings: bool,
}

impl Family for Phpunit {
    const FIRST: &'static [u8] = b"WOT";

    fn line(&mut self, line: &Line<'_>) {
        let text = line.text;
        match text.as_bytes().first() {
            Some(b'W') => self.warnings |= text == "WARNINGS!",
            Some(b'O') => {
                let tests = text.strip_prefix("OK (").and_then(count);
                if let Some((tests, rest)) = tests
                    && text.ends_with(" assertions)") | text.ends_with(" assertion)")
                    && rest.starts_with("test")
                {
                    add(&mut self.heard, summary(Some(tests), 0, 0));
                }
            }
            Some(b'T') => {
                if let Some(run) = self.counts(text) {
                    self.warnings = false;
                    add(&mut self.heard, run);
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        self.heard
    }
}

fn summary(passed: Option<u64>, failed: u64, skipped: u64) -> TestSummary {
    TestSummary { runner: Runner::Phpunit, passed, failed, skipped, complete: true }
}

impl Phpunit {
    fn counts(&self, text: &str) -> Option<TestSummary> {
        let (mut run, mut failed, mut skipped, mut other, mut asserts) = (None, 0, 0, 0, false);
        for part in text.strip_suffix('.')?.split(", ") {
            let (word, n) = part.split_once(": ")?;
            let n = number(n)?;
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
        Some(summary(run.checked_sub(failed + skipped + other), failed, skipped))
    }
}
