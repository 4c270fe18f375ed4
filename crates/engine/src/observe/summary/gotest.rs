//! `go test`: plain, `-v`, `-json`, and `gotestsum` around it.

use alloc::borrow::Cow;

use serde::Deserialize;

use super::count::{is_duration, leading_count, visit_counts};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// Packages report `ok` or `FAIL`. Passed tests are only printed with `-v`.
#[derive(Default)]
pub(super) struct GoTestParser {
    summary: Option<TestSummary>,
    run: GoTestRun,
    /// The line before named a package of tests, so compiler errors of that package follow.
    is_after_package: bool,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent observation")]
struct GoTestRun {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Whether passed tests are printed.
    verbose: bool,
    /// Packages that had tests and finished.
    packages: u64,
    /// Whether a line was found that only `go test` prints.
    recognised: bool,
    /// Whether failures were printed since the last package ended.
    failed_in_package: bool,
    /// Whether a test was started since then.
    open: bool,
    failing: bool,
    /// Whether a package did not run all of its tests.
    incomplete: bool,
    /// Whether the first events are missing, so that the text does not begin with the start of a
    /// test or a package. Then the end does not show the results of all packages.
    starts_in_middle: bool,
    has_json_events: bool,
    has_gap: bool,
}

impl RunnerParser for GoTestParser {
    const FIRST_BYTES: &'static [u8] = b"-=oF?{D#";

    fn needs_next_line(&self) -> bool {
        self.is_after_package
    }

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let named = core::mem::take(&mut self.is_after_package);
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'-') => self.run.read_test(text),
            Some(b'=') if text.starts_with("=== RUN   ") => {
                (self.run.verbose, self.run.open) = (true, true);
            }
            Some(b'o' | b'F' | b'?') if line.has_no_indentation() => self.run.read_package(text),
            Some(b'{') => self.run.read_json_event(text),
            Some(b'D') => self.read_gotestsum(text),
            // `# example.com/a [example.com/a.test]`.
            Some(b'#') => self.is_after_package = text.ends_with(".test]"),
            _ => {}
        }
        if named && text.contains(".go:") {
            (self.run.recognised, self.run.failing) = (true, true);
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        if let Some(run) = self.run.finish() {
            add_run(&mut self.summary, run);
        }
        self.summary
    }
}

impl GoTestParser {
    /// Lines are missing here, or before everything that was read.
    pub(super) fn mark_gap(&mut self) {
        self.run.has_gap = true;
    }

    /// `DONE 10 tests, 1 skipped, 4 failures, 1 error in 0.426s`, printed by gotestsum.
    fn read_gotestsum(&mut self, text: &str) {
        let Some((counts, time)) =
            text.strip_prefix("DONE ").and_then(|rest| rest.rsplit_once(" in "))
        else {
            return;
        };
        // `DONE 2 runs, 10 tests, …`, printed if failed tests were run again.
        let counts = match leading_count(counts) {
            Some((_, runs)) if runs.starts_with("runs, ") => runs.get(6..).unwrap_or(""),
            _ => counts,
        };
        let (mut tests, mut failures, mut errors, mut skipped) = (None, 0, 0, 0);
        let read = visit_counts(counts, ", ", |n, word| match word {
            "test" | "tests" => tests = Some(n),
            "failure" | "failures" => failures = n,
            "error" | "errors" => errors = n,
            "skipped" => skipped = n,
            _ => {}
        });
        if let (Some(()), Some(tests), true) = (read, tests, is_duration(time)) {
            // The lines before repeat the same run.
            self.run = GoTestRun::default();
            let summary = TestSummary {
                runner: TestRunner::GoTest,
                passed: tests.checked_sub(failures + skipped),
                failed: failures + errors,
                skipped,
                complete: errors == 0,
            };
            add_run(&mut self.summary, summary);
        }
    }
}

impl GoTestRun {
    /// `--- FAIL: TestA (0.00s)`; subtests are indented.
    fn read_test(&mut self, text: &str) {
        let Some((outcome, rest)) =
            text.strip_prefix("--- ").and_then(|rest| rest.split_once(": "))
        else {
            return;
        };
        let timed = rest.ends_with("s)") && rest.contains(" (");
        match outcome {
            _ if !timed => return,
            "PASS" => self.passed += 1,
            "FAIL" => self.record_failed_test(),
            "SKIP" => self.skipped += 1,
            _ => return,
        }
        (self.recognised, self.verbose) = (true, self.verbose || outcome == "PASS");
    }

    fn record_failed_test(&mut self) {
        self.failed += 1;
        (self.failing, self.failed_in_package) = (true, true);
    }

    /// `ok example.com/a 0.002s`, `FAIL example.com/a [build failed]`, separated by tabs, and a
    /// single `FAIL` at the end of the output.
    fn read_package(&mut self, text: &str) {
        if text == "FAIL" {
            self.failing |= self.recognised;
            return;
        }
        let Some((word, rest)) = text.split_once('\t') else { return };
        let rest = rest.trim_start();
        match word.trim_end() {
            "ok" if is_package_end(rest) => {
                self.packages += u64::from(!rest.ends_with("[no tests to run]"));
                self.end_package();
            }
            "FAIL" if is_package_end(rest) || rest.ends_with(" failed]") => {
                self.record_failed_package();
            }
            "?" if rest.ends_with("[no test files]") => self.recognised = true,
            _ => {}
        }
    }

    fn record_failed_package(&mut self) {
        // A package that does not compile or exceeds its timeout names no failed test.
        if !self.failed_in_package {
            self.failed += 1;
            self.incomplete = true;
        }
        self.failing = true;
        self.packages += 1;
        self.end_package();
    }

    fn end_package(&mut self) {
        self.recognised = true;
        (self.open, self.failed_in_package) = (false, false);
    }

    /// A line of `-json`.
    fn read_json_event(&mut self, text: &str) {
        if !text.contains("\"Action\":\"") {
            return;
        }
        let Ok(event) = serde_json::from_str::<GoTestJsonEvent<'_>>(text) else { return };
        let is_test = event.test.is_some();
        self.starts_in_middle |=
            !self.recognised && !self.open && !matches!(&*event.action, "run" | "start");
        (self.recognised, self.verbose, self.has_json_events) = (true, true, true);
        match (event.action.as_ref(), is_test) {
            ("run", _) | ("start", false) => self.open = true,
            ("pass", true) => self.passed += 1,
            ("skip", true) => self.skipped += 1,
            ("fail", true) => self.record_failed_test(),
            ("pass", false) => {
                self.packages += 1;
                self.end_package();
            }
            ("skip", false) => self.end_package(),
            ("fail", false) => self.record_failed_package(),
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        let found = self.recognised || self.open;
        found.then(|| TestSummary {
            runner: TestRunner::GoTest,
            passed: (self.verbose || self.packages == 0).then_some(self.passed),
            failed: self.failed.max(u64::from(self.failing)),
            skipped: self.skipped,
            complete: self.packages > 0
                && !self.open
                && !self.incomplete
                && !self.starts_in_middle
                && (!self.has_json_events || !self.has_gap),
        })
    }
}

/// Whether this is the name of a package and the duration of its tests.
fn is_package_end(text: &str) -> bool {
    text.split_once('\t').is_some_and(|(_, rest)| {
        let time = rest.split(['\t', ' ']).next().unwrap_or("");
        time == "(cached)" || is_duration(time)
    })
}

#[derive(Deserialize)]
struct GoTestJsonEvent<'a> {
    #[serde(rename = "Action", borrow)]
    action: Cow<'a, str>,
    #[serde(rename = "Test", borrow)]
    test: Option<Cow<'a, str>>,
}
