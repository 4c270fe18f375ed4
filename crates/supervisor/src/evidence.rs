//! What a person can check after a run: verdict counts, changed files, tests and costs.

use std::collections::BTreeMap;
use std::path::Path;

use jackline_attempt::GuardrailCause;
use jackline_engine::summary::TestsPassing;
use jackline_engine::verdict::ViolationSubtype;
use jackline_engine::{Decision, EventKind, SessionSummary, Verdict};
use jackline_journal::{JournalLine, JournalProblemKind, StoreError, Verifier, parse_record};
use serde::Serialize;

use crate::run_journal::RunJournal;
use crate::workspace_stamps::WorkspaceStamps;

/// What a person can check after a run.
#[expect(clippy::struct_excessive_bools, reason = "each field answers a question of its own")]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// How many verdicts of each decision the journal contains.
    pub verdicts: BTreeMap<String, u64>,
    /// How many enforced violations of each kind the journal contains.
    #[serde(rename = "objections")]
    pub violations: BTreeMap<String, u64>,
    /// Whether code was changed.
    pub code_modified: bool,
    /// Whether tests ran after the last change.
    pub tests_run: bool,
    /// Whether the tests passed: `yes`, `no` or `unknown`.
    pub tests_passing: TestsPassing,
    /// The files that were changed, created or deleted.
    pub files_changed: Vec<String>,
    /// Whether the workspace has too many files for a complete list.
    pub files_cut: bool,
    /// How many iterations were started.
    pub iterations: u64,
    /// How many of them ended before the run did, as `jackline status` counts them.
    pub iterations_ended: u64,
    /// How many steps the agent took.
    pub steps: u64,
    /// The input and output tokens that were reported.
    pub tokens: (u64, u64),
    /// Whether a program without hooks worked, so that more tokens were used.
    pub tokens_unknown: bool,
    /// The cost in millionths of a dollar; `None` if it is not known.
    pub cost_micros: Option<u64>,
    /// How long the run took.
    pub elapsed_ms: u64,
    /// What the guards objected to, for the outcome.
    #[serde(skip)]
    pub(crate) objections: Objections,
    /// The first finding, if the journal was changed.
    #[serde(skip)]
    pub(crate) tampered: Option<String>,
}

/// What the guards objected to in a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Objections {
    /// The last enforced violation.
    pub(crate) last: Option<GuardrailCause>,
    /// How many stops were refused, so that the agent tried again.
    pub(crate) refused_stops: u32,
}

/// What the driver of a run knows and the journal does not record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnrecordedFacts {
    /// Whether an iteration was active when the run ended.
    pub(crate) has_open_iteration: bool,
    /// Whether a program worked whose tokens are not reported.
    pub(crate) has_unreported_usage: bool,
}

impl Evidence {
    /// Collects the evidence from the journal, the workspace and the driver.
    pub(crate) fn gather(
        journal: &RunJournal,
        summary: Option<&SessionSummary>,
        before: Option<&WorkspaceStamps>,
        workspace: &Path,
        unrecorded: UnrecordedFacts,
    ) -> Self {
        let mut evidence = Self::default();
        evidence.tampered = evidence.count_all(journal).unwrap_or_else(|it| Some(it.to_string()));
        if let Some(before) = before {
            let after = WorkspaceStamps::scan(workspace);
            evidence.files_changed = before.changed(&after);
            evidence.files_cut = before.is_cut() || after.is_cut();
        }
        if let Some(summary) = summary {
            evidence.code_modified = summary.dirty_bits.code_modified;
            evidence.tests_run = summary.dirty_bits.tests_run;
            evidence.tests_passing = summary.dirty_bits.tests_passing;
            evidence.iterations_ended = summary.progress.iteration_count;
            evidence.iterations =
                evidence.iterations_ended + u64::from(unrecorded.has_open_iteration);
            evidence.steps = summary.steps;
            evidence.tokens = (summary.usage.input, summary.usage.output);
            let cost = summary.usage.cost_micros;
            evidence.tokens_unknown = unrecorded.has_unreported_usage;
            let is_known = summary.usage.unpriced + summary.usage.unknown == 0;
            evidence.cost_micros = (is_known && !unrecorded.has_unreported_usage).then_some(cost);
            evidence.elapsed_ms = summary.elapsed_ms;
        }
        evidence
    }

    /// Counts the verdicts of a journal. Returns the first finding, if the journal was changed.
    fn count_all(&mut self, journal: &RunJournal) -> Result<Option<String>, StoreError> {
        let journal = journal.view()?;
        // Gates read only the end of a journal. Here all of it is read anyway, so all of it is
        // checked.
        let mut verifier = Verifier::new(journal.saved_head());
        let torn = journal.for_each(|line| {
            if verifier.check_line(line)
                && let JournalLine::Event(record) = parse_record(line)?
            {
                let record = record.as_record();
                self.count(&record.event.kind, record.verdict);
            }
            Ok::<_, StoreError>(())
        })?;
        let report = verifier.finish(torn);
        // A torn last line is no finding: another process may be writing it at this moment.
        let first = report.findings.iter().find(|it| it.kind != JournalProblemKind::Torn);
        Ok(first.map(|it| format!("record {}: {}", it.record, it.reason)))
    }

    fn count(&mut self, kind: &EventKind, verdict: &Verdict) {
        *self.verdicts.entry(verdict.decision.as_str().to_owned()).or_default() += 1;
        for violation in verdict.violations.iter().filter(|it| it.enforced) {
            let (class, subtype) = (violation.class, violation.subtype.to_string());
            self.objections.last = Some(GuardrailCause { class, subtype });
            *self.violations.entry(violation.subtype.to_string()).or_default() += 1;
        }
        let is_refused = verdict.is_enforced(Decision::Deny);
        let mut violations = verdict.violations.iter();
        let is_waiting = violations.any(|it| it.subtype == ViolationSubtype::VerificationRunning);
        if matches!(kind, EventKind::StopProposed(_)) && is_refused && !is_waiting {
            self.objections.refused_stops += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use jackline_engine::{SessionEnded, SessionId};
    use jackline_host::HostAccess;
    use jackline_journal::FileStore;
    use jackline_runtime::{Definitions, Gate, Runtime};

    use super::*;

    #[test]
    fn a_torn_last_line_is_no_finding_and_a_changed_record_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("jackline.yaml");
        std::fs::write(&file, "version: 1\n").unwrap();
        let store = FileStore::new(dir.path().join("home"), 0);
        let session = SessionId::parse("s").unwrap();
        let journal = RunJournal::new(store.clone(), session.clone());
        let host = HostAccess::of_machine(Some(store.home()));
        let definitions = Definitions::new(Some(file), host);
        let file = store.journal_file(&session);
        let runtime = Runtime::new(store, definitions, dir.path().to_owned());
        let mut gate = Gate::new(runtime, session);
        assert!(gate.report(SessionEnded::default()).is_decision());
        drop(gate);
        let found = || {
            Evidence::gather(&journal, None, None, dir.path(), UnrecordedFacts::default()).tampered
        };
        assert_eq!(found(), None);
        let mut log = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
        log.write_all(b"{\"v\":1,").unwrap();
        assert_eq!(found(), None, "an incomplete record");
        log.write_all(b"}\n").unwrap();
        assert!(found().is_some(), "a complete line that is no record");
    }
}
