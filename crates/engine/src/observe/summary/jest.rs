//! `jest`.

use super::count::{count, each};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `Test Suites: 1 failed, 2 passed, 3 total`, then `Tests:`, `Snapshots:` and `Time:`.
#[derive(Default)]
pub(super) struct Jest {
    heard: Option<TestSummary>,
    /// Suites that failed, and whether all were run.
    suites: Option<(u64, bool)>,
    /// The run whose `Time:` is awaited.
    run: Option<TestSummary>,
}

impl Family for Jest {
    const FIRST: &'static [u8] = b"T";

    fn line(&mut self, line: &Line<'_>) {
        if !line.at_margin() || !matches!(line.text.as_bytes().first(), Some(b'T')) {
            return;
        }
        if let Some(counts) = line.text.strip_prefix("Test Suites: ") {
            self.close(false);
            let mut failed = 0;
            let mut all = true;
            let read = each(counts, ", ", |n, word| match word {
                "failed" => failed = n,
                // `1 of 3 total`: the others were left out after a failure.
                _ => all &= !word.starts_with("of "),
            });
            self.suites = read.map(|()| (failed, all));
        } else if let Some(counts) = line.text.strip_prefix("Tests: ") {
            self.tests(counts);
        } else if line.text.strip_prefix("Time: ").is_some_and(|time| count(time.trim()).is_some())
        {
            self.close(true);
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        self.close(false);
        self.heard
    }
}

impl Jest {
    fn tests(&mut self, counts: &str) {
        let (mut passed, mut failed, mut skipped, mut total) = (0, 0, 0, false);
        let read = each(counts, ", ", |n, word| match word {
            "passed" => passed = n,
            "failed" => failed = n,
            "skipped" | "todo" => skipped += n,
            _ => total |= word == "total",
        });
        if read.is_none() || !total {
            return;
        }
        // A suite that can't be run has no tests that could fail. Without the
        // line above there is no telling whether one was.
        let suites = self.suites.take();
        let (suites_failed, all) = suites.unwrap_or((0, false));
        self.run = Some(TestSummary {
            runner: Runner::Jest,
            passed: Some(passed),
            failed: if failed == 0 { suites_failed } else { failed },
            skipped,
            complete: all,
        });
    }

    fn close(&mut self, ended: bool) {
        if let Some(mut run) = self.run.take() {
            run.complete &= ended;
            add(&mut self.heard, run);
        } else if let Some((failed, _)) = self.suites.take() {
            let runner = Runner::Jest;
            let run = TestSummary { runner, passed: None, failed, skipped: 0, complete: false };
            add(&mut self.heard, run);
        }
    }
}
