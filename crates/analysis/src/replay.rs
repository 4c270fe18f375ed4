//! Decides every event of a journal again and compares the bytes.

use std::sync::Arc;

use jackline_engine::{SEMANTICS, Session};
use jackline_journal::{DefinitionSource, JournalLine, RecordError, StoreError, parse_record};
use serde::Serialize;

/// The largest number of listed differences.
const DIFFERENCES_MAX: usize = 20;

/// A verdict that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictDifference {
    /// The record number.
    pub seq: u64,
    /// `version` if another semantics version wrote the record, else `fault`.
    pub by: &'static str,
    /// The version of the engine that wrote the record.
    pub engine: String,
    /// The semantics version of that engine's verdicts.
    pub semantics: u32,
    /// The recorded verdict.
    pub recorded: String,
    /// The verdict now.
    pub decided: String,
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// The number of events that were decided again.
    pub events: u64,
    /// The number of verdicts with equal bytes.
    pub same: u64,
    /// The number of differences because of another version.
    pub differ_by_version: u64,
    /// The number of unexpected differences.
    pub differ_by_fault: u64,
    /// The first differences.
    pub differences: Vec<VerdictDifference>,
}

impl ReplayReport {
    /// Whether every verdict is equal.
    pub fn is_proven(&self) -> bool {
        self.same == self.events
    }
}

/// A running replay. The caller passes the lines of a journal in order.
pub struct Replay {
    session: Option<Session>,
    semantics: u32,
    report: ReplayReport,
}

impl Default for Replay {
    fn default() -> Self {
        Self { session: None, semantics: SEMANTICS, report: ReplayReport::default() }
    }
}

impl Replay {
    /// A replay by an engine with the semantics version `semantics`.
    pub fn with_semantics(semantics: u32) -> Self {
        Self { semantics, ..Self::default() }
    }

    /// Decides one line of a journal again. The line has no newline.
    pub fn replay_line(
        &mut self,
        definitions: &dyn DefinitionSource,
        line: &[u8],
    ) -> Result<(), StoreError> {
        let mut line = parse_record(line)?;
        line.load_definitions(|digest| definitions.load(digest))?;
        let record = match line {
            JournalLine::Opened(opened) => {
                let definition = definitions.load(&opened.definition.lowered.digest())?;
                self.session = Some(Session::new(definition, Arc::new(opened.place)));
                return Ok(());
            }
            JournalLine::Event(record) => record,
        };
        let Some(session) = &mut self.session else {
            let reason = "it comes before the record that opens the session".to_owned();
            return Err(RecordError { seq: record.seq.to_string(), reason }.into());
        };
        // The recorded verdict took effect, so it is the one to apply.
        let decided = session.event_interpreter().with_interpreted(&record.event, |understood| {
            let decided = session.decide_interpreted(understood, &record.facts);
            session.apply_interpreted(understood, &record.as_record());
            decided
        });
        let decided = serde_json::to_string(&decided).unwrap_or_default();
        self.report.events += 1;
        if decided == record.verdict_json {
            self.report.same += 1;
        } else {
            let by = if record.semantics == self.semantics {
                self.report.differ_by_fault += 1;
                "fault"
            } else {
                self.report.differ_by_version += 1;
                "version"
            };
            if self.report.differences.len() < DIFFERENCES_MAX {
                self.report.differences.push(VerdictDifference {
                    seq: record.seq,
                    by,
                    engine: record.engine.clone(),
                    semantics: record.semantics,
                    recorded: record.verdict_json.clone(),
                    decided,
                });
            }
        }
        Ok(())
    }

    /// The session after the last line.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// The result of the replay.
    pub fn finish(self) -> ReplayReport {
        self.report
    }
}
