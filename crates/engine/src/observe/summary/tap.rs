//! The Test Anything Protocol, and the sums that `node --test` and others add to it.

use super::count::{count, number};
use super::text::Line;
use super::{Family, Runner, TestSummary};

/// `ok 1 - adds`, `not ok 2 - fails`, and the plan `1..2` before or after.
#[derive(Default)]
pub(super) struct Tap {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// How many tests were planned, of all plans.
    planned: Option<u64>,
    bailed_out: bool,
    sums: Sums,
}

/// `# pass 5`, `ℹ fail 2`, `<!-- todo 1 -->`: what node adds in its reporters.
#[derive(Default)]
struct Sums {
    tests: Option<u64>,
    pass: Option<u64>,
    fail: Option<u64>,
    cancelled: Option<u64>,
    skipped: u64,
    node: bool,
    ended: bool,
}

impl Family for Tap {
    const FIRST: &'static [u8] = b"on1B#<\xe2";

    fn line(&mut self, line: &Line<'_>) {
        let text = line.trimmed;
        match text.as_bytes().first() {
            Some(b'o') if line.at_margin() => self.test(text, "ok "),
            Some(b'n') if line.at_margin() => self.test(text, "not ok "),
            Some(b'1') if line.at_margin() => {
                if let Some(planned) = text.strip_prefix("1..").and_then(count) {
                    *self.planned.get_or_insert(0) += planned.0;
                }
            }
            Some(b'B') if line.at_margin() => self.bailed_out |= text.starts_with("Bail out!"),
            Some(b'#' | b'<' | 0xe2) => self.sum(text),
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        if let Some(summary) = self.summed_up() {
            return Some(summary);
        }
        let run = self.passed + self.failed + self.skipped;
        // Lines that begin with "ok" are common; a plan, or `not ok`, is not.
        let heard = self.planned.is_some() && run > 0 || self.failed > 0 || self.bailed_out;
        heard.then_some(TestSummary {
            runner: Runner::Tap,
            passed: Some(self.passed),
            failed: self.failed + u64::from(self.bailed_out),
            skipped: self.skipped,
            complete: self.planned == Some(run) && !self.bailed_out,
        })
    }
}

impl Tap {
    fn test(&mut self, text: &str, outcome: &str) {
        let Some((_, name)) = text.strip_prefix(outcome).and_then(count) else { return };
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

    fn sum(&mut self, text: &str) {
        let said = text.strip_prefix("# ").or_else(|| text.strip_prefix("ℹ "));
        let xml = || text.strip_prefix("<!-- ")?.strip_suffix(" -->");
        let Some((word, n)) = said.or_else(xml).and_then(|said| said.split_once(' ')) else {
            return;
        };
        if word == "duration_ms" {
            self.sums.ended |= count(n).is_some();
            return;
        }
        let Some(n) = number(n.trim()) else { return };
        let sums = &mut self.sums;
        let add = |sum: &mut Option<u64>| *sum.get_or_insert(0) += n;
        match word {
            "tests" => {
                // Another run: it has an end of its own.
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

    fn summed_up(&self) -> Option<TestSummary> {
        let sums = &self.sums;
        let node = sums.node || sums.cancelled.is_some();
        // Others sum up so, too, but only under lines of TAP.
        if !node && (self.planned.is_none() || sums.tests.is_none() || sums.pass.is_none()) {
            return None;
        }
        let told = sums.fail.unwrap_or(0) + sums.cancelled.unwrap_or(0);
        Some(TestSummary {
            runner: if node { Runner::Node } else { Runner::Tap },
            passed: sums.pass,
            failed: told.max(u64::from(self.failed > 0)),
            skipped: if node { sums.skipped } else { sums.skipped.max(self.skipped) },
            complete: sums.pass.is_some() && sums.fail.is_some() && (sums.ended || !node),
        })
    }
}
