//! Runs a task by programs: the model writes a program, which is checked, runs as one step, and is
//! undone if it fails.
//!
//! One iteration is one call of `jackline-task`, with all attempts that it may use. The
//! conversation of the run stores what the model wrote and which errors it got.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use jackline_attempt::{InternalOutcome, OutcomeError};
use jackline_model::{ModelError, ModelErrorKind, ModelReply, ToolDeclaration};
use jackline_task::{
    ArtifactKind, ArtifactRequest, AttemptEventKind, AttemptLock, Author, CallEnvironment,
    CallReport, Task, TaskCalls, TaskModel, lock_attempts, recover_attempts,
};
use serde_json::{Map, Value};

use crate::model_loop::{
    EngineCall, IterationEnd, ModelLoop, ModelTurn, StopOutcome, preview, propose_stop,
};
use crate::run::RunError;
use crate::run_event::RunEvent;
use crate::run_front::RunFront;
use crate::run_history::RunHistory;
use crate::run_task::RunTask;

/// A text for a model whose last program was interrupted.
const UNDONE_TEXT: &str = "Your last program was interrupted, and all of its changes are undone.";

/// Has the model write programs, and runs them as attempts.
pub(crate) struct ProgramLoop<'w> {
    calls: TaskCalls<'w>,
    task: Task,
    /// The lock that shows other processes that this one makes the attempts.
    _lock: AttemptLock,
    /// Whether the last attempt of an earlier process was interrupted.
    cut_off: bool,
    /// How the last program ended, if it failed.
    last_failure: Option<InternalOutcome>,
    /// How many programs of this process were committed.
    committed: u64,
}

/// Has the engine of the run write an artifact, in the conversation of the run.
struct RunAuthor<'a, 'o, 'd, 'h, 'w> {
    model_loop: &'a mut ModelLoop<'o>,
    front: &'a RefCell<&'d mut RunFront<'h>>,
    engine_call: &'a mut EngineCall<'w>,
    /// Why the engine gave no answer, if it gave none.
    iteration_end: Option<IterationEnd>,
    /// Whether the conversation has to restart.
    needs_restart: bool,
}

impl<'w> ProgramLoop<'w> {
    /// Opens the loop. First undoes the attempts that earlier processes left unfinished.
    pub(crate) fn open(
        task: &RunTask,
        tools: &[ToolDeclaration],
        (ground, root): (CallEnvironment<'w>, &Path),
        front: &mut RunFront<'_>,
        history: &RunHistory,
    ) -> Result<Self, RunError> {
        let gate = front.gate();
        // Take the lock first: another process may still be undoing an attempt here.
        let Some(held) = lock_attempts(&ground.store.directory(&ground.session))? else {
            let text = "another process is undoing it now; try again in a moment".to_owned();
            return Err(RunError::UnfinishedAttempt(text));
        };
        let recovery = recover_attempts(&ground.store, root, gate, Some(&held));
        if let Some(text) = recovery.unfinished() {
            return Err(RunError::UnfinishedAttempt(text));
        }
        let mut ours = Vec::new();
        for recovered in recovery.done {
            let (attempt, session) = (recovered.attempt, recovered.session);
            let files = recovered.undone.restored.join(", ");
            let text = format!(
                "attempt {attempt} of session `{session}` was interrupted and is now undone: {files}"
            );
            front.emit(&RunEvent::Notification { text });
            if session == front.session().as_str() {
                ours.push(attempt);
            }
        }
        let calls = TaskCalls::new(ground);
        let is_open = |it: &u32| !ours.contains(it);
        let open: Vec<u32> = history.open_attempts.iter().copied().filter(is_open).collect();
        let kept = calls.close_open_attempts(gate, &open);
        let last = history.last_attempt;
        let cut_off = last > 0 && history.last_committed != last && !kept.contains(&last);
        let task = Task {
            name: task.name.clone(),
            prompt: task.prompt.clone(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            definition: None,
            model: TaskModel::Inherited,
            context: Map::new(),
            delegates: BTreeMap::new(),
            artifact: ArtifactKind::Program,
        };
        Ok(Self { calls, task, _lock: held, cut_off, last_failure: None, committed: 0 })
    }

    /// The text for a model whose last program was interrupted by the end of the process.
    pub(crate) fn cut_off(&self) -> Option<&'static str> {
        self.cut_off.then_some(UNDONE_TEXT)
    }

    /// The system prompt of every model that works by programs.
    pub(crate) fn system_prompt() -> &'static str {
        ArtifactKind::Program.instructions()
    }

    /// How the last program ended, if it failed. The next call returns `None`.
    pub(crate) fn take_last_failure(&mut self) -> Option<InternalOutcome> {
        self.last_failure.take()
    }

    /// How many programs of this process were committed.
    pub(crate) fn committed(&self) -> u64 {
        self.committed
    }

    /// Has the model write programs until one succeeds, no attempt is left, or the run is
    /// interrupted.
    pub(crate) fn run_iteration(
        &mut self,
        own: &mut ModelLoop<'_>,
        front: &mut RunFront<'_>,
        whom: &mut EngineCall<'_>,
    ) -> IterationEnd {
        self.last_failure = None;
        let defined = front.definition().unwrap_or_else(|| Arc::clone(&own.definition));
        let gate = front.gate();
        let (called, ended, full) = {
            let front = RefCell::new(&mut *front);
            let author = RunAuthor {
                model_loop: &mut *own,
                front: &front,
                engine_call: whom,
                iteration_end: None,
                needs_restart: false,
            };
            let author = Rc::new(RefCell::new(author));
            let mut hear = |step: &jackline_task::AttemptEvent| {
                let told = match &step.kind {
                    AttemptEventKind::Notification { text } => {
                        RunEvent::Notification { text: text.clone() }
                    }
                    _ => RunEvent::Program { step: step.clone() },
                };
                front.borrow_mut().emit(&told);
            };
            let shared = Rc::clone(&author);
            let called = self.calls.call(&self.task, &defined, gate, shared, &mut hear);
            let mut author = author.borrow_mut();
            (called, author.iteration_end.take(), author.needs_restart)
        };
        front.emit_budget_status();
        if let Some(ended) = ended {
            return ended;
        }
        let InternalOutcome::Ok { value, .. } = &called.outcome else {
            return self.end_undone(own, front, called, full);
        };
        self.committed += 1;
        match propose_stop(front, &value_text(value)) {
            StopOutcome::Allowed(counts_as) => IterationEnd::done(counts_as, called.outcome),
            StopOutcome::Interrupted => IterationEnd::Interrupted,
            StopOutcome::Refused(text) => own.end_refused_stop(front, text, full),
        }
    }

    /// Ends an iteration in which no program was committed.
    fn end_undone(
        &mut self,
        own: &mut ModelLoop<'_>,
        front: &mut RunFront<'_>,
        called: CallReport,
        full: bool,
    ) -> IterationEnd {
        if let Some(stuck) = called.rollback_failure {
            let session = front.session();
            let text = format!(
                "a program failed and could not be undone: {stuck}; try again with `jackline undo {session}`"
            );
            front.emit(&RunEvent::Notification { text });
            return IterationEnd::Interrupted;
        }
        let is_held = called.hold_reason.is_some()
            || front.stop_signals.should_pause()
            || front.fault().is_some();
        if is_held {
            return end_if_saved(
                own.add_user_text(UNDONE_TEXT.to_owned()),
                IterationEnd::Interrupted,
            );
        }
        let error = called.outcome.error().map(last_error_text).unwrap_or_default();
        self.last_failure = Some(called.outcome);
        let text = format!(
            "None of your programs did the task, and all of their changes are undone. The last \
             one failed: {error}\n\nTry a different approach."
        );
        let ended = IterationEnd::Exhausted { error: preview(&error), full };
        if full {
            // The conversation restarts, and the new one must have this text.
            front.add_text(text);
            return ended;
        }
        end_if_saved(own.add_user_text(text), ended)
    }
}

impl Author for RunAuthor<'_, '_, '_, '_, '_> {
    fn name(&self) -> String {
        self.engine_call.engine.model_name().to_owned()
    }

    fn write(&mut self, request: &ArtifactRequest) -> Result<ModelReply, ModelError> {
        if self.needs_restart {
            // The conversation restarts, and the new one must have the reason for the retry.
            if !request.updates.is_empty() {
                self.front.borrow_mut().add_text(request.updates.clone());
            }
            return Err(self.abort_with(IterationEnd::ConversationFull, "the conversation is full"));
        }
        let mut front = self.front.borrow_mut();
        let front = &mut **front;
        // The request contains the texts of the guards.
        if !request.updates.is_empty()
            && let Err(error) = self.model_loop.add_user_text(request.updates.clone())
        {
            return Err(
                self.abort_with(IterationEnd::NotSaved(error), "can't save the conversation")
            );
        }
        // The conversation already contains the task.
        let system = format!("{}\n{}", request.system, request.resources);
        match self.model_loop.ask_once(front, self.engine_call, system, Vec::new()) {
            Ok(ModelTurn { reply: said, end, needs_restart: full, .. }) => {
                self.needs_restart = full;
                // The run reports the usage itself, so that it is not counted twice.
                Ok(ModelReply { message: said, end, usage: None, request: None })
            }
            Err(IterationEnd::ModelFailed(error)) => {
                let message = error.to_string();
                Err(self.abort_with(IterationEnd::ModelFailed(error), &message))
            }
            Err(IterationEnd::BudgetUsedUp) => {
                Err(self
                    .abort_with(IterationEnd::BudgetUsedUp, "the budget of the engine is used up"))
            }
            Err(ended) => Err(self.abort_with(ended, "the run is paused or stopped")),
        }
    }
}

impl RunAuthor<'_, '_, '_, '_, '_> {
    /// Ends the call for a reason that is not a failure of the attempt.
    fn abort_with(&mut self, ended: IterationEnd, message: &str) -> ModelError {
        self.iteration_end = Some(ended);
        ModelError::new(ModelErrorKind::Cancelled, message)
    }
}

/// The given end, or `NotSaved` if the conversation could not be saved.
fn end_if_saved(kept: std::io::Result<()>, ended: IterationEnd) -> IterationEnd {
    kept.map_or_else(IterationEnd::NotSaved, |()| ended)
}

/// An answer as text, for the guards that check it.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The error that used up the retries.
fn last_error_text(error: &OutcomeError) -> String {
    let told = ["last_violation_message", "last_error_message"];
    let last = told.iter().find_map(|key| error.metadata.get(*key)?.as_str());
    format!("{}: {}", error.error_type, last.unwrap_or(&error.error_message))
}
