//! What a person can check when a run is over.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use jackline_engine::Summary;
use jackline_engine::summary::TestsPassing;
use jackline_journal::{FindingKind, Line, StoreError, Verifier, parse_record, write_private};
use serde::{Deserialize, Serialize};

use crate::run_journal::RunJournal;

/// Directories that nobody wants to hear of.
const SKIPPED: [&str; 6] = [".git", ".jackline", "target", "node_modules", ".venv", "__pycache__"];

/// How many files are looked at.
const FILES_MAX: usize = 20_000;

/// The file with what was there at the beginning.
const BEFORE: &str = "before.json";

/// What a person can check.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// How often was decided what.
    pub verdicts: BTreeMap<String, u64>,
    /// Objections that held, by their kind.
    pub objections: BTreeMap<String, u64>,
    /// Whether code was changed, or anything by a program of which no guard sees a call.
    pub code_modified: bool,
    /// Whether tests were run since.
    pub tests_run: bool,
    /// Whether they passed: `yes`, `no` or `unknown`.
    pub tests_passing: TestsPassing,
    /// Files that are otherwise than before, the new and the deleted ones among them.
    pub files_changed: Vec<String>,
    /// Whether there are too many to be sure.
    pub files_cut: bool,
    /// Iterations that were begun.
    pub iterations: u64,
    /// Those of them that came to an end before the run did, as `jackline status` counts them.
    pub iterations_ended: u64,
    /// Steps taken.
    pub steps: u64,
    /// Tokens read and written, as far as anybody has said so.
    pub tokens: (u64, u64),
    /// Whether a program worked besides, of which nobody knows what it read and wrote.
    pub tokens_unknown: bool,
    /// What it cost, in millionths of a dollar; none where that is unknown.
    pub cost_micros: Option<u64>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// What does not fit in the journal, where it is not what was written.
    #[serde(skip)]
    pub(crate) tampered: Option<String>,
}

/// How files looked: size and time.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Looks {
    files: BTreeMap<String, (u64, u128)>,
    cut: bool,
}

impl Looks {
    /// Looks at a workspace.
    pub(crate) fn of(workspace: &Path) -> Self {
        let mut looks = Self::default();
        looks.walk(workspace, workspace);
        looks
    }

    /// Keeps how it looked at the beginning, for a supervisor that goes on later.
    pub(crate) fn keep(&self, directory: &Path) {
        // Without it only a list of files is missing.
        if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = write_private(&directory.join(BEFORE), &bytes);
        }
    }

    pub(crate) fn kept(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.join(BEFORE)).ok()?).ok()
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

    /// How many files look otherwise since. None where that is none that anybody saw: what was
    /// skipped may have changed all the same.
    pub(crate) fn changed_since(&self, workspace: &Path) -> Option<u64> {
        let changed = self.changed(&Self::of(workspace)).len() as u64;
        (changed > 0).then_some(changed)
    }

    /// Files that differ.
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

/// What only whoever drove the run knows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unrecorded {
    /// Whether an iteration was under way when it ended.
    pub(crate) is_open: bool,
    /// Whether a program worked whose tokens nobody sees.
    pub(crate) is_uncounted: bool,
}

impl Evidence {
    /// What the journal and the workspace say, and whoever drove the run.
    pub(crate) fn gather(
        journal: &RunJournal,
        summary: Option<&Summary>,
        before: Option<&Looks>,
        workspace: &Path,
        unrecorded: Unrecorded,
    ) -> Self {
        let mut evidence = Self::default();
        evidence.tampered = evidence.count_all(journal).unwrap_or_else(|it| Some(it.to_string()));
        if let Some(before) = before {
            let after = Looks::of(workspace);
            evidence.files_changed = before.changed(&after);
            evidence.files_cut = before.cut || after.cut;
        }
        if let Some(summary) = summary {
            // What a program without hooks did no guard has seen; its files are there all the same.
            let is_unseen = unrecorded.is_uncounted && !evidence.files_changed.is_empty();
            evidence.code_modified = summary.dirty_bits.code_modified || is_unseen;
            evidence.tests_run = summary.dirty_bits.tests_run;
            evidence.tests_passing = summary.dirty_bits.tests_passing;
            evidence.iterations_ended = summary.progress.iteration_count;
            evidence.iterations = evidence.iterations_ended + u64::from(unrecorded.is_open);
            evidence.steps = summary.steps;
            evidence.tokens = (summary.usage.input, summary.usage.output);
            let cost = summary.usage.cost_micros;
            evidence.tokens_unknown = unrecorded.is_uncounted;
            let is_known = summary.usage.unpriced + summary.usage.unknown == 0;
            evidence.cost_micros = (is_known && !unrecorded.is_uncounted).then_some(cost);
            evidence.elapsed_ms = summary.elapsed_ms;
        }
        evidence
    }

    /// Counts the verdicts of a journal; says what does not fit in it.
    fn count_all(&mut self, journal: &RunJournal) -> Result<Option<String>, StoreError> {
        let journal = journal.view()?;
        // Gates look at its end alone, so that its length does not matter; here all of it is
        // read anyway.
        let mut verifier = Verifier::new(journal.saved());
        let torn = journal.for_each(|line| {
            if verifier.line(line)
                && let Line::Event(record) = parse_record(line)?
            {
                self.count(record.as_record().verdict);
            }
            Ok::<_, StoreError>(())
        })?;
        let report = verifier.finish(torn);
        // Somebody else, such as a person with a word to say, may be writing just now.
        let first = report.findings.iter().find(|it| it.kind != FindingKind::Torn);
        Ok(first.map(|it| format!("record {}: {}", it.record, it.reason)))
    }

    fn count(&mut self, verdict: &jackline_engine::Verdict) {
        *self.verdicts.entry(verdict.decision.word().to_owned()).or_default() += 1;
        for violation in verdict.violations.iter().filter(|it| it.enforced) {
            *self.objections.entry(violation.subtype.to_string()).or_default() += 1;
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
    fn what_somebody_is_writing_is_no_tampering_and_what_was_changed_is() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("jackline.yaml");
        std::fs::write(&file, "version: 1\n").unwrap();
        let store = FileStore::new(place.path().join("home"), 0);
        let session = SessionId::parse("s").unwrap();
        let journal = RunJournal::new(store.clone(), session.clone());
        let host = HostAccess::of_machine(Some(store.home()));
        let definitions = Definitions::new(Some(file), host);
        let file = store.journal_file(&session);
        let runtime = Runtime::new(store, definitions, place.path().to_owned());
        let mut gate = Gate::new(runtime, session);
        assert!(gate.report(SessionEnded::default()).is_decision());
        drop(gate);
        let found =
            || Evidence::gather(&journal, None, None, place.path(), Unrecorded::default()).tampered;
        assert_eq!(found(), None);
        let mut log = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
        log.write_all(b"{\"v\":1,").unwrap();
        assert_eq!(found(), None, "half a record");
        log.write_all(b"}\n").unwrap();
        assert!(found().is_some(), "a whole one that is none");
    }
}
