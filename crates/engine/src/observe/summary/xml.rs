//! Reports in the XML of `JUnit`, which many runners write.

use super::count::number;
use super::text::Line;
use super::{Runner, TestSummary, add};

/// `<testsuites tests="8" failures="2" errors="0" skipped="1">`, or the same of
/// every `<testsuite>`.
#[derive(Default)]
pub(super) struct Xml {
    /// The totals of the whole report.
    all: Option<TestSummary>,
    /// Those of its outermost suites.
    suites: Option<TestSummary>,
    depth: u64,
    /// Tests that are seen to have failed, and tests outside of suites.
    failures: u64,
    loose: bool,
    /// Whether something in the middle was not read.
    gap: bool,
    ended: bool,
}

impl Xml {
    /// Hears a line.
    pub(super) fn line(&mut self, line: &Line<'_>) {
        // What a failed test said may stand before a tag.
        if !line.trimmed.starts_with('<') && !line.trimmed.ends_with('>') {
            return;
        }
        for tag in line.trimmed.split('<').skip(1) {
            self.tag(tag);
        }
    }

    /// What it came to; `None` if it was no report.
    pub(super) fn finish(self) -> Option<TestSummary> {
        // Of suites those in the middle, or outside of them, would be missing.
        let suites = self.suites.filter(|_| !self.gap && !self.loose);
        let mut run = match (self.all, suites) {
            // Some totals leave out what was skipped.
            (Some(all), Some(suites)) if all.passed.is_none() => {
                TestSummary { failed: suites.failed.max(all.failed), ..suites }
            }
            (all, suites) => all.or(suites)?,
        };
        run.failed = run.failed.max(self.failures);
        run.complete = self.ended;
        Some(run)
    }

    /// From here on lines follow that do not follow each other.
    pub(super) fn gap(&mut self) {
        self.gap = true;
    }

    fn tag(&mut self, tag: &str) {
        let name = tag.split([' ', '>', '/', '\t']).next().unwrap_or("");
        match name {
            "testsuites" => {
                self.ended = false;
                if let Some(totals) = totals(tag) {
                    add(&mut self.all, totals);
                }
            }
            "testsuite" => {
                if self.depth == 0
                    && let Some(totals) = totals(tag)
                {
                    self.ended = tag.contains("/>");
                    add(&mut self.suites, totals);
                }
                self.depth += u64::from(!tag.contains("/>"));
            }
            "testcase" => self.loose |= self.depth == 0,
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

fn totals(tag: &str) -> Option<TestSummary> {
    let value = |name: &str| {
        let mut rest = tag;
        loop {
            let at = rest.find(name)?;
            let before = rest.get(..at)?.ends_with([' ', '\t']);
            rest = rest.get(at + name.len()..)?;
            if let Some(value) = rest.strip_prefix("=\"").filter(|_| before) {
                return number(value.split('"').next()?);
            }
        }
    };
    let tests = value("tests")?;
    let failed = value("failures")? + value("errors").unwrap_or(0);
    let skipped = value("skipped").or_else(|| value("disabled"));
    let passed = skipped.and_then(|skipped| tests.checked_sub(failed + skipped));
    let skipped = skipped.unwrap_or(0);
    Some(TestSummary { runner: Runner::Junit, passed, failed, skipped, complete: true })
}
