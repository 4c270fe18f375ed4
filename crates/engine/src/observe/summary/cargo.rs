//! `cargo test` and `cargo nextest`.

use super::count::{count, each};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// One `test result:` for every test program, or nextest's `Summary` for all.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was heard")]
pub(super) struct Cargo {
    nextest: Option<TestSummary>,
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Programs that were announced, those that told how many tests they have,
    /// and those that told how it went.
    announced: u64,
    results: u64,
    open: bool,
    /// Cargo itself says that something failed.
    failing: bool,
    not_built: bool,
    broken_off: bool,
}

impl Family for Cargo {
    const FIRST: &'static [u8] = b"SRDrte";

    fn line(&mut self, line: &Line<'_>) {
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'S') => self.summary(text),
            Some(b'R') => {
                let test = text.strip_prefix("Running ").is_some_and(|rest| rest.ends_with(')'));
                self.announced += u64::from(test && !line.at_margin());
            }
            Some(b'D') => {
                self.announced += u64::from(text.starts_with("Doc-tests ") && !line.at_margin());
            }
            Some(b'r') if line.at_margin() => {
                let tests = text.strip_prefix("running ").and_then(count);
                if tests.is_some_and(|(_, word)| matches!(word, "test" | "tests")) {
                    self.close();
                    self.open = true;
                }
            }
            Some(b't') if line.at_margin() && text.starts_with("test ") => self.test(text),
            Some(b'e') if line.at_margin() => self.error(text),
            _ => {}
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        let failing = self.failing || self.not_built;
        if self.announced == 0
            && let Some(mut summary) = self.nextest
        {
            // What single tests print is the same run told twice.
            summary.failed = summary.failed.max(u64::from(failing));
            return Some(summary);
        }
        self.close();
        let heard = self.results > 0 || self.broken_off || failing;
        let libtest = heard.then(|| TestSummary {
            runner: Runner::CargoTest,
            passed: (self.results > 0 || self.not_built).then_some(self.passed),
            failed: self.failed.max(u64::from(failing)),
            skipped: self.skipped,
            complete: self.results > 0
                && !self.broken_off
                && !self.not_built
                && self.announced <= self.results,
        });
        self.nextest.into_iter().chain(libtest).reduce(TestSummary::and)
    }
}

impl Cargo {
    /// A program that has begun and told no result is broken off.
    fn close(&mut self) {
        self.broken_off |= core::mem::take(&mut self.open);
    }

    fn test(&mut self, text: &str) {
        if let Some(result) = text.strip_prefix("test result: ") {
            self.result(result);
        } else if let Some((_, error)) = text.split_once(" ... error: ") {
            // The program died in the middle of the line.
            self.says_failed(error);
        }
    }

    fn result(&mut self, text: &str) {
        let counts = text.strip_prefix("ok. ").or_else(|| text.strip_prefix("FAILED. "));
        let Some(counts) = counts else { return };
        let counts = counts.split("; finished in ").next().unwrap_or(counts);
        let (mut passed, mut failed, mut skipped, mut known) = (0, 0, 0, 0);
        let read = each(counts, "; ", |n, word| match word {
            "passed" => (passed, known) = (n, known + 1),
            "failed" => (failed, known) = (n, known + 1),
            "ignored" => skipped = n,
            _ => {}
        });
        if read.is_none() || known != 2 {
            return;
        }
        self.open = false;
        self.results += 1;
        self.passed = self.passed.saturating_add(passed);
        self.failed = self.failed.saturating_add(failed);
        self.skipped = self.skipped.saturating_add(skipped);
        self.failing |= text.starts_with('F');
    }

    fn error(&mut self, text: &str) {
        let Some(error) = text.strip_prefix("error: ") else { return };
        if let Some(what) = error.strip_prefix("could not compile `") {
            // `(lib test)`, `(test "a")`: a program of tests, not of the project.
            self.not_built |= what.contains(" test)") || what.contains("(test \"");
        } else {
            self.says_failed(error);
        }
    }

    fn says_failed(&mut self, error: &str) {
        let failed = error.starts_with("test failed, to rerun pass")
            || error.starts_with("doctest failed, to rerun pass")
            || error == "test run failed"
            || count(error).is_some_and(|(_, rest)| {
                rest.starts_with("target failed:") || rest.starts_with("targets failed:")
            });
        if failed && core::mem::take(&mut self.open) {
            // A program that died with a test.
            self.failed += 1;
            self.broken_off = true;
        }
        self.failing |= failed;
    }

    /// `Summary [   0.125s] 6 tests run: 4 passed (1 slow), 2 failed, 1 skipped`.
    fn summary(&mut self, text: &str) {
        let Some(rest) = text.strip_prefix("Summary [") else { return };
        let Some((_, rest)) = rest.split_once("] ") else { return };
        let Some((run, counts)) = rest.split_once(" run: ") else { return };
        if !run.ends_with(" tests") && !run.ends_with(" test") {
            return;
        }
        // `4/6 tests run`: the others were left out after a failure.
        let complete = !run.contains('/');
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        let mut rest = counts;
        while !rest.is_empty() {
            let Some((n, after)) = count(rest) else { return };
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
        let runner = Runner::Nextest;
        let summary = TestSummary { runner, passed: Some(passed), failed, skipped, complete };
        add(&mut self.nextest, summary);
    }
}
