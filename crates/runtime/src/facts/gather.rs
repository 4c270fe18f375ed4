//! Asks a source until the engine has no more queries.

use jackline_engine::facts::{FileDetails, FileFact, FileKind, ROUNDS_MAX, ReloadFact};
use jackline_engine::session::InterpretedEvent;
use jackline_engine::{Fact, Facts, Query, Session};

use super::{FactContext, FactDeadline, FactError, FactSource, LocalMachine};
use crate::definitions::DefinitionError;
use crate::extensions::Extensions;

/// The default time limit for all facts of one decision.
const FACTS_MS_MAX: u64 = 60_000;

/// The sources of facts of a runtime.
#[derive(Default)]
pub(crate) struct FactSources {
    /// Extensions written in Rust.
    pub(crate) extensions: Extensions,
    pub(crate) machine: LocalMachine,
    /// A source that answers instead of this machine.
    pub(crate) replacement: Option<Box<dyn FactSource>>,
    /// The time limit for one decision, if it is not the default.
    pub(crate) limit_ms: Option<u64>,
}

impl FactSources {
    /// The deadline of a decision that begins now.
    pub(crate) fn deadline(&self) -> FactDeadline {
        FactDeadline::within(self.limit_ms.unwrap_or(FACTS_MS_MAX))
    }

    /// Checks the files again, because they may have changed while another process had the session
    /// locked. A file with the same stamp is not read again.
    pub(crate) fn recheck(
        &mut self,
        scene: &FactContext<'_>,
        facts: &mut Facts,
        deadline: FactDeadline,
    ) -> Result<(), FactError> {
        let ask = |path: &String, wants| Query::File { path: path.clone(), wants };
        let all: Vec<Query> =
            facts.files.keys().map(|path| ask(path, FileDetails::default())).collect();
        let mut now = Facts::at(facts.now.clone());
        self.learn(scene, &all, &mut now, deadline)?;
        let differs = |(path, was): &(&String, &FileFact)| {
            let is = now.files.get(*path);
            is.is_none_or(|is| (is.kind, is.stamp, &is.real) != (was.kind, was.stamp, &was.real))
        };
        let changed = facts.files.iter().filter(differs);
        let changed: Vec<Query> =
            changed.map(|(path, was)| ask(path, wants_to_repeat(was))).collect();
        self.learn(scene, &changed, facts, deadline)
    }

    /// Asks one batch and stores the answers.
    fn learn(
        &mut self,
        scene: &FactContext<'_>,
        batch: &[Query],
        facts: &mut Facts,
        deadline: FactDeadline,
    ) -> Result<(), FactError> {
        if batch.is_empty() {
            return Ok(());
        }
        let answers = self.answer(scene, batch, deadline)?;
        learn(batch, answers, facts)
    }
}

impl FactSource for FactSources {
    fn answer(
        &mut self,
        scene: &FactContext<'_>,
        queries: &[Query],
        deadline: FactDeadline,
    ) -> Result<Vec<Fact>, FactError> {
        let machine: &mut dyn FactSource = match &mut self.replacement {
            Some(source) => source.as_mut(),
            None => &mut self.machine,
        };
        let is_custom = |query: &Query| Extensions::handles(query);
        let mut answers = if queries.iter().any(is_custom) {
            let (custom, others): (Vec<Query>, Vec<Query>) =
                queries.iter().cloned().partition(is_custom);
            let custom_facts = answer_in_time(&mut self.extensions, scene, &custom, deadline)?;
            let other_facts = if others.is_empty() {
                Vec::new()
            } else {
                answer_in_time(machine, scene, &others, deadline)?
            };
            in_order(queries, custom_facts, other_facts)
        } else {
            answer_in_time(machine, scene, queries, deadline)?
        };
        answers.iter_mut().for_each(|fact| refuse_unnamed(&self.extensions, fact));
        Ok(answers)
    }
}

/// Asks a source, and rejects answers that are late or incomplete.
fn answer_in_time(
    source: &mut dyn FactSource,
    scene: &FactContext<'_>,
    queries: &[Query],
    deadline: FactDeadline,
) -> Result<Vec<Fact>, FactError> {
    let answers = source.answer(scene, queries, deadline)?;
    deadline.check()?;
    if answers.len() != queries.len() {
        return Err(FactError::Count { queries: queries.len(), answers: answers.len() });
    }
    Ok(answers)
}

/// Puts the answers of two sources into the order of the queries.
fn in_order(queries: &[Query], custom: Vec<Fact>, others: Vec<Fact>) -> Vec<Fact> {
    let (mut custom, mut others) = (custom.into_iter(), others.into_iter());
    let next = |query: &Query| {
        if Extensions::handles(query) { custom.next() } else { others.next() }
    };
    queries.iter().filter_map(next).collect()
}

/// Rejects a new definition that does not name a registered extension, because that extension would
/// never be asked.
fn refuse_unnamed(custom: &Extensions, fact: &mut Fact) {
    if let Fact::Reload(ReloadFact::New(new)) = fact
        && let Some(lowered) = new.lowered.definition()
        && let Some(name) = custom.first_unnamed(lowered)
    {
        let reason = DefinitionError::UnusedExtension(name.to_owned()).brief();
        *fact = Fact::Reload(ReloadFact::Broken { reason });
    }
}

/// Asks until no query is open, for a bounded number of rounds.
pub(crate) fn gather(
    session: &Session,
    understood: &InterpretedEvent<'_>,
    facts: &mut Facts,
    mut ask: impl FnMut(&[Query]) -> Result<Vec<Fact>, FactError>,
) -> Result<(), FactError> {
    for _ in 0..ROUNDS_MAX {
        let batch = session.needs_for(understood, facts).into_batch(facts);
        if batch.is_empty() {
            break;
        }
        learn(&batch, ask(&batch)?, facts)?;
    }
    Ok(())
}

fn learn(batch: &[Query], answers: Vec<Fact>, facts: &mut Facts) -> Result<(), FactError> {
    if answers.len() != batch.len() {
        return Err(FactError::Count { queries: batch.len(), answers: answers.len() });
    }
    for (query, fact) in batch.iter().zip(answers) {
        facts.add_answer(query, fact)?;
    }
    Ok(())
}

/// The facts to request again for a file. If the file was missing, its fact does not show which
/// parts were requested, so this requests all of them.
fn wants_to_repeat(fact: &FileFact) -> FileDetails {
    match fact.kind {
        FileKind::File => FileDetails::contained_in(fact),
        _ => FileDetails { json: true, contents: true, declares_tests: true },
    }
}
