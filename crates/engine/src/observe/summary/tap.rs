//! The Test Anything Protocol, and the totals that `node --test` and others add to it.

use super::count::{leading_count, whole_number};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary};

/// `ok 1 - adds`, `not ok 2 - fails`, and the plan `1..2` before or after.
#[derive(Default)]
pub(super) struct TapParser {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// The number of planned tests, summed over all plans.
    planned: Option<u64>,
    bailed_out: bool,
    totals: TapTotals,
}

/// `# pass 5`, `ℹ fail 2`, `<!-- todo 1 -->`: the totals that node's reporters add.
#[derive(Default)]
struct TapTotals {
    tests: Option<u64>,
    pass: Option<u64>,
    fail: Option<u64>,
    cancelled: Option<u64>,
    skipped: u64,
    node: bool,
    ended: bool,
}

impl RunnerParser for TapParser {
    const FIRST_BYTES: &'static [u8] = b"on1B#<\xe2";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'o') if line.has_no_indentation() => self.read_test(text, "ok "),
            Some(b'n') if line.has_no_indentation() => self.read_test(text, "not ok "),
            Some(b'1') if line.has_no_indentation() => {
                if let Some(planned) = text.strip_prefix("1..").and_then(leading_count) {
                    *self.planned.get_or_insert(0) += planned.0;
                }
            }
            Some(b'B') if line.has_no_indentation() => {
                self.bailed_out |= text.starts_with("Bail out!");
            }
            Some(b'#' | b'<' | 0xe2) => self.read_total(text),
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        if let Some(summary) = self.summary_of_totals() {
            return Some(summary);
        }
        let run = self.passed + self.failed + self.skipped;
        // Lines that begin with "ok" are common. A plan or `not ok` is not.
        let heard = self.planned.is_some() && run > 0 || self.failed > 0 || self.bailed_out;
        heard.then_some(TestSummary {
            runner: TestRunner::Tap,
            passed: Some(self.passed),
            failed: self.failed + u64::from(self.bailed_out),
            skipped: self.skipped,
            complete: self.planned == Some(run) && !self.bailed_out,
        })
    }
}

impl TapParser {
    fn read_test(&mut self, text: &str, outcome: &str) {
        let Some((_, name)) = text.strip_prefix(outcome).and_then(leading_count) else { return };
        let directive = name.rsplit_once('#').map_or("", |(_, directive)| directive.trim_start());
        let directive = directive.get(..4).unwrap_or("");
        if directive.eq_ignore_ascii_case("skip") || directive.eq_ignore_ascii_case("todo") {
            self.skipped += 1;
        } else if outcome == "ok " {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    fn read_total(&mut self, text: &str) {
        let plain = text.strip_prefix("# ").or_else(|| text.strip_prefix("ℹ "));
        let xml = || text.strip_prefix("<!-- ")?.strip_suffix(" -->");
        let Some((word, n)) = plain.or_else(xml).and_then(|plain| plain.split_once(' ')) else {
            return;
        };
        if word == "duration_ms" {
            self.totals.ended |= leading_count(n).is_some();
            return;
        }
        let Some(n) = whole_number(n.trim()) else { return };
        let sums = &mut self.totals;
        let add = |sum: &mut Option<u64>| *sum.get_or_insert(0) += n;
        match word {
            "tests" => {
                // This is another run, which has its own end.
                sums.ended = false;
                add(&mut sums.tests);
            }
            "pass" => add(&mut sums.pass),
            "fail" => add(&mut sums.fail),
            "cancelled" => add(&mut sums.cancelled),
            "skipped" | "todo" => sums.skipped += n,
            "suites" => sums.node = true,
            _ => {}
        }
    }

    fn summary_of_totals(&self) -> Option<TestSummary> {
        let sums = &self.totals;
        let node = sums.node || sums.cancelled.is_some();
        // Other programs print totals like these too, but only under lines of TAP.
        if !node && (self.planned.is_none() || sums.tests.is_none() || sums.pass.is_none()) {
            return None;
        }
        let failed = sums.fail.unwrap_or(0) + sums.cancelled.unwrap_or(0);
        Some(TestSummary {
            runner: if node { TestRunner::Node } else { TestRunner::Tap },
            passed: sums.pass,
            failed: failed.max(u64::from(self.failed > 0)),
            skipped: if node { sums.skipped } else { sums.skipped.max(self.skipped) },
            complete: sums.pass.is_some() && sums.fail.is_some() && (sums.ended || !node),
        })
    }
}
