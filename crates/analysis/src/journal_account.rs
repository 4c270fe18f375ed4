//! Summarises a journal from its records alone, for exports, for attestations, and for checking
//! both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jackline_engine::event::UsageReported;
use jackline_engine::facts::ReloadFact;
use jackline_engine::trajectory::{TrajectoryRecorder, TrajectoryStep};
use jackline_engine::verdict::CompletionResult;
use jackline_engine::{Digest, EventKind, Session, SessionStarted, Timestamp, Verdict};
use jackline_journal::{
    EventRecord, Export, JournalLine, JournalView, OpeningRecord, ReadMode, SessionEntry, Store,
    StoreError, Verifier, VerifyReport,
};
use serde::{Deserialize, Serialize};

/// The summary of a journal.
pub struct JournalAccount {
    /// The opening of the session.
    pub opening: OpeningRecord,
    /// The session after its last record.
    pub session: Session,
    /// The steps of the session.
    pub trajectory: Vec<TrajectoryStep>,
    /// The first reported model.
    pub model: Option<String>,
    /// The hash of the system prompt, if the client provides it.
    pub prompt_hash: Option<String>,
    /// The number of verdicts by kind.
    pub verdicts: VerdictCounts,
    /// The result of the last completion check.
    pub completion: Option<CompletionResult>,
    /// The time of the last record.
    pub ended: Timestamp,
    /// The version and the semantics version of the engine that wrote the last record.
    pub engine: (String, u32),
    /// The result of checking the hash chain, which has no problems.
    pub chain: VerifyReport,
    /// The SHA-256 of all bytes of the journal.
    pub sha256: Digest,
}

/// The number of verdicts by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictCounts {
    /// Enforced verdicts, by decision.
    pub decisions: BTreeMap<String, u64>,
    /// Verdicts that were only observed, by decision.
    pub observed: BTreeMap<String, u64>,
    /// Violations, by guard.
    pub guards: BTreeMap<String, u64>,
}

/// Why a journal can't be summarised.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The journal can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal was changed.
    #[error("the journal was changed: record {}: {}", .0.record, .0.reason)]
    Changed(jackline_journal::JournalProblem),
}

impl AccountError {
    /// The action that may help, for a person.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Store(error) => error.remedy(),
            Self::Changed(_) => "check it with `jackline verify`",
        }
    }
}

/// A summary while the journal is read.
struct AccountBuilder {
    opened: OpeningRecord,
    session: Session,
    trajectory: TrajectoryRecorder,
    model: Option<String>,
    prompt_hash: Option<String>,
    verdicts: VerdictCounts,
    completion: Option<CompletionResult>,
    ended: Timestamp,
    engine: (String, u32),
}

impl JournalAccount {
    /// Summarises an unchanged journal. An incomplete last record was never answered, so it does
    /// not count.
    pub fn from_journal(journal: &JournalView) -> Result<Self, AccountError> {
        let mut chain = Verifier::new(journal.saved_head());
        let mut bytes = Digest::hasher();
        let mut sum: Option<AccountBuilder> = None;
        journal.for_each(|line| {
            if !chain.check_line(line) {
                return Ok(());
            }
            bytes.update(line);
            bytes.update(b"\n");
            match (journal.parse(line)?, &mut sum) {
                (JournalLine::Opened(opened), None) => sum = Some(AccountBuilder::new(*opened)?),
                (JournalLine::Event(record), Some(sum)) => sum.add(&record),
                _ => {}
            }
            Ok::<(), AccountError>(())
        })?;
        let chain = chain.finish(0);
        if let Some(finding) = chain.findings.first() {
            return Err(AccountError::Changed(finding.clone()));
        }
        let sum = sum.ok_or(StoreError::Empty)?;
        Ok(Self {
            trajectory: sum.trajectory.finish(&sum.session),
            opening: sum.opened,
            session: sum.session,
            model: sum.model,
            prompt_hash: sum.prompt_hash,
            verdicts: sum.verdicts,
            completion: sum.completion,
            ended: sum.ended,
            engine: sum.engine,
            chain,
            sha256: bytes.finish(),
        })
    }

    /// The checksum of the definition in force.
    pub fn checksum(&self) -> Digest {
        self.session.reloaded_checksum().unwrap_or(self.opening.definition.checksum)
    }
}

impl AccountBuilder {
    fn new(opened: OpeningRecord) -> Result<Self, StoreError> {
        let digest = opened.definition.lowered.digest();
        let definition = opened.definition.lowered.definition().cloned();
        let definition = definition.ok_or(StoreError::DefinitionMissing { digest })?;
        Ok(Self {
            session: Session::new(definition, Arc::new(opened.place.clone())),
            trajectory: TrajectoryRecorder::default(),
            model: None,
            prompt_hash: None,
            verdicts: VerdictCounts::default(),
            completion: None,
            ended: opened.at,
            engine: (String::new(), 0),
            opened,
        })
    }

    fn add(&mut self, record: &EventRecord) {
        match &record.event.kind {
            EventKind::SessionStarted(SessionStarted { model, prompt_hash, .. }) => {
                set_if_none(&mut self.model, model.as_ref());
                set_if_none(&mut self.prompt_hash, prompt_hash.as_ref());
            }
            EventKind::UsageReported(UsageReported { model, .. }) => {
                set_if_none(&mut self.model, model.as_ref());
            }
            _ => {}
        }
        self.verdicts.add(&record.verdict);
        if let Some(completion) = &record.verdict.completion {
            self.completion = Some(completion.clone());
        }
        self.ended = record.event.at.unwrap_or(record.facts.now.wall);
        self.engine = (record.engine.clone(), record.semantics);
        let (session, trajectory) = (&mut self.session, &mut self.trajectory);
        session.event_interpreter().with_interpreted(&record.event, |understood| {
            trajectory.record(session, understood, &record.as_record());
            session.apply_interpreted(understood, &record.as_record());
        });
    }
}

/// Sets a value if none is known yet.
fn set_if_none(value: &mut Option<String>, reported: Option<&String>) {
    if value.is_none() {
        *value = reported.cloned();
    }
}

impl VerdictCounts {
    fn add(&mut self, verdict: &Verdict) {
        let is_enforced = verdict.enforced != Some(false);
        let counts = if is_enforced { &mut self.decisions } else { &mut self.observed };
        *counts.entry(verdict.decision.as_str().to_owned()).or_default() += 1;
        for violation in &verdict.violations {
            *self.guards.entry(violation.guard.to_string()).or_default() += 1;
        }
    }
}

/// The export of a session, and the number of its steps.
pub fn export_session(
    store: &dyn Store,
    entry: &SessionEntry,
) -> Result<(Export, u64), AccountError> {
    let journal = store.view(entry, ReadMode::Consistent)?;
    let account = JournalAccount::from_journal(&journal)?;
    let (mut lines, mut digests) = (Vec::new(), BTreeSet::new());
    journal.for_each(|line| {
        lines.push(String::from_utf8_lossy(line).into_owned());
        match journal.parse(line)? {
            JournalLine::Opened(opened) => drop(digests.insert(opened.definition.lowered.digest())),
            JournalLine::Event(record) => {
                if let Some(ReloadFact::New(new)) = &record.facts.reload {
                    digests.insert(new.lowered.digest());
                }
            }
        }
        Ok::<(), StoreError>(())
    })?;
    let steps = account.session.summary().steps;
    let mut export = Export::new(account.opening.session, account.trajectory, lines);
    export.model_version = account.model;
    export.prompt_hash = account.prompt_hash;
    for digest in digests {
        let stored = journal.stored_form(&digest)?;
        let stored = stored.ok_or(StoreError::DefinitionMissing { digest })?;
        export.stored_definitions.insert(digest, String::from_utf8_lossy(&stored).into_owned());
    }
    Ok((export, steps))
}

/// The fields of an export that do not match its journal. The list is empty if all match, or if the
/// journal is not from an export.
pub fn find_export_mismatches(journal: &JournalView) -> Result<Vec<(u64, String)>, AccountError> {
    let Some(export) = journal.export() else { return Ok(Vec::new()) };
    let account = JournalAccount::from_journal(journal)?;
    let mut misfits = Vec::new();
    let mut differs = |what: &str, same: bool| {
        if !same {
            misfits
                .push((0, format!("the field `{what}` of the export does not match the journal")));
        }
    };
    differs("session_id", export.session_id == account.opening.session);
    differs("model_version", export.model_version == account.model);
    differs("prompt_hash", export.prompt_hash == account.prompt_hash);
    let both = export.trajectory.iter().zip(&account.trajectory);
    let same = both.take_while(|(exported, computed)| exported == computed).count();
    if same < export.trajectory.len().max(account.trajectory.len()) {
        let record = account.trajectory.get(same).map_or(account.chain.records, |it| it.record);
        let by = format!("engine {}, semantics {}", export.engine, export.semantics);
        let reason = format!(
            "step {} of the trajectory does not match the journal (exported by {by})",
            same + 1
        );
        misfits.push((record, reason));
    }
    Ok(misfits)
}
