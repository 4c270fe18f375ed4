//! Decides every event of a journal again and compares the bytes.

use std::sync::Arc;

use jackline_engine::{SEMANTICS, Session};
use jackline_journal::{DefinitionSource, Line, RecordError, StoreError, parse_record};
use serde::Serialize;

/// How many differences are listed.
const DIFFERENCES_MAX: usize = 20;

/// One verdict that came out otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The record.
    pub seq: u64,
    /// `version` if the engine that wrote it meant something else, else `fault`.
    pub by: &'static str,
    /// The engine that wrote it.
    pub engine: String,
    /// What its verdicts mean.
    pub semantics: u32,
    /// What was decided.
    pub recorded: String,
    /// What is decided now.
    pub decided: String,
}

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// How many events were decided again.
    pub events: u64,
    /// How many came out the same, byte for byte.
    pub same: u64,
    /// How many differ because another version decided.
    pub differ_by_version: u64,
    /// How many differ and should not.
    pub differ_by_fault: u64,
    /// The first differences.
    pub differences: Vec<Difference>,
}

impl ReplayReport {
    /// Whether every verdict came out the same.
    pub fn is_proven(&self) -> bool {
        self.same == self.events
    }
}

/// A replay at work: give it the lines of a journal in order.
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
    /// A replay by an engine whose verdicts mean `semantics`.
    pub fn with_semantics(semantics: u32) -> Self {
        Self { semantics, ..Self::default() }
    }

    /// Decides one line of a journal again, given without its newline.
    pub fn line(
        &mut self,
        definitions: &dyn DefinitionSource,
        line: &[u8],
    ) -> Result<(), StoreError> {
        let mut line = parse_record(line)?;
        line.load(|digest| definitions.load(digest))?;
        let record = match line {
            Line::Opened(opened) => {
                let definition = definitions.load(&opened.definition.lowered.digest())?;
                self.session = Some(Session::new(definition, Arc::new(opened.place)));
                return Ok(());
            }
            Line::Event(record) => record,
        };
        let Some(session) = &mut self.session else {
            let reason = "it comes before the record that opens the session".to_owned();
            return Err(RecordError { seq: record.seq.to_string(), reason }.into());
        };
        // The recorded verdict is what happened, so it is what is folded in.
        let decided = session.ground().understand(&record.event, |understood| {
            let decided = session.decide_on(understood, &record.facts);
            session.apply_on(understood, &record.as_record());
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
                self.report.differences.push(Difference {
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

    /// The session as the journal leaves it.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// What was found.
    pub fn finish(self) -> ReplayReport {
        self.report
    }
}
