//! What earlier processes of a run did, read from the journal: used budgets, and how far scripts
//! were played.
//!
//! The journal records a question when it is answered. A question that was open when the process
//! ended counts too, because the provider may have charged for it.

use std::collections::BTreeMap;

use jackline_engine::event::{
    AttemptEnded, AttemptResult, AttemptStage, AttemptStarted, Control, ModelChanged, PromptSource,
    ReportedStage, Stage, UsageReported,
};
use jackline_engine::verdict::{GuardName, ViolationSubtype};
use jackline_engine::{
    ControlAction, Decision, EventKind, PromptSubmitted, SessionStarted, Verdict,
};
use jackline_journal::{JournalLine, StoreError, parse_record};

use crate::engines::{EngineChain, EngineChangeReason, FirstEngine};
use crate::run_journal::RunJournal;

/// The state of earlier processes, built record by record.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    /// How many answers each model gave, by model name.
    pub(crate) answered: BTreeMap<String, usize>,
    /// How many questions each engine got, by label.
    pub(crate) questions: BTreeMap<String, u64>,
    /// How many questions to an advisor were interrupted, so that the journal has no answer.
    pub(crate) interrupted_questions: u32,
    /// Whether the first engine was left because it was stuck.
    pub(crate) first_engine: FirstEngine,
    /// How many times in a row the run waited for a model.
    pub(crate) waits: u32,
    /// Whether the guards have seen the prompt of the task.
    pub(crate) has_prompt: bool,
    /// The number of the last attempt that was started.
    pub(crate) last_attempt: u32,
    /// The number of the last attempt that was committed.
    pub(crate) last_committed: u32,
    /// The numbers of attempts that have no end in the journal.
    pub(crate) open_attempts: Vec<u32>,
    /// The label of the first engine, and of the one that works.
    first: String,
    current: String,
    /// Whether that engine probably has an open question.
    has_open_question: bool,
    pause: PauseKind,
    /// Whether a program is running: its tool calls do not show that the engine was asked.
    is_program_running: bool,
}

/// Whether a session is paused, and who can resume it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PauseKind {
    #[default]
    None,
    /// The agent is stuck. An advisor is asked, if there is one.
    Stuck,
    /// The session waits for a person.
    ForPerson,
}

impl RunHistory {
    /// Reads the journal of a session. `chain` must still be at its first engine. Fails if the
    /// journal can't be read to its end, because the used budgets are not certain then.
    pub(crate) fn read(journal: &RunJournal, chain: &EngineChain) -> Result<Self, StoreError> {
        let (first, current) = (chain.label(), chain.label());
        let mut history = Self { first, current, ..Self::default() };
        journal.view()?.for_each(|line| {
            if let JournalLine::Event(record) = parse_record(line)? {
                let record = record.as_record();
                let is_usage = matches!(record.event.kind, EventKind::UsageReported(_));
                if is_usage && !record.event.actor.is_main() {
                    // This is the usage of an advisor or of an agent inside a program.
                    return Ok(());
                }
                let is_worker = chain.is_worker(&history.current);
                history.follow(&record.event.kind, record.verdict, is_worker);
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(history)
    }

    /// Remembers why the guard paused the run.
    fn follow_pause(&mut self, verdict: &Verdict) {
        if verdict.is_enforced(Decision::Pause) {
            if self.pause == PauseKind::None {
                self.pause = if is_paused_as_stuck(verdict) {
                    PauseKind::Stuck
                } else {
                    PauseKind::ForPerson
                };
            }
            self.has_open_question = false;
        }
    }

    /// Updates the state from one record. While an agent program works, most records come from its
    /// hooks and do not show how often it was started.
    fn follow(&mut self, kind: &EventKind, verdict: &Verdict, is_worker: bool) {
        self.follow_pause(verdict);
        match kind {
            EventKind::AttemptStarted(AttemptStarted { attempt }) => {
                let number = attempt_number(attempt.as_str());
                self.last_attempt = self.last_attempt.max(number);
                if verdict.allows_run() {
                    self.open_attempts.push(number);
                    (self.is_program_running, self.has_open_question) = (false, self.is_unpaused());
                }
            }
            EventKind::AttemptStage(AttemptStage { stage, .. })
                if *stage == ReportedStage::Builtin(Stage::Generated) =>
            {
                self.is_program_running = true;
            }
            EventKind::AttemptEnded(AttemptEnded { attempt, result }) => {
                let number = attempt_number(attempt.as_str());
                self.open_attempts.retain(|open| *open != number);
                if *result == AttemptResult::Commit {
                    self.last_committed = number;
                }
                (self.is_program_running, self.has_open_question) = (false, false);
            }
            EventKind::UsageReported(UsageReported { model, .. }) => {
                if let Some(model) = model {
                    *self.answered.entry(model.clone()).or_default() += 1;
                }
                self.waits = 0;
                if !is_worker {
                    self.count_question();
                    self.pause = PauseKind::None;
                }
            }
            EventKind::StopProposed(_) if is_worker && !is_verification_running(verdict) => {
                self.count_question();
            }
            EventKind::ToolProposed(_) | EventKind::StopProposed(_) if !is_worker => {
                self.has_open_question = false;
            }
            EventKind::SessionStarted(SessionStarted { client, .. })
                if client.as_deref() == Some(crate::run::CLIENT) =>
            {
                if self.has_open_question {
                    self.count_question();
                }
                self.has_open_question = self.is_unpaused();
                // The journal does not show whether an advisor was asked, so this counts one
                // question.
                self.interrupted_questions = self
                    .interrupted_questions
                    .saturating_add(u32::from(self.pause == PauseKind::Stuck));
            }
            EventKind::ModelChanged(ModelChanged { from, to, reason }) => {
                if let Some(from) =
                    from.as_ref().filter(|_| EngineChangeReason::had_open_question(reason.as_str()))
                {
                    *self.questions.entry(from.clone()).or_default() += 1;
                }
                if from.as_ref() == Some(to) {
                    self.waits = self.waits.saturating_add(1);
                }
                if !verdict.is_enforced(Decision::Deny) {
                    if self.current == self.first {
                        self.first_engine = if EngineChangeReason::was_stuck(reason.as_str()) {
                            FirstEngine::WasStuck
                        } else {
                            FirstEngine::MayReturn
                        };
                    }
                    self.current.clone_from(to);
                    self.resume();
                }
            }
            EventKind::AdvisorAnswered(_) => {
                self.resume();
            }
            EventKind::Control(Control { action: ControlAction::Reset, .. })
                if verdict.allows_run() =>
            {
                // A reset gives every engine its full budget again.
                self.questions.clear();
                (self.interrupted_questions, self.waits) = (0, 0);
                (self.pause, self.has_open_question) = (PauseKind::None, false);
            }
            EventKind::Control(Control { action, .. }) if !action.only_restricts() => {
                self.pause = PauseKind::None;
            }
            EventKind::IterationEnded(_) => {
                self.waits = 0;
                self.has_open_question = self.is_unpaused();
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. }) => {
                self.has_prompt = true;
                self.has_open_question |=
                    !is_worker && !self.is_program_running && self.is_unpaused();
            }
            EventKind::ToolFinished(_) | EventKind::PromptSubmitted(_)
                if !is_worker && !self.is_program_running =>
            {
                self.has_open_question = self.is_unpaused();
            }
            _ => {}
        }
    }

    /// Whether the session is not paused.
    fn is_unpaused(&self) -> bool {
        self.pause == PauseKind::None
    }

    /// Marks the session as resumed, with an open question.
    fn resume(&mut self) {
        (self.pause, self.has_open_question) = (PauseKind::None, true);
    }

    fn count_question(&mut self) {
        *self.questions.entry(self.current.clone()).or_default() += 1;
        self.has_open_question = false;
    }
}

/// The number in the id of an attempt.
fn attempt_number(attempt: &str) -> u32 {
    attempt.trim_start_matches('a').parse().unwrap_or(0)
}

/// Whether a guard paused the session because the agent loops or makes no progress.
fn is_paused_as_stuck(verdict: &Verdict) -> bool {
    let mut found = verdict.violations.iter();
    found.any(|it| {
        let is_stuck = match it.guard {
            GuardName::Loops | GuardName::Progress => true,
            // A check that can't be run is for a person.
            GuardName::Completion => it.subtype != ViolationSubtype::CheckNotRunnable,
            _ => false,
        };
        it.enforced && it.decision == Decision::Pause && is_stuck
    })
}

/// How a session was started: its first model and its role.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunStart {
    pub(crate) model: Option<String>,
    pub(crate) role: Option<String>,
}

impl RunStart {
    /// Reads the start of a session. `None` if it has no journal yet.
    pub(crate) fn read(journal: &RunJournal) -> Option<Self> {
        let journal = journal.view().ok()?;
        let mut begun = None;
        let _ = journal.for_each(|line| {
            if begun.is_none()
                && let JournalLine::Event(record) = parse_record(line)?
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

/// Whether a verification command is running, so that the stop has to be proposed again.
fn is_verification_running(verdict: &Verdict) -> bool {
    verdict.violations.iter().any(|it| it.subtype == ViolationSubtype::VerificationRunning)
}

#[cfg(test)]
mod tests {
    use jackline_engine::event::ChangeReason;
    use jackline_engine::id::AttemptId;
    use jackline_engine::verdict::{ViolationClass, ViolationType};
    use jackline_engine::{CallStatus, Violation};

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

    fn control(action: ControlAction) -> EventKind {
        let (by, why, call, constraint) = (None, None, None, None);
        EventKind::Control(Control { action, by, why, call, constraint, ..Control::default() })
    }

    /// How many questions the engines `a` and `b` got.
    fn questions_after(is_worker: bool, records: &[(EventKind, Decision)]) -> [u64; 2] {
        let mut history = RunHistory { current: "a".to_owned(), ..RunHistory::default() };
        for (kind, decision) in records {
            let mut verdict = Verdict::allow();
            verdict.decision = *decision;
            history.follow(kind, &verdict, is_worker);
        }
        ["a", "b"].map(|label| history.questions.get(label).copied().unwrap_or(0))
    }

    fn allowed(kinds: impl IntoIterator<Item = EventKind>) -> Vec<(EventKind, Decision)> {
        kinds.into_iter().map(|kind| (kind, Decision::Allow)).collect()
    }

    #[test]
    fn an_answer_and_a_failure_with_a_takeover_each_count_as_one_question() {
        assert_eq!(questions_after(false, &allowed([started(), answer(), answer()])), [2, 0]);
        let failed = [started(), answer(), changed("overload"), answer()];
        assert_eq!(questions_after(false, &allowed(failed)), [2, 1]);
        let stuck = [started(), answer(), changed("verification"), answer()];
        assert_eq!(questions_after(false, &allowed(stuck)), [1, 1]);
    }

    #[test]
    fn an_interrupted_question_counts_each_time() {
        assert_eq!(questions_after(false, &allowed([started(), started(), started()])), [2, 0]);
        assert_eq!(
            questions_after(false, &allowed([started(), answer(), started()])),
            [1, 0],
            "a command"
        );
    }

    #[test]
    fn a_session_that_waits_for_a_person_has_no_open_question() {
        let paused = (iteration(), Decision::Pause);
        let mut records = allowed([started(), answer()]);
        records.extend([paused, (control(ControlAction::Acknowledge), Decision::Allow)]);
        records.push((started(), Decision::Allow));
        assert_eq!(questions_after(false, &records), [1, 0]);
        records.push((started(), Decision::Allow));
        assert_eq!(
            questions_after(false, &records),
            [2, 0],
            "the engine was asked after the restart"
        );
    }

    /// The history after these records.
    fn history_of(records: &[(EventKind, Verdict)]) -> RunHistory {
        let mut history = RunHistory { current: "a".to_owned(), ..RunHistory::default() };
        for (kind, verdict) in records {
            history.follow(kind, verdict, false);
        }
        history
    }

    #[test]
    fn an_interrupted_advisor_counts_as_asked() {
        let mut stuck = Verdict::allow();
        (stuck.decision, stuck.enforced) = (Decision::Pause, Some(true));
        stuck.violations.push(Violation {
            id: String::new(),
            guard: GuardName::Loops,
            kind: ViolationType::Loop,
            subtype: ViolationSubtype::Repeat,
            class: ViolationClass::Recoverable,
            message: String::new(),
            location: None,
            correction: None,
            decision: Decision::Pause,
            enforced: true,
        });
        let fine = Verdict::allow;
        let mut records = vec![(started(), fine()), (iteration(), stuck), (started(), fine())];
        assert_eq!(history_of(&records).interrupted_questions, 1);
        let error = Some(jackline_engine::Payload::Inline("no".to_owned()));
        let (model, instruction) = (None, None);
        records.insert(
            2,
            (EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }), fine()),
        );
        assert_eq!(history_of(&records).interrupted_questions, 0, "the advisor has answered");
        records.push((control(ControlAction::Reset), fine()));
        let reset = history_of(&records);
        assert_eq!((reset.interrupted_questions, reset.questions.len()), (0, 0));
    }

    #[test]
    fn waits_are_counted_until_an_engine_answers() {
        let wait = || {
            let (from, to) = (Some("a".to_owned()), "a".to_owned());
            (
                EventKind::ModelChanged(ModelChanged { from, to, reason: ChangeReason::PlanLimit }),
                Verdict::allow(),
            )
        };
        let mut records = vec![(started(), Verdict::allow()), wait(), wait()];
        assert_eq!(history_of(&records).waits, 2);
        records.push((answer(), Verdict::allow()));
        assert_eq!(history_of(&records).waits, 0);
    }

    #[test]
    fn tool_calls_of_a_program_are_no_questions_and_its_open_attempts_are_listed() {
        let attempt = |name: &str| AttemptId::parse(name).unwrap();
        let begun = |name| EventKind::AttemptStarted(AttemptStarted { attempt: attempt(name) });
        let stage = |name, stage: &str| {
            EventKind::AttemptStage(AttemptStage {
                attempt: attempt(name),
                stage: ReportedStage::parse(stage),
            })
        };
        let called = || {
            EventKind::ToolFinished(ToolFinished {
                status: CallStatus::Ok,
                ..ToolFinished::default()
            })
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
        assert_eq!(questions_after(false, &records), [2, 0], "killed while a program ran");
        records.extend(allowed([begun("a3"), started()]));
        assert_eq!(questions_after(false, &records), [3, 0], "killed while a program was written");
        let mut history = RunHistory::default();
        for (kind, _) in &records {
            history.follow(kind, &Verdict::allow(), false);
        }
        assert_eq!(
            (history.last_attempt, history.last_committed, history.open_attempts),
            (3, 0, vec![2, 3])
        );
    }

    #[test]
    fn an_agent_program_is_counted_by_its_starts() {
        let kinds = [started(), answer(), answer(), stop(), iteration(), answer(), started()];
        assert_eq!(questions_after(true, &allowed(kinds)), [2, 0]);
    }
}
