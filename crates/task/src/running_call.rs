//! One call: a task of the caller or of a delegate, with its attempts.

mod artifact_writer;
mod attempt_host;
mod attempt_transaction;
mod event_reporter;
mod plan;
mod stage_recorder;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use jackline_attempt::{
    AttemptCall, CallAuthor, CallParts, CallTrace, Executor, Generator, InternalOutcome,
    PublicOutcome, Validator, egress,
};
use jackline_host::clock::now;
use jackline_sandbox_host::checker_and_runner;
use serde_json::{Map, Value};

use crate::attempt_event::{AttemptEvent, AttemptEventKind};
use crate::author::SharedAuthor;
use crate::call_tree_state::CallTreeState;
use crate::running_call::artifact_writer::{ArtifactWriter, PlanWriter, ProgramWriter};
use crate::running_call::attempt_host::AttemptHost;
use crate::running_call::attempt_transaction::AttemptTransaction;
use crate::running_call::event_reporter::EventReporter;
use crate::running_call::plan::{PlanRunner, Rehearsal};
use crate::running_call::stage_recorder::StageRecorder;
use crate::task_spec::{ArtifactKind, Task};
use crate::trace_entry::{self, TraceEntry};

/// A call that has ended.
pub(crate) struct ConcludedCall {
    pub(crate) outcome: InternalOutcome,
    /// The outcome as the caller at the top may see it.
    pub(crate) public: PublicOutcome,
    pub(crate) trace: CallTrace,
}

/// A call that runs. Its parts borrow this.
pub(crate) struct RunningCall<'s, 'r> {
    pub(crate) shared: &'s CallTreeState<'r>,
    pub(crate) task: &'s Task,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) depth: u32,
    pub(crate) parent: Option<String>,
    pub(crate) author: SharedAuthor<'r>,
    /// The id of the call in its session.
    pub(crate) id: String,
    /// The number of the current attempt within the call.
    attempt: Cell<u32>,
    /// The number of the attempt in the session, while it is open.
    open_attempt: Cell<Option<u32>>,
    /// The last artifact that was written.
    last_artifact: RefCell<String>,
    /// Whether the last rollback could not undo everything in the workspace.
    rolled_back_partly: Cell<bool>,
    /// How many times each violation subtype was raised.
    violation_counts: RefCell<BTreeMap<String, u32>>,
}

impl<'s, 'r> RunningCall<'s, 'r> {
    pub(crate) fn new(
        shared: &'s CallTreeState<'r>,
        task: &'s Task,
        author: SharedAuthor<'r>,
        arguments: Map<String, Value>,
        below: Option<(&str, u32)>,
    ) -> Self {
        Self {
            shared,
            task,
            arguments,
            depth: below.map_or(0, |(_, depth)| depth),
            parent: below.map(|(parent, _)| parent.to_owned()),
            author,
            id: shared.next_call(),
            attempt: Cell::new(0),
            open_attempt: Cell::new(None),
            last_artifact: RefCell::default(),
            rolled_back_partly: Cell::new(false),
            violation_counts: RefCell::default(),
        }
    }

    /// Makes attempts until one succeeds or none is left, and writes the trace. `conclude` gives the
    /// outcome its final form before that.
    pub(crate) fn run(
        &self,
        conclude: impl FnOnce(InternalOutcome, &CallTrace) -> InternalOutcome,
    ) -> ConcludedCall {
        let started = now();
        let (outcome, mut trace) = match self.task.artifact {
            ArtifactKind::Program => self.run_programs(),
            ArtifactKind::Plan => self.run_plans(),
        };
        self.close_open_attempt();
        let outcome = conclude(outcome, &trace);
        let public = egress(&outcome);
        // Only the caller at the top gets a public outcome, and a run makes its own.
        let is_border = self.depth == 0 && !self.shared.is_run;
        let user_outcome = is_border.then_some(&public);
        if let Some(public) = user_outcome {
            trace.record_public_outcome(public);
        }
        let latest = trace.attempt_failures.last();
        let line = TraceEntry {
            timestamp: started.wall,
            runtime: trace_entry::RUNTIME,
            session: &self.shared.session,
            call_id: &self.id,
            parent_call_id: self.parent.as_deref(),
            depth: self.depth,
            name: &self.task.name,
            model: self.author.borrow().name(),
            arguments: &self.arguments,
            code: &self.last_artifact.borrow(),
            generation_attempt: trace.lanes.asked,
            duration_ms: now().boot_ms.saturating_sub(started.boot_ms),
            outcome_status: if outcome.is_ok() { "ok" } else { "error" },
            outcome: &outcome,
            latest_failure_stage: latest.map(|it| it.stage),
            latest_failure_class: latest.map(|it| it.error_class.as_str()),
            latest_failure_message: latest.map(|it| it.error_message.as_str()),
            trace: &trace,
            guardrail_violation_subtypes: &self.violation_counts.borrow(),
            user_outcome,
        };
        if let Err(error) = trace_entry::append_entry(&self.shared.directory, &line) {
            self.emit(AttemptEventKind::Notification {
                text: format!("can't write the trace: {error}"),
            });
        }
        ConcludedCall { outcome, public, trace }
    }

    fn run_programs(&self) -> (InternalOutcome, CallTrace) {
        let host = RefCell::new(AttemptHost::new(self));
        let (checker, runner) =
            checker_and_runner(&self.shared.workers, &host, self.shared.limits, self.depth);
        let mut writer = ProgramWriter(ArtifactWriter { calling: self });
        self.run_attempts(&mut writer, checker, runner)
    }

    fn run_plans(&self) -> (InternalOutcome, CallTrace) {
        let mut writer = PlanWriter(ArtifactWriter { calling: self });
        self.run_attempts(&mut writer, Rehearsal { calling: self }, PlanRunner { calling: self })
    }

    fn run_attempts<A>(
        &self,
        generator: &mut dyn Generator<Artifact = A>,
        validator: impl Validator<A>,
        executor: impl Executor<A>,
    ) -> (InternalOutcome, CallTrace) {
        let (shared, name) = (self.shared, self.task.name.clone());
        let author = CallAuthor { name: name.clone(), model: self.author.borrow().name() };
        let under_pressure = shared.pressure.borrow().is_on(&author, &shared.budgets);
        let budgets = shared.pressure.borrow().budgets(&author, &shared.budgets);
        let (outcome, mut trace) = AttemptCall { name, budgets }.run(&mut CallParts {
            generator,
            validator: &mut EventReporter { calling: self, inner: validator },
            executor: &mut EventReporter { calling: self, inner: executor },
            transaction: &mut AttemptTransaction::new(self),
            stages: &mut StageRecorder { calling: self },
        });
        trace.under_pressure = under_pressure;
        shared.pressure.borrow_mut().record(author, &outcome);
        (outcome, trace)
    }

    /// Ends an attempt that is still open in the session because it never began its transaction.
    fn close_open_attempt(&self) {
        if let Some(number) = self.open_attempt.take() {
            let result = jackline_engine::event::AttemptResult::Rollback;
            // The call has ended with an error already, so this error adds nothing.
            let _ = self.shared.front.borrow_mut().attempt_ended(number, result);
        }
        self.emit_notes();
    }

    pub(crate) fn emit_notes(&self) {
        let notes = self.shared.front.borrow_mut().run_deferred();
        notes.into_iter().for_each(|text| self.emit(AttemptEventKind::Notification { text }));
    }

    pub(crate) fn emit(&self, what: AttemptEventKind) {
        let told = AttemptEvent {
            call: self.id.clone(),
            name: self.task.name.clone(),
            depth: self.depth,
            attempt: self.attempt.get(),
            kind: what,
        };
        (self.shared.observer.borrow_mut())(&told);
    }

    fn context(&self) -> Map<String, Value> {
        self.shared.contexts.borrow().get(&self.task.name, &self.task.context)
    }
}
