//! Backtests of recorded sessions, whose facts and verdicts are in a journal.
//!
//! Recorded facts are used, and calls that were refused did not run. Only facts that the new
//! definition needs and that were not recorded are undecidable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jackline_engine::observe::Observation;
use jackline_engine::{
    Definition, Event, EventKind, Facts, Payload, Record, Session, ToolFinished, observe,
};
use jackline_journal::{
    EventRecord, JournalLine, JournalView, RecordError, Verifier, parse_record,
};

use super::judge::judge;
use super::recorded_course::recorded_course;
use super::{Backtest, BacktestRun, BacktestStep};
use jackline_runtime::{RuntimeFault, panic_text};

/// A backtest of one journal. The caller passes its lines in order.
pub struct BacktestJournal {
    backtest: Backtest,
    /// The source of the definitions that the journal refers to. The lines may come from another
    /// source.
    definitions: Option<JournalView>,
    chain: Verifier,
    /// `None` before the opening record.
    open_backtest: Option<OpenBacktest>,
}

struct OpenBacktest {
    run: BacktestRun,
    name: String,
    /// The definition at the time of recording, if it can be read.
    recorded: Option<Arc<Definition>>,
}

impl BacktestJournal {
    /// Starts a journal. If the recorded definitions can't be read, facts that depend on them count
    /// as unknown.
    pub fn new(backtest: &Backtest, definitions: Option<JournalView>) -> Self {
        let (backtest, chain) = (backtest.clone(), Verifier::new(None));
        Self { backtest, definitions, chain, open_backtest: None }
    }

    /// The session id, once the first line is read.
    pub fn name(&self) -> Option<&str> {
        self.open_backtest.as_ref().map(|open| open.name.as_str())
    }

    /// Decides on one line without its newline. A line that was changed gives an error and is
    /// skipped.
    pub fn line(
        &mut self,
        line: &[u8],
    ) -> Result<Option<Result<BacktestStep, RuntimeFault>>, String> {
        if !self.chain.check_line(line) {
            return Err(
                "the record was changed; check the journal with `jackline verify`".to_owned()
            );
        }
        let definitions = self.definitions.as_ref();
        let load = |digest: &_| definitions.and_then(|view| view.definition(digest).ok());
        match parse_record(line).map_err(|RecordError { reason, .. }| reason)? {
            JournalLine::Opened(opened) => {
                let mut run = self.backtest.start();
                let definition = Arc::clone(&run.definition);
                run.session = Some(Session::new(definition, Arc::new(opened.place)));
                let recorded = load(&opened.definition.lowered.digest());
                self.open_backtest =
                    Some(OpenBacktest { run, name: opened.session.to_string(), recorded });
                Ok(None)
            }
            JournalLine::Event(record) => match &mut self.open_backtest {
                Some(open) => {
                    if let Some(new) = record.as_record().reloaded_definition() {
                        open.recorded = load(&new.lowered.digest());
                    }
                    Ok(open.event(*record))
                }
                None => Err("it comes before the record that opens the session".to_owned()),
            },
        }
    }

    /// The run, unless its opening record was missing.
    pub fn finish(self) -> Option<BacktestRun> {
        self.open_backtest.map(|open| open.run)
    }
}

impl OpenBacktest {
    fn event(&mut self, mut record: EventRecord) -> Option<Result<BacktestStep, RuntimeFault>> {
        // A reload at the time of recording does not change the definition under test.
        record.facts.reload = None;
        let run = &mut self.run;
        let existing = run.existing_tools(&record.event);
        let definition = &run.definition;
        let session = run.session.as_mut()?;
        let mut facts = usable_facts(&record, self.recorded.as_deref(), definition);
        if facts.tools.is_empty() {
            facts.tools = existing;
        }
        let judged = catch_unwind(AssertUnwindSafe(|| {
            session.event_interpreter().with_interpreted(&record.event, |understood| {
                let judged = judge(session, &record.event, understood, &facts);
                let verdict = recorded_course(&record.event, &record.verdict, definition, &judged);
                session.apply_interpreted(
                    understood,
                    &Record { verdict: &verdict, ..record.as_record() },
                );
                judged
            })
        }));
        Some(match judged {
            Ok(judged) => Ok(run.add_to_outcome(&record.event, judged)),
            Err(panic) => Err(RuntimeFault::Panic(panic_text(panic.as_ref()))),
        })
    }
}

/// The recorded facts, as far as they apply to the definition under test.
fn usable_facts(
    record: &EventRecord,
    recorded: Option<&Definition>,
    definition: &Definition,
) -> Facts {
    let mut facts = record.facts.clone();
    // The backtest also decides on events during which the guard was off.
    facts.off = None;
    facts.observed = observe_again(&record.event, &record.facts.observed);
    // Facts by number belong to other questions if the lists differ.
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

/// Observes the payloads again, because an older engine may have observed less. If a payload is no
/// longer in the record, the recorded observation is used.
fn observe_again(event: &Event, recorded: &Observation) -> Observation {
    let mut seen = observe(event);
    seen.args = recorded.args.or(seen.args);
    if let EventKind::ToolFinished(ToolFinished { result: Some(Payload::Elided { .. }), .. }) =
        &event.kind
    {
        seen.result.clone_from(&recorded.result);
    }
    seen
}
