//! `rspec`.

use super::count::visit_counts;
use super::text::OutputLine;
use super::{RunnerParser, TestRunner, TestSummary, add_run};

/// `6 examples, 2 failures, 1 pending`.
#[derive(Default)]
pub(super) struct RspecParser(Option<TestSummary>);

impl RunnerParser for RspecParser {
    const FIRST_BYTES: &'static [u8] = b"0123456789";

    fn read_line(&mut self, line: &OutputLine<'_>) {
        if !line.text.starts_with(|c: char| c.is_ascii_digit()) || !line.text.contains(" example") {
            return;
        }
        let (mut run, mut failures, mut errors, mut pending, mut has_failures) =
            (None, 0, 0, 0, false);
        let read = visit_counts(line.text, ", ", |n, word| match word {
            "example" | "examples" => run = Some(n),
            "failure" | "failures" => (failures, has_failures) = (n, true),
            "pending" => pending = n,
            "error occurred outside of examples" | "errors occurred outside of examples" => {
                errors = n;
            }
            _ => run = None,
        });
        if let (Some(()), Some(run), true) = (read, run, has_failures) {
            let summary = TestSummary {
                runner: TestRunner::Rspec,
                passed: run.checked_sub(failures + pending),
                failed: failures + errors,
                skipped: pending,
                complete: errors == 0,
            };
            add_run(&mut self.0, summary);
        }
    }

    fn finish(self) -> Option<TestSummary> {
        self.0
    }
}
