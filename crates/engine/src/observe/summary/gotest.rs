//! `go test`: plain, `-v`, `-json`, and `gotestsum` around it.

use alloc::borrow::Cow;

use serde::Deserialize;

use super::count::{count, each, is_duration};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// Packages report `ok` or `FAIL`; tests that passed are only told of under `-v`.
#[derive(Default)]
pub(super) struct GoTest {
    heard: Option<TestSummary>,
    run: Run,
    /// The line before named a package of tests: complaints about it follow.
    named: bool,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was heard")]
struct Run {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Whether tests that passed are told of.
    verbose: bool,
    /// Packages that had tests and came to their end.
    packages: u64,
    /// Anything that only `go test` says.
    heard: bool,
    /// Whether failures were told of since the last package ended.
    failed_in_package: bool,
    /// Whether a test was begun since then.
    open: bool,
    failing: bool,
    /// Whether a package did not get to run all of its tests.
    broken_off: bool,
    /// Whether events are told that do not begin with a test's or a package's
    /// start. At their end nothing says how all the packages went.
    headless: bool,
    events: bool,
    events_cut: bool,
}

impl Family for GoTest {
    const FIRST: &'static [u8] = b"-=oF?{D#";

    fn awaits(&self) -> bool {
        self.named
    }

    fn line(&mut self, line: &Line<'_>) {
        let named = core::mem::take(&mut self.named);
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'-') => self.run.test(text),
            Some(b'=') if text.starts_with("=== RUN   ") => {
                (self.run.verbose, self.run.open) = (true, true);
            }
            Some(b'o' | b'F' | b'?') if line.at_margin() => self.run.package(text),
            Some(b'{') => self.run.event(text),
            Some(b'D') => self.done(text),
            // `# example.com/a [example.com/a.test]`.
            Some(b'#') => self.named = text.ends_with(".test]"),
            _ => {}
        }
        if named && text.contains(".go:") {
            (self.run.heard, self.run.failing) = (true, true);
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        if let Some(run) = self.run.finish() {
            add(&mut self.heard, run);
        }
        self.heard
    }
}

impl GoTest {
    /// Says that lines are left out here, or before all that is heard.
    pub(super) fn cut(&mut self) {
        self.run.events_cut = true;
    }

    /// `DONE 10 tests, 1 skipped, 4 failures, 1 error in 0.426s`, of gotestsum.
    fn done(&mut self, text: &str) {
        let Some((counts, time)) =
            text.strip_prefix("DONE ").and_then(|rest| rest.rsplit_once(" in "))
        else {
            return;
        };
        // `DONE 2 runs, 10 tests, …` after failed tests were run again.
        let counts = match count(counts) {
            Some((_, runs)) if runs.starts_with("runs, ") => runs.get(6..).unwrap_or(""),
            _ => counts,
        };
        let (mut tests, mut failures, mut errors, mut skipped) = (None, 0, 0, 0);
        let read = each(counts, ", ", |n, word| match word {
            "test" | "tests" => tests = Some(n),
            "failure" | "failures" => failures = n,
            "error" | "errors" => errors = n,
            "skipped" => skipped = n,
            _ => {}
        });
        if let (Some(()), Some(tests), true) = (read, tests, is_duration(time)) {
            // What it printed before is the same run told twice.
            self.run = Run::default();
            let summary = TestSummary {
                runner: Runner::GoTest,
                passed: tests.checked_sub(failures + skipped),
                failed: failures + errors,
                skipped,
                complete: errors == 0,
            };
            add(&mut self.heard, summary);
        }
    }
}

impl Run {
    /// `--- FAIL: TestA (0.00s)`; those within another are indented.
    fn test(&mut self, text: &str) {
        let Some((outcome, rest)) =
            text.strip_prefix("--- ").and_then(|rest| rest.split_once(": "))
        else {
            return;
        };
        let timed = rest.ends_with("s)") && rest.contains(" (");
        match outcome {
            _ if !timed => return,
            "PASS" => self.passed += 1,
            "FAIL" => self.failed_test(),
            "SKIP" => self.skipped += 1,
            _ => return,
        }
        (self.heard, self.verbose) = (true, self.verbose || outcome == "PASS");
    }

    fn failed_test(&mut self) {
        self.failed += 1;
        (self.failing, self.failed_in_package) = (true, true);
    }

    /// `ok example.com/a 0.002s`, `FAIL example.com/a [build failed]`, with tabs
    /// between, and at the end of all a `FAIL` by itself.
    fn package(&mut self, text: &str) {
        if text == "FAIL" {
            self.failing |= self.heard;
            return;
        }
        let Some((word, rest)) = text.split_once('\t') else { return };
        let rest = rest.trim_start();
        match word.trim_end() {
            "ok" if is_end(rest) => {
                self.packages += u64::from(!rest.ends_with("[no tests to run]"));
                self.end();
            }
            "FAIL" if is_end(rest) || rest.ends_with(" failed]") => self.failed_package(),
            "?" if rest.ends_with("[no test files]") => self.heard = true,
            _ => {}
        }
    }

    fn failed_package(&mut self) {
        // One that does not compile or takes too long names no test.
        if !self.failed_in_package {
            self.failed += 1;
            self.broken_off = true;
        }
        self.failing = true;
        self.packages += 1;
        self.end();
    }

    fn end(&mut self) {
        self.heard = true;
        (self.open, self.failed_in_package) = (false, false);
    }

    /// A line of `-json`.
    fn event(&mut self, text: &str) {
        if !text.contains("\"Action\":\"") {
            return;
        }
        let Ok(event) = serde_json::from_str::<JsonEvent<'_>>(text) else { return };
        let is_test = event.test.is_some();
        self.headless |= !self.heard && !self.open && !matches!(&*event.action, "run" | "start");
        (self.heard, self.verbose, self.events) = (true, true, true);
        match (event.action.as_ref(), is_test) {
            ("run", _) | ("start", false) => self.open = true,
            ("pass", true) => self.passed += 1,
            ("skip", true) => self.skipped += 1,
            ("fail", true) => self.failed_test(),
            ("pass", false) => {
                self.packages += 1;
                self.end();
            }
            ("skip", false) => self.end(),
            ("fail", false) => self.failed_package(),
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        let heard = self.heard || self.open;
        heard.then(|| TestSummary {
            runner: Runner::GoTest,
            passed: (self.verbose || self.packages == 0).then_some(self.passed),
            failed: self.failed.max(u64::from(self.failing)),
            skipped: self.skipped,
            complete: self.packages > 0
                && !self.open
                && !self.broken_off
                && !self.headless
                && (!self.events || !self.events_cut),
        })
    }
}

/// Whether this is a package's name and how long its tests took.
fn is_end(text: &str) -> bool {
    text.split_once('\t').is_some_and(|(_, rest)| {
        let time = rest.split(['\t', ' ']).next().unwrap_or("");
        time == "(cached)" || is_duration(time)
    })
}

#[derive(Deserialize)]
struct JsonEvent<'a> {
    #[serde(rename = "Action", borrow)]
    action: Cow<'a, str>,
    #[serde(rename = "Test", borrow)]
    test: Option<Cow<'a, str>>,
}
