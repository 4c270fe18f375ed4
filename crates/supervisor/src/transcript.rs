//! The last actions of an agent program as text, for an advisor.
//!
//! The supervisor can't read the conversation of an agent program. It uses the events of its hooks
//! from the journal, and the last output of the program.

use std::collections::VecDeque;

use jackline_engine::{
    Arguments, CallStatus, EventKind, Payload, ToolFinished, ToolProposed, Verdict,
};
use jackline_journal::{JournalLine, StoreError, parse_record};
use jackline_runtime::reason_of;

use crate::run_journal::RunJournal;

/// How many lines of one result the transcript has.
const RESULT_LINES_MAX: usize = 40;

/// The last lines, oldest first.
struct TranscriptLines {
    lines: VecDeque<String>,
    lines_max: usize,
}

/// The last actions and the last output, with at most `lines_max` lines.
pub(crate) fn transcript(journal: &RunJournal, said: &str, lines_max: usize) -> String {
    let said: Vec<&str> = said.lines().collect();
    // A long output must not displace the actions.
    let said = said.get(said.len().saturating_sub(lines_max / 2)..).unwrap_or_default();
    let mut lines = TranscriptLines { lines: VecDeque::new(), lines_max: lines_max - said.len() };
    if let Ok(journal) = journal.view() {
        // If the journal can't be read, the gate reports it.
        let _ = journal.for_each(|line| {
            if let JournalLine::Event(record) = parse_record(line)? {
                let record = record.as_record();
                lines.add_event(&record.event.kind, record.verdict);
            }
            Ok::<_, StoreError>(())
        });
    }
    let said = said.iter().map(|line| (*line).to_owned());
    lines.lines.into_iter().chain(said).collect::<Vec<_>>().join("\n")
}

impl TranscriptLines {
    fn add_event(&mut self, kind: &EventKind, verdict: &Verdict) {
        match kind {
            EventKind::ToolProposed(ToolProposed { tool, args, .. }) => {
                let args = match args {
                    Arguments::Parsed(args) => args.to_string(),
                    Arguments::Text(text) => text.head().to_owned(),
                };
                self.push(format!("CALL {tool} {args}"));
                if !verdict.allows_run() {
                    self.push("REFUSED".to_owned());
                    self.push_all(&reason_of(verdict));
                }
            }
            EventKind::ToolFinished(ToolFinished { status, result, .. }) => {
                let word = if *status == CallStatus::Ok { "RESULT" } else { "FAILED" };
                self.push(word.to_owned());
                self.push_all(&result.as_ref().map(payload_text).unwrap_or_default());
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
        if self.lines.len() > self.lines_max {
            self.lines.pop_front();
        }
    }
}

/// The part of a text that the record contains.
fn payload_text(payload: &Payload) -> String {
    match payload {
        Payload::Inline(text) => text.clone(),
        Payload::Elided { elided } => format!("{}\n…\n{}", elided.head, elided.tail),
    }
}
