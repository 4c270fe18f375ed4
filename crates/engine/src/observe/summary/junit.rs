//! `JUnit`: by itself, under Maven's surefire, under Ant, under Gradle.

use super::count::{count, number};
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `Tests run: 3, Failures: 1, Errors: 0, Skipped: 0`: with a time it is told of
/// one class, without one of a module.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was heard")]
pub(super) struct Junit {
    classes: Option<TestSummary>,
    modules: Option<TestSummary>,
    /// By itself `JUnit` sums up once, at the end.
    alone: Option<TestSummary>,
    /// The tool around it says how it ended, or that the tests did not compile.
    ended: bool,
    not_built: bool,
    /// Ant's first line was heard; lines are left out.
    begun: bool,
    cut: bool,
    /// A report in columns: `[ 3 tests successful ]`.
    console: Option<TestSummary>,
}

impl Family for Junit {
    const FIRST: &'static [u8] = b"[TOBF";

    fn line(&mut self, line: &Line<'_>) {
        let Some(first @ (b'[' | b'T' | b'O' | b'B' | b'F')) = line.trimmed.as_bytes().first()
        else {
            return;
        };
        if *first == b'['
            && let Some(column) = line.trimmed.strip_prefix("[ ")
        {
            return self.column(column);
        }
        let (tag, text) = match line.trimmed.split_once("] ") {
            Some((tag, text)) if *first == b'[' => (tag, text.trim_start()),
            _ => ("", line.trimmed),
        };
        if text.starts_with("Buildfile: ") {
            self.begun = true;
        } else if let Some(counts) = text.strip_prefix("Tests run: ") {
            self.counts(tag, counts);
        } else if text.starts_with("OK (") {
            let tests = text.strip_prefix("OK (").and_then(count);
            if let Some((tests, "tests)" | "test)")) = tests {
                add(&mut self.alone, summary(Some(tests), 0, 0));
            }
        } else if ["BUILD SUCCESS", "BUILD FAIL", "Failed to execute goal "]
            .iter()
            .any(|end| text.starts_with(end))
        {
            self.ended = true;
            self.not_built |= text.contains(":testCompile ");
        }
    }

    fn finish(self) -> Option<TestSummary> {
        let ended = |run: TestSummary, ended| TestSummary { complete: ended, ..run };
        // Every module tells its classes first, and the sum then. Ant tells the
        // classes alone, so that none may be missing.
        let all_classes = self.ended && self.begun && !self.cut;
        let classes = self.classes.map(|run| ended(run, all_classes));
        let run = self.modules.map(|run| ended(run, self.ended)).or(classes);
        let not_built = TestSummary { complete: false, ..summary(Some(0), 1, 0) };
        let not_built = self.not_built.then_some(not_built);
        let others = [self.alone, self.console, not_built].into_iter().flatten();
        run.into_iter().chain(others).reduce(TestSummary::and)
    }
}

fn summary(passed: Option<u64>, failed: u64, skipped: u64) -> TestSummary {
    TestSummary { runner: Runner::Junit, passed, failed, skipped, complete: true }
}

impl Junit {
    /// Says that lines are left out here, or before all that is heard.
    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    fn counts(&mut self, tag: &str, counts: &str) {
        let of_class = counts.contains("Time elapsed");
        let (mut run, mut failed, mut skipped, mut errors) = (None, 0, 0, false);
        for (at, part) in counts.split(',').enumerate() {
            let part = part.trim();
            match part.split_once(": ") {
                None if at == 0 => run = number(part),
                Some(("Failures", n)) => failed += count(n).map_or(0, |(n, _)| n),
                Some(("Errors", n)) => {
                    errors = true;
                    failed += count(n).map_or(0, |(n, _)| n);
                }
                Some(("Skipped", n)) => skipped += count(n).map_or(0, |(n, _)| n),
                _ => {}
            }
        }
        let Some(run) = run else { return };
        let summary = summary(run.checked_sub(failed + skipped), failed, skipped);
        if of_class {
            add(&mut self.classes, summary);
        } else if errors {
            add(&mut self.modules, summary);
        } else if tag.is_empty() {
            // `Tests run: 3,  Failures: 1`: errors count as failures.
            add(&mut self.alone, summary);
        }
    }

    /// `[         3 tests successful      ]`.
    fn column(&mut self, text: &str) {
        let Some(text) = text.strip_suffix(']') else { return };
        let Some((n, word)) = count(text.trim()) else { return };
        let run = match word {
            "tests found" => {
                let begun = TestSummary { complete: false, ..summary(None, 0, 0) };
                return add(&mut self.console, begun);
            }
            "tests skipped" | "tests aborted" | "tests successful" | "tests failed" => {
                let begun = TestSummary { complete: false, ..summary(None, 0, 0) };
                self.console.get_or_insert(begun)
            }
            _ => return,
        };
        match word {
            "tests successful" => run.passed = Some(run.passed.unwrap_or(0) + n),
            "tests failed" => {
                run.failed += n;
                run.complete = run.passed.is_some();
            }
            _ => run.skipped += n,
        }
    }
}

/// `3 tests completed, 1 failed`, said only where one did; else its task says
/// that tests were run, and the last line how it ended.
#[derive(Default)]
pub(super) struct Gradle {
    heard: Option<TestSummary>,
    ran: bool,
    failed: u64,
    not_built: bool,
    succeeded: bool,
}

impl Family for Gradle {
    const FIRST: &'static [u8] = b">:EB0123456789";

    fn line(&mut self, line: &Line<'_>) {
        if !line.at_margin() {
            return;
        }
        match line.text.as_bytes().first() {
            Some(b'>' | b':') => {
                let task = line.text.strip_prefix("> Task ").unwrap_or(line.text);
                let ran = task.strip_prefix(':').is_some_and(is_test_task);
                self.ran |= ran;
                self.failed += u64::from(ran && task.ends_with(" FAILED"));
            }
            Some(b'E') => {
                let task = line.text.strip_prefix("Execution failed for task ':");
                let name = task.and_then(|task| task.strip_suffix("'."));
                let name = name.map(|name| name.rsplit(':').next().unwrap_or(name));
                self.not_built |= name.is_some_and(|name| name.starts_with("compileTest"));
            }
            Some(b'B') => self.succeeded |= line.text.starts_with("BUILD SUCCESSFUL in "),
            Some(b'0'..=b'9') => {
                if let Some(summary) = completed(line.text) {
                    add(&mut self.heard, summary);
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        // What passed is not told.
        let untold = TestSummary {
            runner: Runner::Gradle,
            passed: self.not_built.then_some(0),
            failed: self.failed.max(u64::from(self.not_built)),
            skipped: 0,
            complete: self.succeeded,
        };
        self.heard.or_else(|| (self.ran || self.not_built).then_some(untold))
    }
}

fn completed(text: &str) -> Option<TestSummary> {
    let (mut run, mut failed, mut skipped) = (None, 0, 0);
    super::count::each(text, ", ", |n, word| match word {
        "tests completed" | "test completed" => run = Some(n),
        "failed" => failed = n,
        "skipped" => skipped = n,
        _ => {}
    })?;
    let passed = run.filter(|_| failed > 0)?.checked_sub(failed + skipped);
    Some(TestSummary { runner: Runner::Gradle, passed, failed, skipped, complete: true })
}

/// Whether a task runs tests and did: `app:test`, `integrationTest`.
fn is_test_task(task: &str) -> bool {
    let (path, how) = task.split_once(' ').unwrap_or((task, ""));
    let name = path.rsplit(':').next().unwrap_or(path);
    let tests = name == "test"
        || name.ends_with("UnitTest")
        || name.ends_with("Test") && !name.starts_with("compile") && !name.starts_with("process");
    tests && !matches!(how, "NO-SOURCE" | "SKIPPED")
}
