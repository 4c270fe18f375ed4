//! What a journal adds up to, worked out from its records alone: for exports, for
//! attestations, and for whoever checks one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jackline_engine::event::UsageReported;
use jackline_engine::facts::ReloadFact;
use jackline_engine::trajectory::{Step, Trajectory};
use jackline_engine::verdict::Completion;
use jackline_engine::{Digest, EventKind, Session, SessionStarted, Timestamp, Verdict};
use jackline_journal::{
    EventRecord, Export, JournalView, Line, Opened, Reading, Report, SessionEntry, Store,
    StoreError, Verifier,
};
use serde::{Deserialize, Serialize};

/// What a journal adds up to.
pub struct Account {
    /// What the session was opened with.
    pub opened: Opened,
    /// The session as its last record leaves it.
    pub session: Session,
    /// What it did.
    pub trajectory: Vec<Step>,
    /// The first model that anybody told of.
    pub model: Option<String>,
    /// The hash of the system prompt, where the client shows it.
    pub prompt_hash: Option<String>,
    /// How often was decided what.
    pub verdicts: Verdicts,
    /// What became of the last completion check.
    pub completion: Option<Completion>,
    /// The time of the last record.
    pub ended: Timestamp,
    /// The engine that wrote the last record, and what its verdicts mean.
    pub engine: (String, u32),
    /// The chain, which is whole.
    pub chain: Report,
    /// The sha256 of all of its bytes.
    pub sha256: Digest,
}

/// How often was decided what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdicts {
    /// What held, by decision.
    pub decisions: BTreeMap<String, u64>,
    /// What would have been decided and was only observed.
    pub observed: BTreeMap<String, u64>,
    /// Objections, by the guard.
    pub guards: BTreeMap<String, u64>,
}

/// Why a journal adds up to nothing.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// It can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not what was written.
    #[error("the journal is not what was written: record {}, {}", .0.record, .0.reason)]
    NotWhole(jackline_journal::Finding),
}

impl AccountError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Store(error) => error.remedy(),
            Self::NotWhole(_) => "look at it with `jackline verify`",
        }
    }
}

/// An account at work.
struct Sum {
    opened: Opened,
    session: Session,
    trajectory: Trajectory,
    model: Option<String>,
    prompt_hash: Option<String>,
    verdicts: Verdicts,
    completion: Option<Completion>,
    ended: Timestamp,
    engine: (String, u32),
}

impl Account {
    /// Adds up a journal that is whole. A record that was being written when its machine
    /// stopped was never answered, and does not count.
    pub fn of(journal: &JournalView) -> Result<Self, AccountError> {
        let mut chain = Verifier::new(journal.saved());
        let mut bytes = Digest::hasher();
        let mut sum: Option<Sum> = None;
        journal.for_each(|line| {
            if !chain.line(line) {
                return Ok(());
            }
            bytes.update(line);
            bytes.update(b"\n");
            match (journal.parse(line)?, &mut sum) {
                (Line::Opened(opened), None) => sum = Some(Sum::new(*opened)?),
                (Line::Event(record), Some(sum)) => sum.add(&record),
                _ => {}
            }
            Ok::<(), AccountError>(())
        })?;
        let chain = chain.finish(0);
        if let Some(finding) = chain.findings.first() {
            return Err(AccountError::NotWhole(finding.clone()));
        }
        let sum = sum.ok_or(StoreError::Unopened)?;
        Ok(Self {
            trajectory: sum.trajectory.finish(&sum.session),
            opened: sum.opened,
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
        self.session.reloaded().unwrap_or(self.opened.definition.checksum)
    }
}

impl Sum {
    fn new(opened: Opened) -> Result<Self, StoreError> {
        let digest = opened.definition.lowered.digest();
        let definition = opened.definition.lowered.definition().cloned();
        let definition = definition.ok_or(StoreError::DefinitionMissing { digest })?;
        Ok(Self {
            session: Session::new(definition, Arc::new(opened.place.clone())),
            trajectory: Trajectory::default(),
            model: None,
            prompt_hash: None,
            verdicts: Verdicts::default(),
            completion: None,
            ended: opened.at,
            engine: (String::new(), 0),
            opened,
        })
    }

    fn add(&mut self, record: &EventRecord) {
        match &record.event.kind {
            EventKind::SessionStarted(SessionStarted { model, prompt_hash, .. }) => {
                first(&mut self.model, model.as_ref());
                first(&mut self.prompt_hash, prompt_hash.as_ref());
            }
            EventKind::UsageReported(UsageReported { model, .. }) => {
                first(&mut self.model, model.as_ref());
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
        session.ground().understand(&record.event, |understood| {
            trajectory.record(session, understood, &record.as_record());
            session.apply_on(understood, &record.as_record());
        });
    }
}

/// What is said first holds.
fn first(known: &mut Option<String>, said: Option<&String>) {
    if known.is_none() {
        *known = said.cloned();
    }
}

impl Verdicts {
    fn add(&mut self, verdict: &Verdict) {
        let held = verdict.enforced != Some(false);
        let counts = if held { &mut self.decisions } else { &mut self.observed };
        *counts.entry(verdict.decision.word().to_owned()).or_default() += 1;
        for violation in &verdict.violations {
            *self.guards.entry(violation.guard.to_string()).or_default() += 1;
        }
    }
}

/// A session in one file, and how many steps it took.
pub fn export(store: &dyn Store, entry: &SessionEntry) -> Result<(Export, u64), AccountError> {
    let journal = store.view(entry, Reading::Consistent)?;
    let account = Account::of(&journal)?;
    let (mut lines, mut digests) = (Vec::new(), BTreeSet::new());
    journal.for_each(|line| {
        lines.push(String::from_utf8_lossy(line).into_owned());
        match journal.parse(line)? {
            Line::Opened(opened) => drop(digests.insert(opened.definition.lowered.digest())),
            Line::Event(record) => {
                if let Some(ReloadFact::New(new)) = &record.facts.reload {
                    digests.insert(new.lowered.digest());
                }
            }
        }
        Ok::<(), StoreError>(())
    })?;
    let steps = account.session.summary().steps;
    let mut export = Export::new(account.opened.session, account.trajectory, lines);
    export.model_version = account.model;
    export.prompt_hash = account.prompt_hash;
    for digest in digests {
        let stored = journal.stored_form(&digest)?;
        let stored = stored.ok_or(StoreError::DefinitionMissing { digest })?;
        export.stored_definitions.insert(digest, String::from_utf8_lossy(&stored).into_owned());
    }
    Ok((export, steps))
}

/// What an export says beside its journal and the journal does not: none where all of it
/// fits, or where the journal is no export.
pub fn misfits(journal: &JournalView) -> Result<Vec<(u64, String)>, AccountError> {
    let Some(export) = journal.export() else { return Ok(Vec::new()) };
    let account = Account::of(journal)?;
    let mut misfits = Vec::new();
    let mut differs = |what: &str, same: bool| {
        if !same {
            misfits.push((0, format!("`{what}` of the export is not what the journal says")));
        }
    };
    differs("session_id", export.session_id == account.opened.session);
    differs("model_version", export.model_version == account.model);
    differs("prompt_hash", export.prompt_hash == account.prompt_hash);
    let both = export.trajectory.iter().zip(&account.trajectory);
    let same = both.take_while(|(said, told)| said == told).count();
    if same < export.trajectory.len().max(account.trajectory.len()) {
        let record = account.trajectory.get(same).map_or(account.chain.records, |it| it.record);
        let by = format!("engine {}, semantics {}", export.engine, export.semantics);
        let reason = format!(
            "action {} of the trajectory does not fit the journal (made by {by})",
            same + 1
        );
        misfits.push((record, reason));
    }
    Ok(misfits)
}
