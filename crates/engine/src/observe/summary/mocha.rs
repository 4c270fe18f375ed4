//! `mocha`, in the reporters that people read.

use super::count::{count, is_duration};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `3 passing (5ms)`, `1 pending`, `2 failing`, each on a line of its own.
#[derive(Default)]
pub(super) struct Mocha {
    heard: Option<TestSummary>,
    run: Option<TestSummary>,
    /// A failed test was listed before anything was summed up.
    listed: bool,
    /// Something follows the sums: the end of a failing run can't be missing.
    ended: bool,
}

impl Family for Mocha {
    const FIRST: &'static [u8] = b"0123456789.,!";

    fn line(&mut self, line: &Line<'_>) {
        let text = line.trimmed;
        if line.at_margin() {
            return;
        }
        match text.as_bytes().first() {
            Some(b'0'..=b'9') => {
                let Some((n, word)) = count(text) else { return };
                self.counted(n, word);
            }
            // The dots of one test each: `!` is one that failed.
            Some(b'.' | b',' | b'!') if self.run.is_none() => {
                let dots = text.bytes().all(|byte| matches!(byte, b'.' | b',' | b'!'));
                self.listed |= dots && text.contains('!');
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        self.close();
        self.heard
    }
}

impl Mocha {
    fn counted(&mut self, n: u64, word: &str) {
        if let Some(rest) = word.strip_prefix("passing") {
            let time = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
            if !time.is_some_and(is_duration) {
                return;
            }
            self.close();
            self.run = Some(TestSummary {
                runner: Runner::Mocha,
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
            let runner = Runner::Mocha;
            let alone = TestSummary { runner, passed: None, failed: 0, skipped: 0, complete: true };
            self.run.get_or_insert(alone).failed = n;
            self.ended = true;
        } else if word.starts_with(") ") && self.run.is_none() {
            self.listed = true;
        }
    }

    /// Hears a line with nothing on it.
    pub(super) fn blank(&mut self) {
        self.ended |= self.run.is_some();
    }

    /// Says that lines are left out here: the next of the sums may be among them.
    pub(super) fn cut(&mut self) {
        if let Some(run) = &mut self.run {
            run.complete = false;
        }
    }

    /// Says whether the text breaks off without a line's end: then it was
    /// trimmed, and the blank line that mocha ends with was there.
    pub(super) fn end(&mut self, trimmed: bool) {
        self.ended |= trimmed;
    }

    fn close(&mut self) {
        if let Some(mut run) = self.run.take() {
            let missing = run.failed == 0 && (self.listed || !self.ended);
            run.complete &= !missing;
            add(&mut self.heard, run);
            (self.listed, self.ended) = (false, false);
        }
    }
}
