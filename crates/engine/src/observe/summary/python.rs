//! `pytest` and `unittest`.

use super::count::{is_duration, leading_count, visit_counts, whole_number};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `=== 1 failed, 3 passed in 0.03s ===`, or without the rules under `-q`.
#[derive(Default)]
pub(super) struct PytestParser {
    summary: Option<TestSummary>,
    /// A run has begun whose summary line is expected.
    open: bool,
    /// Whether it is listing the failed tests, and how many are listed so far.
    listing: bool,
    listed: u64,
    aborted: bool,
}

impl RunnerParser for PytestParser {
    // A count may also follow white space that is not ASCII.
    const FIRST_BYTES: &'static [u8] = b"=FE!In0123456789\x0b\xc2\xe1\xe2\xe3";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        match line.text.as_bytes().first() {
            Some(b'=') if line.text.starts_with("===") => {
                let banner = line.text.trim_matches('=').trim();
                let begun = matches!(
                    banner,
                    "test session starts" | "FAILURES" | "ERRORS" | "warnings summary"
                );
                self.listing = banner == "short test summary info";
                self.open |= begun || self.listing;
            }
            Some(b'F' | b'E') if self.listing => {
                let failed = line.text.starts_with("FAILED ") || line.text.starts_with("ERROR ");
                self.listed += u64::from(failed);
            }
            // Stopped at the first failure, by a collection error, or by the keyboard.
            Some(b'!') if line.text.starts_with("!!!") && line.text.ends_with("!!!") => {
                self.aborted = true;
            }
            Some(b'I') if line.text.starts_with("INTERNALERROR>") => self.aborted = true,
            _ => {}
        }
        if line.has_no_indentation()
            && let Some(mut summary) = parse_pytest_summary(line.text)
        {
            summary.complete = !self.aborted;
            let heard = self.summary.take();
            *self = Self { summary: heard, ..Self::default() };
            add_run(&mut self.summary, summary);
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        if self.open {
            let summary = TestSummary {
                runner: TestRunner::Pytest,
                passed: None,
                failed: self.listed,
                skipped: 0,
                complete: false,
            };
            add_run(&mut self.summary, summary);
        }
        self.summary
    }
}

fn parse_pytest_summary(text: &str) -> Option<TestSummary> {
    if !text.ends_with(['=', 's', ')']) {
        return None;
    }
    let text = text.trim_matches('=').trim();
    // A count or `no tests ran`. Nearly every other line is rejected here.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == 'n') {
        return None;
    }
    let (counts, time) = text.rsplit_once(" in ")?;
    // After a minute, pytest prints the time twice: `75.02s (0:01:15)`.
    if !is_duration(time.split(" (").next()?) {
        return None;
    }
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    if counts != "no tests ran" {
        let mut unsupported = false;
        visit_counts(counts, ", ", |n, word| match word {
            "passed" | "xpassed" => passed += n,
            "failed" | "error" | "errors" => failed += n,
            "skipped" | "xfailed" => skipped += n,
            "deselected" | "warning" | "warnings" | "rerun" | "subtests passed" => {}
            _ => unsupported = true,
        })?;
        if unsupported {
            return None;
        }
    }
    Some(TestSummary {
        runner: TestRunner::Pytest,
        passed: Some(passed),
        failed,
        skipped,
        complete: true,
    })
}

/// `Ran 5 tests in 0.001s`, followed by `OK` or `FAILED (errors=1)`.
#[derive(Default)]
pub(super) struct UnittestParser {
    summary: Option<TestSummary>,
    ran: Option<u64>,
}

impl RunnerParser for UnittestParser {
    const FIRST_BYTES: &'static [u8] = b"RONF";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let is_relevant = matches!(line.text.as_bytes().first(), Some(b'R' | b'O' | b'N' | b'F'));
        if !is_relevant || !line.has_no_indentation() {
            return;
        }
        if let Some(rest) = line.text.strip_prefix("Ran ") {
            let ran = leading_count(rest).filter(|(_, rest)| {
                let time = rest.strip_prefix("tests in ").or_else(|| rest.strip_prefix("test in "));
                time.is_some_and(is_duration)
            });
            if let Some((ran, _)) = ran {
                self.ran = Some(ran);
            }
            return;
        }
        let Some(summary) = parse_unittest_outcome(line.text, self.ran) else { return };
        self.ran = None;
        add_run(&mut self.summary, summary);
    }

    fn finish(self) -> Option<TestSummary> {
        let unfinished = TestSummary {
            runner: TestRunner::Unittest,
            passed: None,
            failed: 0,
            skipped: 0,
            complete: false,
        };
        // A run without a result.
        let open = self.ran.map(|_| unfinished);
        self.summary.into_iter().chain(open).reduce(TestSummary::combine)
    }
}

fn parse_unittest_outcome(text: &str, ran: Option<u64>) -> Option<TestSummary> {
    let (word, details) = match text.split_once(" (") {
        Some((word, details)) => (word, details.strip_suffix(')')?),
        None => (text, ""),
    };
    let (mut failed, mut skipped) = (0, 0);
    for detail in details.split(", ").filter(|detail| !detail.is_empty()) {
        let (name, n) = detail.split_once('=')?;
        let n = whole_number(n)?;
        match name {
            "failures" | "errors" | "unexpected successes" => failed += n,
            "skipped" | "expected failures" => skipped += n,
            _ => return None,
        }
    }
    let passed = match word {
        "OK" | "NO TESTS RAN" if failed == 0 => Some(ran?.checked_sub(skipped)?),
        // A test may fail several times, in its subtests, and a test that was never run may fail
        // too. So the number of passed tests is unknown.
        "FAILED" if failed > 0 => None,
        _ => return None,
    };
    Some(TestSummary { runner: TestRunner::Unittest, passed, failed, skipped, complete: true })
}
