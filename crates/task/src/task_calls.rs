//! Runs calls over an open session, and keeps the state that they share.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use crate::registry::Registry;
use jackline_attempt::{CallPressure, CallTrace, InternalOutcome, PublicOutcome};
use jackline_engine::event::AttemptResult;
use jackline_engine::{Definition, SessionId};
use jackline_journal::FileStore;
use jackline_runtime::Gate;
use jackline_sandbox_host::{ProgramCancel, ProgramLimits, WorkerPool};
use jackline_workspace::Workspace;
use jackline_workspace::undo::UndoLogState;
use serde_json::Map;

use crate::attempt_event::AttemptEvent;
use crate::attempt_recovery::undo_log_state;
use crate::author::SharedAuthor;
use crate::call_tree_state::CallTreeState;
use crate::program_contexts::ProgramContexts;
use crate::running_call::{ConcludedCall, RunningCall};
use crate::task_front::TaskFront;
use crate::task_spec::Task;

/// How many attempts may be open at once: one per depth, which is the engine's limit.
const OPEN_ATTEMPTS_MAX: u32 = 4;

/// What calls need to run.
pub struct CallEnvironment<'w> {
    /// The workspace of the tools.
    pub workspace: &'w Workspace,
    /// The store for sessions.
    pub store: FileStore,
    /// The session. It must have started.
    pub session: SessionId,
    /// The definition file, if a person or the task named one.
    pub definition: Option<PathBuf>,
    /// The worker pool for programs.
    pub workers: WorkerPool,
    /// The signal that cancels the run.
    pub cancel: ProgramCancel,
    /// How many attempts the session has had.
    pub attempts: u32,
}

/// Runs calls over a session, one after the other.
pub struct TaskCalls<'w> {
    environment: CallEnvironment<'w>,
    registry: Registry,
    /// The session directory in the state home.
    directory: PathBuf,
    /// The contexts of programs.
    contexts: RefCell<ProgramContexts>,
    /// Which tasks and delegates used all their retries again and again.
    pressure: RefCell<CallPressure>,
    /// How many attempts and calls there were so far.
    attempts: Cell<u32>,
    calls_made: Cell<u32>,
}

/// The result of a call.
#[derive(Debug)]
pub struct CallReport {
    /// The outcome, with internal details.
    pub outcome: InternalOutcome,
    /// The outcome as the caller may see it.
    pub public: PublicOutcome,
    /// The trace of the call.
    pub trace: CallTrace,
    /// Why the session is paused or stopped, if it is.
    pub hold_reason: Option<String>,
    /// The state of the files, if an attempt could not be undone.
    pub rollback_failure: Option<String>,
}

/// What one call needs.
pub(crate) struct CallSetup<'r> {
    pub(crate) front: TaskFront<'r>,
    pub(crate) task: &'r Task,
    pub(crate) author: SharedAuthor<'r>,
    /// Whether the call belongs to a run, which has a public outcome of its own.
    pub(crate) is_run: bool,
    /// Sets the budgets of the call.
    pub(crate) definition: &'r Definition,
    pub(crate) observer: &'r mut dyn FnMut(&AttemptEvent),
}

impl<'w> TaskCalls<'w> {
    /// Calls over a session whose directory exists.
    pub fn new(ground: CallEnvironment<'w>) -> Self {
        let registry = Registry::of_home(ground.store.home());
        let directory = ground.store.directory(&ground.session);
        // Each call has at least one attempt, so this gives every call a new id.
        let (attempts, made) = (Cell::new(ground.attempts), Cell::new(ground.attempts));
        Self {
            environment: ground,
            registry,
            directory,
            contexts: RefCell::default(),
            pressure: RefCell::default(),
            attempts,
            calls_made: made,
        }
    }

    /// Runs a call with the given author. `hear` gets each event of the call.
    pub fn call<'r>(
        &'r self,
        task: &'r Task,
        defined: &'r Definition,
        gate: &'r RefCell<Gate>,
        author: SharedAuthor<'r>,
        hear: &'r mut dyn FnMut(&AttemptEvent),
    ) -> CallReport {
        let front = TaskFront::new(gate, Some("the next program can make it"));
        self.run_call(
            CallSetup { front, task, author, is_run: true, definition: defined, observer: hear },
            |_, outcome, _| outcome,
        )
    }

    /// The same, with a function that may report more events at the end, and changes the outcome if
    /// they show another one.
    pub(crate) fn run_call<'r>(
        &'r self,
        over: CallSetup<'r>,
        conclude: impl FnOnce(&mut TaskFront<'r>, InternalOutcome, &CallTrace) -> InternalOutcome,
    ) -> CallReport {
        let CallSetup { front, task, author, is_run, definition: defined, observer: hear } = over;
        let ground = &self.environment;
        let shared = CallTreeState {
            front: RefCell::new(front),
            workspace: ground.workspace,
            registry: &self.registry,
            overlay: RefCell::new(self.registry.begin()),
            contexts: RefCell::new(self.contexts.take()),
            workers: ground.workers.clone(),
            limits: ProgramLimits { depth_max: OPEN_ATTEMPTS_MAX - 1, ..ProgramLimits::default() },
            budgets: defined.attempts.clone(),
            health: defined.health,
            pressure: RefCell::new(self.pressure.take()),
            directory: self.directory.clone(),
            session: ground.session.to_string(),
            store: ground.store.clone(),
            definition: ground.definition.clone(),
            is_run,
            attempts: Cell::new(self.attempts.get()),
            calls: Cell::new(self.calls_made.get()),
            tool_uses: RefCell::default(),
            command_effects: RefCell::default(),
            rollback_failure: RefCell::default(),
            cancel: ground.cancel.clone(),
            observer: RefCell::new(hear),
        };
        let calling = RunningCall::new(&shared, task, author, Map::new(), None);
        let ConcludedCall { outcome, public, trace } =
            calling.run(|outcome, trace| conclude(&mut shared.front.borrow_mut(), outcome, trace));
        calling.emit_notes();
        self.attempts.set(shared.attempts.get());
        self.calls_made.set(shared.calls.get());
        self.contexts.replace(shared.contexts.take());
        self.pressure.replace(shared.pressure.take());
        let held = shared.front.borrow().hold_reason().map(ToOwned::to_owned);
        CallReport {
            outcome,
            public,
            trace,
            hold_reason: held,
            rollback_failure: shared.rollback_failure.take(),
        }
    }

    /// Ends attempts that an earlier process left open in the session. Their files must be finished
    /// already. Returns the attempts that were committed.
    pub fn close_open_attempts(&self, gate: &RefCell<Gate>, open: &[u32]) -> Vec<u32> {
        let mut front = TaskFront::new(gate, None);
        let mut kept = Vec::new();
        // The last one first: attempts may be nested.
        for number in open.iter().rev() {
            let log = self.directory.join("undo").join(number.to_string());
            let result = match undo_log_state(&log) {
                Some(UndoLogState::Committed) => AttemptResult::Commit,
                // It is unknown which effects of commands stay.
                Some(UndoLogState::Open | UndoLogState::RolledBack) | None => {
                    AttemptResult::PartialRollback
                }
            };
            if result == AttemptResult::Commit {
                kept.push(*number);
            }
            // If the session accepts no events, the next event reports that.
            let _ = front.attempt_ended(*number, result);
        }
        kept
    }
}
