//! Reports in `JUnit`'s XML format, which many runners write.

use super::count::whole_number;
use super::text::OutputLine;
use super::{TestRunner, TestSummary, add_run};

/// `<testsuites tests="8" failures="2" errors="0" skipped="1">`, or the same attributes on every
/// `<testsuite>`.
#[derive(Default)]
pub(super) struct JunitXmlParser {
    /// The totals of the whole report.
    all: Option<TestSummary>,
    /// The sum of the outermost suites.
    suites: Option<TestSummary>,
    depth: u64,
    /// The number of failed tests in the text, and whether there are tests outside of suites.
    failures: u64,
    has_loose_tests: bool,
    /// Whether the middle of the text was not read.
    mark_gap: bool,
    ended: bool,
}

impl JunitXmlParser {
    /// Reads a line.
    pub(super) fn read_line(&mut self, line: &OutputLine<'_>) {
        // The output of a failed test may precede a tag.
        if !line.trimmed.starts_with('<') && !line.trimmed.ends_with('>') {
            return;
        }
        for tag in line.trimmed.split('<').skip(1) {
            self.read_tag(tag);
        }
    }

    /// The summary; `None` if the text is not a report.
    pub(super) fn finish(self) -> Option<TestSummary> {
        // If the middle is missing, or tests are outside of suites, the sum of the suites is
        // incomplete.
        let suites = self.suites.filter(|_| !self.mark_gap && !self.has_loose_tests);
        let mut run = match (self.all, suites) {
            // Some totals do not contain the number of skipped tests.
            (Some(all), Some(suites)) if all.passed.is_none() => {
                TestSummary { failed: suites.failed.max(all.failed), ..suites }
            }
            (all, suites) => all.or(suites)?,
        };
        run.failed = run.failed.max(self.failures);
        run.complete = self.ended;
        Some(run)
    }

    /// The next lines do not directly follow the lines before.
    pub(super) fn mark_gap(&mut self) {
        self.mark_gap = true;
    }

    fn read_tag(&mut self, tag: &str) {
        let name = tag.split([' ', '>', '/', '\t']).next().unwrap_or("");
        match name {
            "testsuites" => {
                self.ended = false;
                if let Some(totals) = parse_totals(tag) {
                    add_run(&mut self.all, totals);
                }
            }
            "testsuite" => {
                if self.depth == 0
                    && let Some(totals) = parse_totals(tag)
                {
                    self.ended = tag.contains("/>");
                    add_run(&mut self.suites, totals);
                }
                self.depth += u64::from(!tag.contains("/>"));
            }
            "testcase" => self.has_loose_tests |= self.depth == 0,
            "failure" | "error" => self.failures += 1,
            "" if tag.starts_with("/testsuites>") => self.ended = true,
            "" if tag.starts_with("/testsuite>") => {
                self.depth = self.depth.saturating_sub(1);
                self.ended |= self.depth == 0 && self.all.is_none();
            }
            _ => {}
        }
    }
}

fn parse_totals(tag: &str) -> Option<TestSummary> {
    let value = |name: &str| {
        let mut rest = tag;
        loop {
            let at = rest.find(name)?;
            let before = rest.get(..at)?.ends_with([' ', '\t']);
            rest = rest.get(at + name.len()..)?;
            if let Some(value) = rest.strip_prefix("=\"").filter(|_| before) {
                return whole_number(value.split('"').next()?);
            }
        }
    };
    let tests = value("tests")?;
    let failed = value("failures")? + value("errors").unwrap_or(0);
    let skipped = value("skipped").or_else(|| value("disabled"));
    let passed = skipped.and_then(|skipped| tests.checked_sub(failed + skipped));
    let skipped = skipped.unwrap_or(0);
    Some(TestSummary { runner: TestRunner::Junit, passed, failed, skipped, complete: true })
}
