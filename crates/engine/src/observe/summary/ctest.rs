//! `ctest`.

use super::count::count;
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `50% tests passed, 2 tests failed out of 4`.
#[derive(Default)]
pub(super) struct Ctest {
    heard: Option<TestSummary>,
    skipped: u64,
    failing: bool,
}

impl Family for Ctest {
    const FIRST: &'static [u8] = b"0123456789TE";

    fn line(&mut self, line: &Line<'_>) {
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'0'..=b'9') => {
                if let Some(summary) = read(text) {
                    add(&mut self.heard, summary);
                } else if text.contains("***") {
                    let skipped = text.contains("***Skipped") || text.contains(" (Disabled)");
                    self.skipped += u64::from(skipped && text.contains(" Test #"));
                }
            }
            Some(b'T' | b'E') => {
                self.failing |=
                    matches!(text, "The following tests FAILED:" | "Errors while running CTest");
            }
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        let alone = TestSummary {
            runner: Runner::Ctest,
            passed: None,
            failed: 1,
            skipped: 0,
            complete: false,
        };
        let mut heard = self.heard.or_else(|| self.failing.then_some(alone))?;
        // Those that were switched off are not among the others.
        heard.skipped = self.skipped;
        Some(heard)
    }
}

fn read(text: &str) -> Option<TestSummary> {
    let (_, rest) = count(text)?;
    let (failed, rest) = count(rest.strip_prefix("% tests passed, ")?)?;
    let (of, rest) = count(rest.strip_prefix("tests failed out of ")?)?;
    let passed = of.checked_sub(failed);
    let summary = TestSummary { runner: Runner::Ctest, passed, failed, skipped: 0, complete: true };
    rest.is_empty().then_some(summary)
}
