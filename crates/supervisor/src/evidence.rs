//! What a person can check after a run: verdict counts, changed files, tests and costs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use jackline_engine::SessionSummary;
use jackline_engine::summary::TestsPassing;
use jackline_journal::{
    JournalLine, JournalProblemKind, StoreError, Verifier, parse_record, write_private,
};
use serde::{Deserialize, Serialize};

use crate::run_journal::RunJournal;

/// Directories whose files are not listed.
const SKIPPED: [&str; 6] = [".git", ".jackline", "target", "node_modules", ".venv", "__pycache__"];

/// How many files are stamped at most.
const FILES_MAX: usize = 20_000;

/// The file with the file stamps from the start of the run.
const STAMPS_FILE: &str = "before.json";

/// What a person can check after a run.
#[expect(clippy::struct_excessive_bools, reason = "each field answers a question of its own")]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// How many verdicts of each decision the journal contains.
    pub verdicts: BTreeMap<String, u64>,
    /// How many enforced violations of each kind the journal contains.
    #[serde(rename = "objections")]
    pub violations: BTreeMap<String, u64>,
    /// Whether code was changed, or any file by a program without hooks.
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
    /// The first finding, if the journal was changed.
    #[serde(skip)]
    pub(crate) tampered: Option<String>,
}

/// The stamps of files: size and modification time.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkspaceStamps {
    files: BTreeMap<String, (u64, u128)>,
    cut: bool,
}

impl WorkspaceStamps {
    /// Stamps the files of a workspace.
    pub(crate) fn scan(workspace: &Path) -> Self {
        let mut looks = Self::default();
        looks.walk(workspace, workspace);
        looks
    }

    /// Saves the stamps of the start, for a process that resumes the run.
    pub(crate) fn save(&self, directory: &Path) {
        // Without the file, only the list of changed files is missing.
        if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = write_private(&directory.join(STAMPS_FILE), &bytes);
        }
    }

    pub(crate) fn load(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.join(STAMPS_FILE)).ok()?).ok()
    }

    fn walk(&mut self, root: &Path, directory: &Path) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            if self.files.len() >= FILES_MAX {
                self.cut = true;
                return;
            }
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if !SKIPPED.iter().any(|skipped| name == **skipped) {
                    self.walk(root, &entry.path());
                }
                continue;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            let path = entry.path();
            let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let time = metadata.modified().ok();
            let time = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
            self.files.insert(path, (metadata.len(), time.map_or(0, |time| time.as_nanos())));
        }
    }

    /// How many files have a different stamp. `None` if there is no change, because a skipped file
    /// may have changed.
    pub(crate) fn changed_since(&self, workspace: &Path) -> Option<u64> {
        let changed = self.changed(&Self::scan(workspace)).len() as u64;
        (changed > 0).then_some(changed)
    }

    /// The files that differ.
    fn changed(&self, after: &Self) -> Vec<String> {
        let other = |(path, look): (&String, &(u64, u128)), than: &Self| {
            (than.files.get(path) != Some(look)).then(|| path.clone())
        };
        let mut changed: Vec<String> =
            after.files.iter().filter_map(|entry| other(entry, self)).collect();
        let gone = self.files.keys().filter(|path| !after.files.contains_key(*path));
        changed.extend(gone.cloned());
        changed.sort();
        changed
    }
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
            evidence.files_cut = before.cut || after.cut;
        }
        if let Some(summary) = summary {
            // The guards see no calls of a program without hooks, but its files show the changes.
            let is_unseen = unrecorded.has_unreported_usage && !evidence.files_changed.is_empty();
            evidence.code_modified = summary.dirty_bits.code_modified || is_unseen;
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
                self.count(record.as_record().verdict);
            }
            Ok::<_, StoreError>(())
        })?;
        let report = verifier.finish(torn);
        // A torn last line is no finding: another process may be writing it at this moment.
        let first = report.findings.iter().find(|it| it.kind != JournalProblemKind::Torn);
        Ok(first.map(|it| format!("record {}: {}", it.record, it.reason)))
    }

    fn count(&mut self, verdict: &jackline_engine::Verdict) {
        *self.verdicts.entry(verdict.decision.as_str().to_owned()).or_default() += 1;
        for violation in verdict.violations.iter().filter(|it| it.enforced) {
            *self.violations.entry(violation.subtype.to_string()).or_default() += 1;
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
