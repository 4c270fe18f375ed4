//! `rspec`.

use super::count::each;
use super::text::Line;
use super::{Family, Runner, TestSummary, add};

/// `6 examples, 2 failures, 1 pending`.
#[derive(Default)]
pub(super) struct Rspec(Option<TestSummary>);

impl Family for Rspec {
    const FIRST: &'static [u8] = b"0123456789";

    fn line(&mut self, line: &Line<'_>) {
        if !line.text.starts_with(|c: char| c.is_ascii_digit()) || !line.text.contains(" example") {
            return;
        }
        let (mut run, mut failures, mut errors, mut pending, mut told) = (None, 0, 0, 0, false);
        let read = each(line.text, ", ", |n, word| match word {
            "example" | "examples" => run = Some(n),
            "failure" | "failures" => (failures, told) = (n, true),
            "pending" => pending = n,
            "error occurred outside of examples" | "errors occurred outside of examples" => {
                errors = n;
            }
            _ => run = None,
        });
        if let (Some(()), Some(run), true) = (read, run, told) {
            let summary = TestSummary {
                runner: Runner::Rspec,
                passed: run.checked_sub(failures + pending),
                failed: failures + errors,
                skipped: pending,
                complete: errors == 0,
            };
            add(&mut self.0, summary);
        }
    }

    fn finish(self) -> Option<TestSummary> {
        self.0
    }
}
