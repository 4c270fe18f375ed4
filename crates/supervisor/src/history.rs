//! What an earlier process of a run did, as the journal tells it: whose budgets are used up,
//! and how far scripts were played.
//!
//! A question is written down when it is answered. One that was under way when the process
//! ended was asked all the same, so it counts: what a budget has paid for does not come back.

use std::collections::BTreeMap;

use jackline_engine::event::{
    AttemptEnded, AttemptResult, AttemptStage, AttemptStarted, Control, ModelChanged, PromptSource,
    ReportedStage, Stage, UsageReported,
};
use jackline_engine::verdict::{GuardName, ViolationSubtype};
use jackline_engine::{Action, Decision, EventKind, PromptSubmitted, SessionStarted, Verdict};
use jackline_journal::{Line, StoreError, parse_record};

use crate::engines::{Chain, Reason};
use crate::run_journal::RunJournal;

/// What happened before, told record by record.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// How often models have answered, by their names.
    pub(crate) answered: BTreeMap<String, usize>,
    /// How often engines were asked, by their labels.
    pub(crate) asked: BTreeMap<String, u64>,
    /// How often advisors were asked.
    pub(crate) advised: u32,
    /// How often in a row a model was waited for.
    pub(crate) waits: u32,
    /// Whether the task was told to the guards.
    pub(crate) prompted: bool,
    /// The last attempt that was begun, by its number.
    pub(crate) attempts: u32,
    /// The last attempt that stays.
    pub(crate) kept: u32,
    /// Attempts that nobody has ended, by their numbers.
    pub(crate) open: Vec<u32>,
    /// Who works.
    current: String,
    /// Whether it is asked now, as far as anybody can know.
    asking: bool,
    held: Held,
    /// Whether a program runs: what it calls says nothing of questions.
    runs: bool,
}

/// Whether a session is held, and so whom it waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Held {
    #[default]
    No,
    /// It is stuck, so that an advisor is asked, where there is one.
    Stuck,
    /// For a person.
    Otherwise,
}

impl History {
    /// Reads the journal of a session; `chain` has not moved yet. Of one that can't be read
    /// to its end nobody knows what is used up.
    pub(crate) fn read(journal: &RunJournal, chain: &Chain) -> Result<Self, StoreError> {
        let mut history = Self { current: chain.label(), ..Self::default() };
        journal.view()?.for_each(|line| {
            if let Line::Event(record) = parse_record(line)? {
                let record = record.as_record();
                let is_usage = matches!(record.event.kind, EventKind::UsageReported(_));
                if is_usage && !record.event.actor.is_main() {
                    // That of an advisor, or of an agent of a program.
                    return Ok(());
                }
                let is_worker = chain.is_worker(&history.current);
                history.follow(&record.event.kind, record.verdict, is_worker);
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(history)
    }

    /// Takes over what a record says. Under an agent program most of them are those of its
    /// hooks, and say nothing of how often it was started.
    fn follow(&mut self, kind: &EventKind, verdict: &Verdict, is_worker: bool) {
        if verdict.is_enforced(Decision::Pause) {
            if self.held == Held::No {
                self.held = if is_stuck(verdict) { Held::Stuck } else { Held::Otherwise };
            }
            self.asking = false;
        }
        match kind {
            EventKind::AttemptStarted(AttemptStarted { attempt }) => {
                let number = number(attempt.as_str());
                self.attempts = self.attempts.max(number);
                if verdict.lets_run() {
                    self.open.push(number);
                    (self.runs, self.asking) = (false, self.goes());
                }
            }
            EventKind::AttemptStage(AttemptStage { stage, .. })
                if *stage == ReportedStage::Known(Stage::Generated) =>
            {
                self.runs = true;
            }
            EventKind::AttemptEnded(AttemptEnded { attempt, result }) => {
                let number = number(attempt.as_str());
                self.open.retain(|open| *open != number);
                if *result == AttemptResult::Commit {
                    self.kept = number;
                }
                (self.runs, self.asking) = (false, false);
            }
            EventKind::UsageReported(UsageReported { model, .. }) => {
                if let Some(model) = model {
                    *self.answered.entry(model.clone()).or_default() += 1;
                }
                self.waits = 0;
                if !is_worker {
                    self.count();
                    self.held = Held::No;
                }
            }
            EventKind::StopProposed(_) if is_worker && !is_checked(verdict) => self.count(),
            EventKind::ToolProposed(_) | EventKind::StopProposed(_) if !is_worker => {
                self.asking = false;
            }
            EventKind::SessionStarted(SessionStarted { client, .. })
                if client.as_deref() == Some(crate::run::CLIENT) =>
            {
                if self.asking {
                    self.count();
                }
                self.asking = self.goes();
                // Nobody knows more than that an advisor may have been asked.
                self.advised = self.advised.saturating_add(u32::from(self.held == Held::Stuck));
            }
            EventKind::ModelChanged(ModelChanged { from, to, reason }) => {
                if let Some(from) = from.as_ref().filter(|_| Reason::was_asked(reason.word())) {
                    *self.asked.entry(from.clone()).or_default() += 1;
                }
                if from.as_ref() == Some(to) {
                    self.waits = self.waits.saturating_add(1);
                }
                if !verdict.is_enforced(Decision::Deny) {
                    self.current.clone_from(to);
                    self.goes_on();
                }
            }
            EventKind::AdvisorAnswered(_) => {
                self.advised = self.advised.saturating_add(1);
                self.goes_on();
            }
            EventKind::Control(Control { action: Action::Reset, .. }) if verdict.lets_run() => {
                // Who opens a session anew gives everybody their budgets again.
                self.asked.clear();
                (self.advised, self.waits) = (0, 0);
                (self.held, self.asking) = (Held::No, false);
            }
            EventKind::Control(Control { action, .. }) if !action.closes() => {
                self.held = Held::No;
            }
            EventKind::IterationEnded(_) => {
                self.waits = 0;
                self.asking = self.goes();
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. }) => {
                self.prompted = true;
                self.asking |= !is_worker && !self.runs && self.goes();
            }
            EventKind::ToolFinished(_) | EventKind::PromptSubmitted(_)
                if !is_worker && !self.runs =>
            {
                self.asking = self.goes();
            }
            _ => {}
        }
    }

    /// Whether nobody holds it.
    fn goes(&self) -> bool {
        self.held == Held::No
    }

    /// Somebody gets the work out of where it was stuck, or did not have to.
    fn goes_on(&mut self) {
        (self.held, self.asking) = (Held::No, true);
    }

    fn count(&mut self) {
        *self.asked.entry(self.current.clone()).or_default() += 1;
        self.asking = false;
    }
}

/// The number of an attempt, as its id has it.
fn number(attempt: &str) -> u32 {
    attempt.trim_start_matches('a').parse().unwrap_or(0)
}

/// Whether a session is held because it goes in circles, or gets nowhere.
fn is_stuck(verdict: &Verdict) -> bool {
    let mut found = verdict.violations.iter();
    found.any(|it| it.enforced && matches!(it.guard, GuardName::Loops | GuardName::Progress))
}

/// How a session was begun: by which model, and in which role.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) model: Option<String>,
    pub(crate) role: Option<String>,
}

impl Begun {
    /// Reads the beginning of a session; none where it has no journal yet.
    pub(crate) fn read(journal: &RunJournal) -> Option<Self> {
        let journal = journal.view().ok()?;
        let mut begun = None;
        let _ = journal.for_each(|line| {
            if begun.is_none()
                && let Line::Event(record) = parse_record(line)?
                && let EventKind::SessionStarted(SessionStarted { client, model, role, .. }) =
                    &record.as_record().event.kind
                && client.as_deref() == Some(crate::run::CLIENT)
            {
                begun = Some(Self { model: model.clone(), role: role.clone() });
            }
            Ok::<_, StoreError>(())
        });
        begun
    }
}

/// Whether a stop has to be proposed again, because a check by command is at work.
fn is_checked(verdict: &Verdict) -> bool {
    verdict.violations.iter().any(|it| it.subtype == ViolationSubtype::VerificationRunning)
}

#[cfg(test)]
mod tests {
    use jackline_engine::event::ChangeReason;
    use jackline_engine::id::AttemptId;
    use jackline_engine::verdict::{Class, ViolationType};
    use jackline_engine::{Status, Violation};

    use super::*;
    use jackline_engine::event::{AdvisorAnswered, IterationEnded};
    use jackline_engine::{StopProposed, ToolFinished};

    fn started() -> EventKind {
        EventKind::SessionStarted(SessionStarted {
            client: Some(crate::run::CLIENT.to_owned()),
            ..SessionStarted::default()
        })
    }

    fn answer() -> EventKind {
        EventKind::UsageReported(UsageReported {
            model: Some("m".to_owned()),
            input: 1,
            output: 1,
            ..UsageReported::default()
        })
    }

    fn changed(reason: &str) -> EventKind {
        let reason = ChangeReason::parse(reason);
        EventKind::ModelChanged(ModelChanged {
            from: Some("a".to_owned()),
            to: "b".to_owned(),
            reason,
        })
    }

    fn stop() -> EventKind {
        EventKind::StopProposed(StopProposed::default())
    }

    fn iteration() -> EventKind {
        EventKind::IterationEnded(IterationEnded::default())
    }

    fn control(action: Action) -> EventKind {
        let (by, why, call, constraint) = (None, None, None, None);
        EventKind::Control(Control { action, by, why, call, constraint, ..Control::default() })
    }

    /// How often `a` and `b` were asked.
    fn asked(is_worker: bool, records: &[(EventKind, Decision)]) -> [u64; 2] {
        let mut history = History { current: "a".to_owned(), ..History::default() };
        for (kind, decision) in records {
            let mut verdict = Verdict::allow();
            verdict.decision = *decision;
            history.follow(kind, &verdict, is_worker);
        }
        ["a", "b"].map(|label| history.asked.get(label).copied().unwrap_or(0))
    }

    fn allowed(kinds: impl IntoIterator<Item = EventKind>) -> Vec<(EventKind, Decision)> {
        kinds.into_iter().map(|kind| (kind, Decision::Allow)).collect()
    }

    #[test]
    fn an_answer_is_a_question_and_so_is_a_failure_for_which_another_took_over() {
        assert_eq!(asked(false, &allowed([started(), answer(), answer()])), [2, 0]);
        let failed = [started(), answer(), changed("overload"), answer()];
        assert_eq!(asked(false, &allowed(failed)), [2, 1]);
        let stuck = [started(), answer(), changed("verification"), answer()];
        assert_eq!(asked(false, &allowed(stuck)), [1, 1]);
    }

    #[test]
    fn a_question_that_was_cut_off_counts_each_time() {
        assert_eq!(asked(false, &allowed([started(), started(), started()])), [2, 0]);
        assert_eq!(asked(false, &allowed([started(), answer(), started()])), [1, 0], "a command");
    }

    #[test]
    fn who_waits_for_a_person_asks_nobody() {
        let paused = (iteration(), Decision::Pause);
        let mut records = allowed([started(), answer()]);
        records.extend([paused, (control(Action::Acknowledge), Decision::Allow)]);
        records.push((started(), Decision::Allow));
        assert_eq!(asked(false, &records), [1, 0]);
        records.push((started(), Decision::Allow));
        assert_eq!(asked(false, &records), [2, 0], "and then it was asked");
    }

    /// What is known after so much.
    fn known(records: &[(EventKind, Verdict)]) -> History {
        let mut history = History { current: "a".to_owned(), ..History::default() };
        for (kind, verdict) in records {
            history.follow(kind, verdict, false);
        }
        history
    }

    #[test]
    fn an_advisor_that_was_cut_off_has_been_asked() {
        let mut stuck = Verdict::allow();
        (stuck.decision, stuck.enforced) = (Decision::Pause, Some(true));
        stuck.violations.push(Violation {
            id: String::new(),
            guard: GuardName::Loops,
            kind: ViolationType::Loop,
            subtype: ViolationSubtype::Repeat,
            class: Class::Recoverable,
            message: String::new(),
            location: None,
            correction: None,
            decision: Decision::Pause,
            enforced: true,
        });
        let fine = Verdict::allow;
        let mut records = vec![(started(), fine()), (iteration(), stuck), (started(), fine())];
        assert_eq!(known(&records).advised, 1);
        let error = Some(jackline_engine::Payload::Inline("no".to_owned()));
        let (model, instruction) = (None, None);
        records.insert(
            2,
            (EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }), fine()),
        );
        assert_eq!(known(&records).advised, 1, "it has answered");
        records.push((control(Action::Reset), fine()));
        let reset = known(&records);
        assert_eq!((reset.advised, reset.asked.len()), (0, 0));
    }

    #[test]
    fn waits_are_counted_until_somebody_answers() {
        let wait = || {
            let (from, to) = (Some("a".to_owned()), "a".to_owned());
            (
                EventKind::ModelChanged(ModelChanged { from, to, reason: ChangeReason::PlanLimit }),
                Verdict::allow(),
            )
        };
        let mut records = vec![(started(), Verdict::allow()), wait(), wait()];
        assert_eq!(known(&records).waits, 2);
        records.push((answer(), Verdict::allow()));
        assert_eq!(known(&records).waits, 0);
    }

    #[test]
    fn a_program_that_calls_tools_asks_nobody_and_what_it_left_open_is_known() {
        let attempt = |name: &str| AttemptId::parse(name).unwrap();
        let begun = |name| EventKind::AttemptStarted(AttemptStarted { attempt: attempt(name) });
        let stage = |name, stage: &str| {
            EventKind::AttemptStage(AttemptStage {
                attempt: attempt(name),
                stage: ReportedStage::parse(stage),
            })
        };
        let called = || {
            EventKind::ToolFinished(ToolFinished { status: Status::Ok, ..ToolFinished::default() })
        };
        let ended = |name| {
            EventKind::AttemptEnded(AttemptEnded {
                attempt: attempt(name),
                result: AttemptResult::Rollback,
            })
        };
        let mut records = allowed([started(), begun("a1"), answer(), stage("a1", "generated")]);
        records.extend(allowed([called(), ended("a1"), begun("a2"), answer()]));
        records.extend(allowed([stage("a2", "generated"), called(), started()]));
        assert_eq!(asked(false, &records), [2, 0], "killed while it ran");
        records.extend(allowed([begun("a3"), started()]));
        assert_eq!(asked(false, &records), [3, 0], "and while it was written");
        let mut history = History::default();
        for (kind, _) in &records {
            history.follow(kind, &Verdict::allow(), false);
        }
        assert_eq!((history.attempts, history.kept, history.open), (3, 0, vec![2, 3]));
    }

    #[test]
    fn an_agent_program_is_counted_by_its_starts() {
        let kinds = [started(), answer(), answer(), stop(), iteration(), answer(), started()];
        assert_eq!(asked(true, &allowed(kinds)), [2, 0]);
    }
}
