//! Sessions that were guarded already: their facts and verdicts are on record.
//!
//! What was known then is known now, and what was refused then did not run. Only
//! what the other definition asks for, and nobody asked then, is undecidable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jackline_engine::observe::Observation;
use jackline_engine::{
    Definition, Event, EventKind, Facts, Payload, Record, Session, ToolFinished, observe,
};
use jackline_journal::{EventRecord, JournalView, Line, RecordError, Verifier, parse_record};

use super::judge::judge;
use super::went::went_as;
use super::{Backtest, BacktestRun, BacktestStep};
use jackline_runtime::{Fault, panic_text};

/// A journal at work: give it its lines in their order.
pub struct BacktestJournal {
    backtest: Backtest,
    /// Where the definitions are that the journal names; lines may come from elsewhere.
    definitions: Option<JournalView>,
    chain: Verifier,
    /// None before the line that opens the session.
    open: Option<Open>,
}

struct Open {
    run: BacktestRun,
    name: String,
    /// What it ran under at that time, where that can be read.
    recorded: Option<Arc<Definition>>,
}

impl BacktestJournal {
    /// Begins with a journal. Where the definitions that it names can't be read, answers that
    /// rest on them count as unknown.
    pub fn new(backtest: &Backtest, definitions: Option<JournalView>) -> Self {
        let (backtest, chain) = (backtest.clone(), Verifier::new(None));
        Self { backtest, definitions, chain, open: None }
    }

    /// The session, once its first line is read.
    pub fn name(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.name.as_str())
    }

    /// Decides on one line, given without its newline. One that is not what was
    /// written says so, and is passed over.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Result<BacktestStep, Fault>>, String> {
        if !self.chain.line(line) {
            return Err("it is not what was written; see `jackline verify`".to_owned());
        }
        let definitions = self.definitions.as_ref();
        let load = |digest: &_| definitions.and_then(|view| view.definition(digest).ok());
        match parse_record(line).map_err(|RecordError { reason, .. }| reason)? {
            Line::Opened(opened) => {
                let mut run = self.backtest.start();
                let definition = Arc::clone(&run.definition);
                run.session = Some(Session::new(definition, Arc::new(opened.place)));
                let recorded = load(&opened.definition.lowered.digest());
                self.open = Some(Open { run, name: opened.session.to_string(), recorded });
                Ok(None)
            }
            Line::Event(record) => match &mut self.open {
                Some(open) => {
                    if let Some(new) = record.as_record().reloads() {
                        open.recorded = load(&new.lowered.digest());
                    }
                    Ok(open.event(*record))
                }
                None => Err("it comes before the record that opens the session".to_owned()),
            },
        }
    }

    /// The run, unless its beginning was missing.
    pub fn finish(self) -> Option<BacktestRun> {
        self.open.map(|open| open.run)
    }
}

impl Open {
    fn event(&mut self, mut record: EventRecord) -> Option<Result<BacktestStep, Fault>> {
        // What people put in force then is not what is asked about now.
        record.facts.reload = None;
        let run = &mut self.run;
        let definition = &run.definition;
        let session = run.session.as_mut()?;
        let facts = facts(&record, self.recorded.as_deref(), definition);
        let judged = catch_unwind(AssertUnwindSafe(|| {
            session.ground().understand(&record.event, |understood| {
                let judged = judge(session, &record.event, understood, &facts);
                let verdict = went_as(&record.event, &record.verdict, definition, &judged);
                session.apply_on(understood, &Record { verdict: &verdict, ..record.as_record() });
                judged
            })
        }));
        Some(match judged {
            Ok(judged) => Ok(run.note(&record.event, judged)),
            Err(panic) => Err(Fault::Panic(panic_text(panic.as_ref()))),
        })
    }
}

/// What was known then, as the other definition may use it.
fn facts(record: &EventRecord, recorded: Option<&Definition>, definition: &Definition) -> Facts {
    let mut facts = record.facts.clone();
    // The question is what the definition says, not whether somebody listens.
    facts.off = None;
    facts.observed = seen(&record.event, &record.facts.observed);
    // Answers by number are answers to another question where the list is another.
    if recorded.is_none_or(|recorded| recorded.policies != definition.policies) {
        facts.policies.clear();
    }
    if recorded.is_none_or(|recorded| recorded.feedback != definition.feedback) {
        facts.feedback.clear();
    }
    if recorded.is_none_or(|recorded| recorded.completion != definition.completion) {
        facts.verifications.clear();
    }
    facts
}

/// What is to be seen of the payloads: an older engine may have looked for less.
/// Where they are not in the record any more, what was seen then holds.
fn seen(event: &Event, recorded: &Observation) -> Observation {
    let mut seen = observe(event);
    seen.args = recorded.args.or(seen.args);
    if let EventKind::ToolFinished(ToolFinished { result: Some(Payload::Elided { .. }), .. }) =
        &event.kind
    {
        seen.result.clone_from(&recorded.result);
    }
    seen
}
