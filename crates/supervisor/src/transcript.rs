//! What an agent program did last, as the journal tells it, for somebody who only reads.
//!
//! Its conversation is its own. What is left here is what its hooks have told, and what it
//! said at its end.

use std::collections::VecDeque;

use jackline_engine::{Arguments, EventKind, Payload, Status, ToolFinished, ToolProposed, Verdict};
use jackline_journal::{Line, StoreError, parse_record};
use jackline_runtime::reason_of;

use crate::run_journal::RunJournal;

/// How many lines of one result are told.
const RESULT_LINES_MAX: usize = 40;

/// The last lines, the latest last.
struct Lines {
    lines: VecDeque<String>,
    most: usize,
}

/// The last lines of what was done and said, at most so many.
pub(crate) fn transcript(journal: &RunJournal, said: &str, lines_max: usize) -> String {
    let said: Vec<&str> = said.lines().collect();
    // A program that talks a lot must not drive out what it did.
    let said = said.get(said.len().saturating_sub(lines_max / 2)..).unwrap_or_default();
    let mut lines = Lines { lines: VecDeque::new(), most: lines_max - said.len() };
    if let Ok(journal) = journal.view() {
        // What can't be read shuts the gate, which says so.
        let _ = journal.for_each(|line| {
            if let Line::Event(record) = parse_record(line)? {
                let record = record.as_record();
                lines.follow(&record.event.kind, record.verdict);
            }
            Ok::<_, StoreError>(())
        });
    }
    let said = said.iter().map(|line| (*line).to_owned());
    lines.lines.into_iter().chain(said).collect::<Vec<_>>().join("\n")
}

impl Lines {
    fn follow(&mut self, kind: &EventKind, verdict: &Verdict) {
        match kind {
            EventKind::ToolProposed(ToolProposed { tool, args, .. }) => {
                let args = match args {
                    Arguments::Parsed(args) => args.to_string(),
                    Arguments::Text(text) => text.head().to_owned(),
                };
                self.push(format!("CALL {tool} {args}"));
                if !verdict.lets_run() {
                    self.push("REFUSED".to_owned());
                    self.push_all(&reason_of(verdict));
                }
            }
            EventKind::ToolFinished(ToolFinished { status, result, .. }) => {
                let word = if *status == Status::Ok { "RESULT" } else { "FAILED" };
                self.push(word.to_owned());
                self.push_all(&result.as_ref().map(text).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn push_all(&mut self, text: &str) {
        let skipped = text.lines().count().saturating_sub(RESULT_LINES_MAX);
        for line in text.lines().skip(skipped) {
            self.push(line.to_owned());
        }
    }

    fn push(&mut self, line: String) {
        self.lines.push_back(line);
        if self.lines.len() > self.most {
            self.lines.pop_front();
        }
    }
}

/// What a record keeps of a text.
fn text(payload: &Payload) -> String {
    match payload {
        Payload::Inline(text) => text.clone(),
        Payload::Elided { elided } => format!("{}\n…\n{}", elided.head, elided.tail),
    }
}
