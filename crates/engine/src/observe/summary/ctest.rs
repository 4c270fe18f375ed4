//! `ctest`.

use super::count::leading_count;
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `50% tests passed, 2 tests failed out of 4`.
#[derive(Default)]
pub(super) struct CtestParser {
    summary: Option<TestSummary>,
    skipped: u64,
    failing: bool,
}

impl RunnerParser for CtestParser {
    const FIRST_BYTES: &'static [u8] = b"0123456789TEN";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'0'..=b'9') => {
                if let Some(summary) = parse_ctest_line(text) {
                    add_run(&mut self.summary, summary);
                } else if text.contains("***") {
                    let skipped = text.contains("***Skipped") || text.contains(" (Disabled)");
                    self.skipped += u64::from(skipped && text.contains(" Test #"));
                }
            }
            Some(b'N') => {
                if text == "No tests were found!!!" {
                    add_run(&mut self.summary, TestSummary::without_tests(TestRunner::Ctest));
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
        let failed_run = TestSummary {
            runner: TestRunner::Ctest,
            passed: None,
            failed: 1,
            skipped: 0,
            complete: false,
        };
        let mut summary = self.summary.or_else(|| self.failing.then_some(failed_run))?;
        // Disabled tests are not included in the other counts.
        summary.skipped = self.skipped;
        Some(summary)
    }
}

fn parse_ctest_line(text: &str) -> Option<TestSummary> {
    let (_, rest) = leading_count(text)?;
    let (failed, rest) = leading_count(rest.strip_prefix("% tests passed, ")?)?;
    let (of, rest) = leading_count(rest.strip_prefix("tests failed out of ")?)?;
    let passed = of.checked_sub(failed);
    let summary =
        TestSummary { runner: TestRunner::Ctest, passed, failed, skipped: 0, complete: true };
    rest.is_empty().then_some(summary)
}
