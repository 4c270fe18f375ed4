//! `mocha`, with its reporters for people.

use super::count::{is_duration, leading_count};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `3 passing (5ms)`, `1 pending`, `2 failing`, each on a line of its own.
#[derive(Default)]
pub(super) struct MochaParser {
    summary: Option<TestSummary>,
    run: Option<TestSummary>,
    /// Whether a failed test was listed before the summary.
    listed: bool,
    /// Whether a line follows the summary. The end of a failing run can't be missing.
    ended: bool,
}

impl RunnerParser for MochaParser {
    const FIRST_BYTES: &'static [u8] = b"0123456789.,!";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let text = line.trimmed;
        if line.has_no_indentation() {
            return;
        }
        match text.as_bytes().first() {
            Some(b'0'..=b'9') => {
                let Some((n, word)) = leading_count(text) else { return };
                self.read_count(n, word);
            }
            // Each character is the result of one test: `!` is a failure.
            Some(b'.' | b',' | b'!') if self.run.is_none() => {
                let dots = text.bytes().all(|byte| matches!(byte, b'.' | b',' | b'!'));
                self.listed |= dots && text.contains('!');
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        self.close_run();
        self.summary
    }
}

impl MochaParser {
    fn read_count(&mut self, n: u64, word: &str) {
        if let Some(rest) = word.strip_prefix("passing") {
            let time = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
            if !time.is_some_and(is_duration) {
                return;
            }
            self.close_run();
            self.run = Some(TestSummary {
                runner: TestRunner::Mocha,
                passed: Some(n),
                failed: 0,
                skipped: 0,
                complete: true,
            });
        } else if word == "pending" {
            if let Some(run) = &mut self.run {
                run.skipped = n;
            }
        } else if word == "failing" {
            let runner = TestRunner::Mocha;
            let new_run =
                TestSummary { runner, passed: None, failed: 0, skipped: 0, complete: true };
            self.run.get_or_insert(new_run).failed = n;
            self.ended = true;
        } else if word.starts_with(") ") && self.run.is_none() {
            self.listed = true;
        }
    }

    /// Reads an empty line.
    pub(super) fn read_empty_line(&mut self) {
        self.ended |= self.run.is_some();
    }

    /// Lines are missing here, possibly including the next line of the summary.
    pub(super) fn mark_gap(&mut self) {
        if let Some(run) = &mut self.run {
            run.complete = false;
        }
    }

    /// Reports whether the text has no line break at its end. Then it was trimmed, and mocha's last
    /// empty line was removed.
    pub(super) fn mark_trimmed(&mut self, trimmed: bool) {
        self.ended |= trimmed;
    }

    fn close_run(&mut self) {
        if let Some(mut run) = self.run.take() {
            let missing = run.failed == 0 && (self.listed || !self.ended);
            run.complete &= !missing;
            add_run(&mut self.summary, run);
            (self.listed, self.ended) = (false, false);
        }
    }
}
