//! Asks a source until the engine has no more queries.

use jackline_engine::facts::{FileFact, FileKind, ROUNDS_MAX, ReloadFact, Wants};
use jackline_engine::session::Understood;
use jackline_engine::{Fact, Facts, Query, Session};

use super::{Deadline, FactError, FactSource, Machine, Scene};
use crate::definitions::DefinitionError;
use crate::extensions::Extensions;

/// How long the sources of facts may take for one decision.
const ANSWER_MS_MAX: u64 = 60_000;

/// Where a runtime gets its facts from.
#[derive(Default)]
pub(crate) struct FactSources {
    /// Guards written in Rust.
    pub(crate) custom: Extensions,
    pub(crate) machine: Machine,
    /// Answers what this machine would answer.
    pub(crate) instead: Option<Box<dyn FactSource>>,
    /// How long they may take for one decision, where that is not the usual.
    pub(crate) limit_ms: Option<u64>,
}

impl FactSources {
    /// The deadline of a decision that begins now.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::within(self.limit_ms.unwrap_or(ANSWER_MS_MAX))
    }

    /// Looks again at the files, which may have changed while the session was locked by
    /// another process. A file that looks the same is not read again.
    pub(crate) fn recheck(
        &mut self,
        scene: &Scene<'_>,
        facts: &mut Facts,
        deadline: Deadline,
    ) -> Result<(), FactError> {
        let ask = |path: &String, wants| Query::File { path: path.clone(), wants };
        let all: Vec<Query> = facts.files.keys().map(|path| ask(path, Wants::default())).collect();
        let mut now = Facts::at(facts.now.clone());
        self.learn(scene, &all, &mut now, deadline)?;
        let differs = |(path, was): &(&String, &FileFact)| {
            let is = now.files.get(*path);
            is.is_none_or(|is| (is.kind, is.look, &is.real) != (was.kind, was.look, &was.real))
        };
        let changed = facts.files.iter().filter(differs);
        let changed: Vec<Query> = changed.map(|(path, was)| ask(path, wanted(was))).collect();
        self.learn(scene, &changed, facts, deadline)
    }

    /// Asks one batch and takes the answers.
    fn learn(
        &mut self,
        scene: &Scene<'_>,
        batch: &[Query],
        facts: &mut Facts,
        deadline: Deadline,
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
        scene: &Scene<'_>,
        queries: &[Query],
        deadline: Deadline,
    ) -> Result<Vec<Fact>, FactError> {
        let machine: &mut dyn FactSource = match &mut self.instead {
            Some(source) => source.as_mut(),
            None => &mut self.machine,
        };
        let is_custom = |query: &Query| Extensions::answers(query);
        let mut answers = if queries.iter().any(is_custom) {
            let (custom, others): (Vec<Query>, Vec<Query>) =
                queries.iter().cloned().partition(is_custom);
            let custom_facts = timely(&mut self.custom, scene, &custom, deadline)?;
            let other_facts = if others.is_empty() {
                Vec::new()
            } else {
                timely(machine, scene, &others, deadline)?
            };
            in_order(queries, custom_facts, other_facts)
        } else {
            timely(machine, scene, queries, deadline)?
        };
        answers.iter_mut().for_each(|fact| refuse_unnamed(&self.custom, fact));
        Ok(answers)
    }
}

/// Has a source answer, and takes nothing that comes late or is not complete.
fn timely(
    source: &mut dyn FactSource,
    scene: &Scene<'_>,
    queries: &[Query],
    deadline: Deadline,
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
        if Extensions::answers(query) { custom.next() } else { others.next() }
    };
    queries.iter().filter_map(next).collect()
}

/// A definition that does not name a registered guard can't come into force: that guard would
/// never be asked.
fn refuse_unnamed(custom: &Extensions, fact: &mut Fact) {
    if let Fact::Reload(ReloadFact::New(new)) = fact
        && let Some(lowered) = new.lowered.definition()
        && let Some(name) = custom.unnamed(lowered)
    {
        let reason = DefinitionError::NeverAsked(name.to_owned()).brief();
        *fact = Fact::Reload(ReloadFact::Broken { reason });
    }
}

/// Asks until no query is open, for a bounded number of rounds.
pub(crate) fn gather(
    session: &Session,
    understood: &Understood<'_>,
    facts: &mut Facts,
    mut ask: impl FnMut(&[Query]) -> Result<Vec<Fact>, FactError>,
) -> Result<(), FactError> {
    for _ in 0..ROUNDS_MAX {
        let batch = session.needs_of(understood, facts).batch(facts);
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
        facts.learn(query, fact)?;
    }
    Ok(())
}

/// What was wanted of a file. Of one that was not there this is not known any more, so it is
/// everything.
fn wanted(fact: &FileFact) -> Wants {
    match fact.kind {
        FileKind::File => Wants::told_by(fact),
        _ => Wants { json: true, contents: true },
    }
}
