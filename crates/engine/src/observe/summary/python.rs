//! `pytest` and `unittest`.

use super::count::{count, each, is_duration, number};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `=== 1 failed, 3 passed in 0.03s ===`, or without the rules under `-q`.
#[derive(Default)]
pub(super) struct Pytest {
    heard: Option<TestSummary>,
    /// A run has begun whose last line is awaited.
    open: bool,
    /// It lists what failed, so far so many.
    listing: bool,
    listed: u64,
    broken_off: bool,
}

impl Family for Pytest {
    // Behind other blanks than those of ASCII a count is heard, too.
    const FIRST: &'static [u8] = b"=FE!In0123456789\x0b\xc2\xe1\xe2\xe3";

    fn line(&mut self, line: &Line<'_>) {
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
            // Stopped at the first failure, by an error in collection, by a key.
            Some(b'!') if line.text.starts_with("!!!") && line.text.ends_with("!!!") => {
                self.broken_off = true;
            }
            Some(b'I') if line.text.starts_with("INTERNALERROR>") => self.broken_off = true,
            _ => {}
        }
        if line.at_margin()
            && let Some(mut summary) = last_line(line.text)
        {
            summary.complete = !self.broken_off;
            let heard = self.heard.take();
            *self = Self { heard, ..Self::default() };
            add(&mut self.heard, summary);
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        if self.open {
            let summary = TestSummary {
                runner: Runner::Pytest,
                passed: None,
                failed: self.listed,
                skipped: 0,
                complete: false,
            };
            add(&mut self.heard, summary);
        }
        self.heard
    }
}

fn last_line(text: &str) -> Option<TestSummary> {
    if !text.ends_with(['=', 's', ')']) {
        return None;
    }
    let text = text.trim_matches('=').trim();
    // A count or `no tests ran`; nearly every other line is passed over here.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == 'n') {
        return None;
    }
    let (counts, time) = text.rsplit_once(" in ")?;
    // After a minute the time is told twice: `75.02s (0:01:15)`.
    if !is_duration(time.split(" (").next()?) {
        return None;
    }
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    if counts != "no tests ran" {
        let mut strange = false;
        each(counts, ", ", |n, word| match word {
            "passed" | "xpassed" => passed += n,
            "failed" | "error" | "errors" => failed += n,
            "skipped" | "xfailed" => skipped += n,
            "deselected" | "warning" | "warnings" | "rerun" | "subtests passed" => {}
            _ => strange = true,
        })?;
        if strange {
            return None;
        }
    }
    Some(TestSummary {
        runner: Runner::Pytest,
        passed: Some(passed),
        failed,
        skipped,
        complete: true,
    })
}

/// `Ran 5 tests in 0.001s`, and below it `OK` or `FAILED (errors=1)`.
#[derive(Default)]
pub(super) struct Unittest {
    heard: Option<TestSummary>,
    ran: Option<u64>,
}

impl Family for Unittest {
    const FIRST: &'static [u8] = b"RONF";

    fn line(&mut self, line: &Line<'_>) {
        let tells = matches!(line.text.as_bytes().first(), Some(b'R' | b'O' | b'N' | b'F'));
        if !tells || !line.at_margin() {
            return;
        }
        if let Some(rest) = line.text.strip_prefix("Ran ") {
            let ran = count(rest).filter(|(_, rest)| {
                let time = rest.strip_prefix("tests in ").or_else(|| rest.strip_prefix("test in "));
                time.is_some_and(is_duration)
            });
            if let Some((ran, _)) = ran {
                self.ran = Some(ran);
            }
            return;
        }
        let Some(summary) = outcome(line.text, self.ran) else { return };
        self.ran = None;
        add(&mut self.heard, summary);
    }

    fn finish(self) -> Option<TestSummary> {
        let nothing = TestSummary {
            runner: Runner::Unittest,
            passed: None,
            failed: 0,
            skipped: 0,
            complete: false,
        };
        // A run whose outcome is missing.
        let open = self.ran.map(|_| nothing);
        self.heard.into_iter().chain(open).reduce(TestSummary::and)
    }
}

fn outcome(text: &str, ran: Option<u64>) -> Option<TestSummary> {
    let (word, details) = match text.split_once(" (") {
        Some((word, details)) => (word, details.strip_suffix(')')?),
        None => (text, ""),
    };
    let (mut failed, mut skipped) = (0, 0);
    for detail in details.split(", ").filter(|detail| !detail.is_empty()) {
        let (name, n) = detail.split_once('=')?;
        let n = number(n)?;
        match name {
            "failures" | "errors" | "unexpected successes" => failed += n,
            "skipped" | "expected failures" => skipped += n,
            _ => return None,
        }
    }
    let passed = match word {
        "OK" | "NO TESTS RAN" if failed == 0 => Some(ran?.checked_sub(skipped)?),
        // A test may fail several times, in its parts, and one that was never
        // run may fail, too: what passed can't be told.
        "FAILED" if failed > 0 => None,
        _ => return None,
    };
    Some(TestSummary { runner: Runner::Unittest, passed, failed, skipped, complete: true })
}
