//! `cargo test` and `cargo nextest`.

use super::count::{leading_count, visit_counts};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// One `test result:` for each test program, or one `Summary` of nextest for all.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent observation")]
pub(super) struct CargoParser {
    nextest: Option<TestSummary>,
    passed: u64,
    failed: u64,
    skipped: u64,
    /// The number of programs that Cargo announced, the number of results, and whether a program
    /// has printed its number of tests but no result yet.
    announced: u64,
    results: u64,
    open: bool,
    /// Cargo itself reported a failure.
    failing: bool,
    not_built: bool,
    aborted: bool,
}

impl RunnerParser for CargoParser {
    const FIRST_BYTES: &'static [u8] = b"SRDrte";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'S') => self.read_nextest_summary(text),
            Some(b'R') => {
                let test = text.strip_prefix("Running ").is_some_and(|rest| rest.ends_with(')'));
                self.announced += u64::from(test && !line.has_no_indentation());
            }
            Some(b'D') => {
                self.announced +=
                    u64::from(text.starts_with("Doc-tests ") && !line.has_no_indentation());
            }
            Some(b'r') if line.has_no_indentation() => {
                let tests = text.strip_prefix("running ").and_then(leading_count);
                if tests.is_some_and(|(_, word)| matches!(word, "test" | "tests")) {
                    self.close_program();
                    self.open = true;
                }
            }
            Some(b't') if line.has_no_indentation() && text.starts_with("test ") => {
                self.read_test_line(text);
            }
            Some(b'e') if line.has_no_indentation() => self.read_error(text),
            _ => {}
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        let failing = self.failing || self.not_built;
        if self.announced == 0
            && let Some(mut summary) = self.nextest
        {
            // With nextest, the output of single tests repeats the same run.
            summary.failed = summary.failed.max(u64::from(failing));
            return Some(summary);
        }
        self.close_program();
        let printed = self.results > 0 || self.aborted || failing;
        let libtest = printed.then(|| TestSummary {
            runner: TestRunner::CargoTest,
            passed: (self.results > 0 || self.not_built).then_some(self.passed),
            failed: self.failed.max(u64::from(failing)),
            skipped: self.skipped,
            complete: self.results > 0
                && !self.aborted
                && !self.not_built
                && self.announced <= self.results,
        });
        self.nextest.into_iter().chain(libtest).reduce(TestSummary::combine)
    }
}

impl CargoParser {
    /// A program that started and printed no result was aborted.
    fn close_program(&mut self) {
        self.aborted |= core::mem::take(&mut self.open);
    }

    fn read_test_line(&mut self, text: &str) {
        if let Some(result) = text.strip_prefix("test result: ") {
            self.read_result(result);
        } else if let Some((_, error)) = text.split_once(" ... error: ") {
            // The program crashed in the middle of the line.
            self.read_failure(error);
        }
    }

    fn read_result(&mut self, text: &str) {
        let counts = text.strip_prefix("ok. ").or_else(|| text.strip_prefix("FAILED. "));
        let Some(counts) = counts else { return };
        let counts = counts.split("; finished in ").next().unwrap_or(counts);
        let (mut passed, mut failed, mut skipped, mut found) = (0, 0, 0, 0);
        let read = visit_counts(counts, "; ", |n, word| match word {
            "passed" => (passed, found) = (n, found + 1),
            "failed" => (failed, found) = (n, found + 1),
            "ignored" => skipped = n,
            _ => {}
        });
        if read.is_none() || found != 2 {
            return;
        }
        self.open = false;
        self.results += 1;
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
        self.failing |= text.starts_with('F');
    }

    fn read_error(&mut self, text: &str) {
        let Some(error) = text.strip_prefix("error: ") else { return };
        if let Some(what) = error.strip_prefix("could not compile `") {
            // `(lib test)`, `(test "a")`: a test program, not the project itself.
            self.not_built |= what.contains(" test)") || what.contains("(test \"");
        } else {
            self.read_failure(error);
        }
    }

    fn read_failure(&mut self, error: &str) {
        let failed = error.starts_with("test failed, to rerun pass")
            || error.starts_with("doctest failed, to rerun pass")
            || error == "test run failed"
            || leading_count(error).is_some_and(|(_, rest)| {
                rest.starts_with("target failed:") || rest.starts_with("targets failed:")
            });
        if failed && core::mem::take(&mut self.open) {
            // A program that crashed while it ran a test.
            self.failed += 1;
            self.aborted = true;
        }
        self.failing |= failed;
    }

    /// `Summary [   0.125s] 6 tests run: 4 passed (1 slow), 2 failed, 1 skipped`.
    fn read_nextest_summary(&mut self, text: &str) {
        let Some(rest) = text.strip_prefix("Summary [") else { return };
        let Some((_, rest)) = rest.split_once("] ") else { return };
        let Some((run, counts)) = rest.split_once(" run: ") else { return };
        if !run.ends_with(" tests") && !run.ends_with(" test") {
            return;
        }
        // `4/6 tests run`: the other tests were skipped after a failure.
        let complete = !run.contains('/');
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        let mut rest = counts;
        while !rest.is_empty() {
            let Some((n, after)) = leading_count(rest) else { return };
            let end = after.find([',', '(']).unwrap_or(after.len());
            let Some((word, after)) = after.split_at_checked(end) else { return };
            match word.trim_end() {
                "passed" => passed = n,
                "skipped" => skipped = n,
                _ => failed += n,
            }
            let after = match after.strip_prefix('(') {
                Some(aside) => aside.split_once(')').map_or("", |(_, after)| after),
                None => after,
            };
            rest = after.trim_start_matches([',', ' ']);
        }
        let runner = TestRunner::Nextest;
        let summary = TestSummary { runner, passed: Some(passed), failed, skipped, complete };
        add_run(&mut self.nextest, summary);
    }
}
