//! `JUnit`: on its own, under Maven's surefire, under Ant, under Gradle.

use super::count::{leading_count, whole_number};
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `Tests run: 3, Failures: 1, Errors: 0, Skipped: 0`: a line with a time is about one class, a
/// line without it is about a module.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent observation")]
pub(super) struct JunitParser {
    classes: Option<TestSummary>,
    modules: Option<TestSummary>,
    /// The total that `JUnit` on its own prints once, at the end.
    standalone: Option<TestSummary>,
    /// Whether the build tool printed its result, and whether the tests did not compile.
    ended: bool,
    not_built: bool,
    /// Whether Ant's first line was read, and whether lines are missing.
    begun: bool,
    mark_gap: bool,
    /// The total of a report in columns: `[ 3 tests successful ]`.
    console: Option<TestSummary>,
}

impl RunnerParser for JunitParser {
    const FIRST_BYTES: &'static [u8] = b"[TOBF";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        let Some(first @ (b'[' | b'T' | b'O' | b'B' | b'F')) = line.trimmed.as_bytes().first()
        else {
            return;
        };
        if *first == b'['
            && let Some(column) = line.trimmed.strip_prefix("[ ")
        {
            return self.read_column(column);
        }
        let (tag, text) = match line.trimmed.split_once("] ") {
            Some((tag, text)) if *first == b'[' => (tag, text.trim_start()),
            _ => ("", line.trimmed),
        };
        if text.starts_with("Buildfile: ") {
            self.begun = true;
        } else if let Some(counts) = text.strip_prefix("Tests run: ") {
            self.read_counts(tag, counts);
        } else if text == "No tests to run." {
            add_run(&mut self.modules, junit_summary(Some(0), 0, 0));
        } else if text.starts_with("OK (") {
            let tests = text.strip_prefix("OK (").and_then(leading_count);
            if let Some((tests, "tests)" | "test)")) = tests {
                add_run(&mut self.standalone, junit_summary(Some(tests), 0, 0));
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
        // A module prints its classes first and then the sum. Ant prints only the classes, so none
        // of its lines may be missing.
        let all_classes = self.ended && self.begun && !self.mark_gap;
        let classes = self.classes.map(|run| ended(run, all_classes));
        let run = self.modules.map(|run| ended(run, self.ended)).or(classes);
        let not_built = TestSummary { complete: false, ..junit_summary(Some(0), 1, 0) };
        let not_built = self.not_built.then_some(not_built);
        let others = [self.standalone, self.console, not_built].into_iter().flatten();
        run.into_iter().chain(others).reduce(TestSummary::combine)
    }
}

fn junit_summary(passed: Option<u64>, failed: u64, skipped: u64) -> TestSummary {
    TestSummary { runner: TestRunner::Junit, passed, failed, skipped, complete: true }
}

impl JunitParser {
    /// Lines are missing here, or before everything that was read.
    pub(super) fn mark_gap(&mut self) {
        self.mark_gap = true;
    }

    fn read_counts(&mut self, tag: &str, counts: &str) {
        let of_class = counts.contains("Time elapsed");
        let (mut run, mut failed, mut skipped, mut errors) = (None, 0, 0, false);
        for (at, part) in counts.split(',').enumerate() {
            let part = part.trim();
            match part.split_once(": ") {
                None if at == 0 => run = whole_number(part),
                Some(("Failures", n)) => failed += leading_count(n).map_or(0, |(n, _)| n),
                Some(("Errors", n)) => {
                    errors = true;
                    failed += leading_count(n).map_or(0, |(n, _)| n);
                }
                Some(("Skipped", n)) => skipped += leading_count(n).map_or(0, |(n, _)| n),
                _ => {}
            }
        }
        let Some(run) = run else { return };
        let summary = junit_summary(run.checked_sub(failed + skipped), failed, skipped);
        if of_class {
            add_run(&mut self.classes, summary);
        } else if errors {
            add_run(&mut self.modules, summary);
        } else if tag.is_empty() {
            // In `Tests run: 3,  Failures: 1`, errors count as failures.
            add_run(&mut self.standalone, summary);
        }
    }

    /// `[         3 tests successful      ]`.
    fn read_column(&mut self, text: &str) {
        let Some(text) = text.strip_suffix(']') else { return };
        let Some((n, word)) = leading_count(text.trim()) else { return };
        let run = match word {
            "tests found" => {
                let begun = TestSummary { complete: false, ..junit_summary(None, 0, 0) };
                return add_run(&mut self.console, begun);
            }
            "tests skipped" | "tests aborted" | "tests successful" | "tests failed" => {
                let begun = TestSummary { complete: false, ..junit_summary(None, 0, 0) };
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

/// `3 tests completed, 1 failed`, which Gradle prints only if a test failed. Otherwise the name of
/// the task shows that tests were run, and the last line shows the result.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent observation")]
pub(super) struct GradleParser {
    summary: Option<TestSummary>,
    ran: bool,
    /// Whether a test task found no tests.
    found_none: bool,
    failed: u64,
    not_built: bool,
    succeeded: bool,
}

impl RunnerParser for GradleParser {
    const FIRST_BYTES: &'static [u8] = b">:EB0123456789";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        if !line.has_no_indentation() {
            return;
        }
        match line.text.as_bytes().first() {
            Some(b'>' | b':') => {
                let task = line.text.strip_prefix("> Task ").unwrap_or(line.text);
                let ran = task.strip_prefix(':').is_some_and(is_test_task);
                self.ran |= ran;
                let empty = task.strip_prefix(':').and_then(|task| task.strip_suffix(" NO-SOURCE"));
                self.found_none |= empty.is_some_and(is_test_task);
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
                if let Some(summary) = parse_completed(line.text) {
                    add_run(&mut self.summary, summary);
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Option<TestSummary> {
        // Gradle does not print the number of passed tests.
        let without_counts = TestSummary {
            runner: TestRunner::Gradle,
            passed: (self.not_built || !self.ran).then_some(0),
            failed: self.failed.max(u64::from(self.not_built)),
            skipped: 0,
            complete: self.succeeded,
        };
        let has_tests = self.ran || self.not_built || self.found_none;
        self.summary.or_else(|| has_tests.then_some(without_counts))
    }
}

fn parse_completed(text: &str) -> Option<TestSummary> {
    let (mut run, mut failed, mut skipped) = (None, 0, 0);
    super::count::visit_counts(text, ", ", |n, word| match word {
        "tests completed" | "test completed" => run = Some(n),
        "failed" => failed = n,
        "skipped" => skipped = n,
        _ => {}
    })?;
    let passed = run.filter(|_| failed > 0)?.checked_sub(failed + skipped);
    Some(TestSummary { runner: TestRunner::Gradle, passed, failed, skipped, complete: true })
}

/// Whether a task runs tests and was not skipped: `app:test`, `integrationTest`.
fn is_test_task(task: &str) -> bool {
    let (path, how) = task.split_once(' ').unwrap_or((task, ""));
    let name = path.rsplit(':').next().unwrap_or(path);
    let tests = name == "test"
        || name.ends_with("UnitTest")
        || name.ends_with("Test") && !name.starts_with("compile") && !name.starts_with("process");
    tests && !matches!(how, "NO-SOURCE" | "SKIPPED")
}
