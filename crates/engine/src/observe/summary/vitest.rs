//! `vitest`.

use super::count::{count, each};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `Test Files  1 failed | 2 passed (3)`, then `Tests`, perhaps `Errors`, and `Duration`.
#[derive(Default)]
pub(super) struct Vitest {
    heard: Option<TestSummary>,
    /// Files that failed.
    files: Option<u64>,
    /// The run whose `Duration` is awaited.
    run: Option<TestSummary>,
}

impl Family for Vitest {
    const FIRST: &'static [u8] = b"TED";

    fn line(&mut self, line: &Line<'_>) {
        if line.at_margin() {
            return;
        }
        let after = |word| line.trimmed.strip_prefix(word).map(str::trim_start);
        match line.trimmed.as_bytes().first() {
            Some(b'T') => {
                if let Some(counts) = after("Test Files  ") {
                    self.close(false);
                    self.files = read(counts).map(|counts| counts.failed);
                } else if let Some(counts) = after("Tests  ").and_then(read) {
                    self.tests(&counts);
                } else if let Some(errors) = after("Type Errors  ") {
                    self.errors(errors);
                }
            }
            Some(b'E') => {
                if let Some(errors) = after("Errors  ") {
                    self.errors(errors);
                }
            }
            Some(b'D') if after("Duration  ").is_some_and(|time| count(time).is_some()) => {
                self.close(true);
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Option<TestSummary> {
        self.close(false);
        self.heard
    }
}

#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
    of: u64,
}

/// `2 failed | 4 passed | 1 skipped (7)`, or `no tests`.
fn read(text: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    if text == "no tests" {
        return Some(counts);
    }
    let (list, of) = text.strip_suffix(')')?.rsplit_once(" (")?;
    counts.of = super::count::number(of)?;
    let mut strange = false;
    each(list, " | ", |n, word| match word {
        "passed" => counts.passed = n,
        "failed" => counts.failed = n,
        "skipped" | "todo" | "expected fail" => counts.skipped += n,
        _ => strange = true,
    })?;
    (!strange).then_some(counts)
}

impl Vitest {
    fn tests(&mut self, counts: &Counts) {
        // A file that can't be read has no tests that could fail. Without the
        // line above there is no telling whether one was.
        let files = self.files.take();
        let counted = counts.passed + counts.failed + counts.skipped;
        self.run = Some(TestSummary {
            runner: Runner::Vitest,
            passed: Some(counts.passed),
            failed: if counts.failed == 0 { files.unwrap_or(0) } else { counts.failed },
            skipped: counts.skipped,
            // Fewer, if the run was left after a failure.
            complete: files.is_some() && counted == counts.of,
        });
    }

    /// `1 error`, of something that no test waits for.
    fn errors(&mut self, text: &str) {
        if let (Some(run), Some((errors, _))) = (&mut self.run, count(text)) {
            run.failed += errors;
        }
    }

    fn close(&mut self, ended: bool) {
        let files = self.files.take();
        if let Some(mut run) = self.run.take() {
            run.complete &= ended;
            add(&mut self.heard, run);
        } else if let Some(failed) = files {
            let runner = Runner::Vitest;
            let run = TestSummary { runner, passed: None, failed, skipped: 0, complete: false };
            add(&mut self.heard, run);
        }
    }
}
