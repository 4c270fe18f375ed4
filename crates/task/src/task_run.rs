//! Runs a task in a session of its own, up to its public outcome.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use jackline_attempt::{CallTrace, InternalOutcome, PublicOutcome, egress};
use jackline_engine::SessionId;
use jackline_engine::id::IdError;
use jackline_host::HostAccess;
use jackline_host::clock::now;
use jackline_host::environment::named_variable;
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Gate, Runtime, RuntimeFault};
use jackline_sandbox_host::{ProgramCancel, Sandbox, WorkerError, WorkerPool};
use jackline_workspace::{Workspace, WorkspaceError};

use crate::attempt_event::AttemptEvent;
use crate::attempt_lock::lock_attempts;
use crate::attempt_recovery::{AttemptRecovery, TASK_SESSION_PREFIX, recover_attempts};
use crate::task_calls::{CallEnvironment, CallReport, CallSetup, TaskCalls};
use crate::task_front::TaskFront;
use crate::task_model::{self, TaskModel};
use crate::task_spec::{ArtifactKind, Task};
use crate::trace_entry::TRACE_FILE;

/// What a caller decides about a task run.
pub struct TaskOptions {
    /// The store for sessions.
    pub store: FileStore,
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The definition file, if a person named one.
    pub definition: Option<PathBuf>,
    /// The sandbox for programs.
    pub sandbox: Sandbox,
    /// The path of this program, which also runs verifications, sends notifications and supervises
    /// commands.
    pub program: Option<PathBuf>,
    /// Set by the caller to cancel the task.
    pub cancelled: Arc<AtomicBool>,
}

/// Why a task could not start.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The workspace can't be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// There is no worker program.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The definition can't be loaded.
    #[error("{0}")]
    Definition(String),
    /// The variable for an API key is not set.
    #[error("the variable `{0}`, which `key_env` names, is not set")]
    KeyNotSet(String),
    /// The session could not be started.
    #[error("can't start the session: {0}")]
    Session(String),
    /// An earlier attempt could not be undone.
    #[error(
        "an earlier attempt is unfinished and could not be undone, so no new one can start: {0}"
    )]
    UnfinishedAttempt(String),
}

impl From<IdError> for TaskError {
    fn from(error: IdError) -> Self {
        Self::Session(error.to_string())
    }
}

impl From<RuntimeFault> for TaskError {
    fn from(error: RuntimeFault) -> Self {
        Self::Session(error.to_string())
    }
}

/// The result of a task.
#[derive(Debug)]
pub struct TaskReport {
    /// The session id.
    pub session: String,
    /// The outcome for the caller, without internal details.
    pub public: PublicOutcome,
    /// The outcome with internal details.
    pub internal: InternalOutcome,
    /// The trace of the call.
    pub trace: CallTrace,
    /// The file with the trace.
    pub trace_file: PathBuf,
    /// The attempts of earlier processes that were undone first.
    pub recovery: AttemptRecovery,
    /// The state of the files, if an attempt could not be undone.
    pub rollback_failure: Option<String>,
}

/// Runs a task. `hear` gets each event of the task.
pub fn run_task(
    task: &Task,
    opening: TaskOptions,
    hear: &mut dyn FnMut(&AttemptEvent),
) -> Result<TaskReport, TaskError> {
    let TaskOptions { store, workspace: root, definition, sandbox, program, cancelled } = opening;
    let workers = WorkerPool::new(sandbox);
    if writes_programs(task) {
        workers.ensure_available()?;
    }
    check_keys(task)?;
    let definition = definition.or_else(|| task.definition.clone());
    let definitions =
        Definitions::new(definition.clone(), HostAccess::of_machine(Some(store.home())));
    let resolved = definitions.resolve(&root);
    let resolved = resolved.map_err(|error| TaskError::Definition(error.to_string()))?;
    let mut limits = jackline_workspace::WorkspaceLimits::from_definition(resolved.definition.io);
    limits.shell.supervisor.clone_from(&program);
    let opened = Workspace::open(&root, limits);
    let workspace = opened.map_err(|source| WorkspaceError::Open { path: root.clone(), source })?;
    let Some(shown) = root.to_str() else { return Err(WorkspaceError::NotUtf8(root).into()) };

    let id = new_session_name(TASK_SESSION_PREFIX);
    let session = SessionId::parse(&id)?;
    let directory = store.directory(&session);
    let mut runtime = Runtime::new(store.clone(), definitions, root.clone());
    if let Some(program) = program {
        runtime = runtime.with_verifier(program.clone()).with_notifier(program);
    }
    let gate = RefCell::new(Gate::new(runtime, session.clone()).with_deferred_saving());
    let mut front = TaskFront::new(&gate, Some("start the task again"));
    let recovery = recover_attempts(&store, &root, &gate, None);
    if let Some(text) = recovery.unfinished() {
        return Err(TaskError::UnfinishedAttempt(text));
    }
    let author = task_model::create_author(&task.model, None, &named_variable);
    let name = author.borrow().name();
    front.start(shown, name, &task.prompt).map_err(TaskError::Session)?;
    let held = lock_attempts(&directory).map_err(|error| TaskError::Session(error.to_string()))?;
    let Some(held) = held else {
        let text = format!("another process is using session `{id}`");
        return Err(TaskError::Session(text));
    };

    let calls = TaskCalls::new(CallEnvironment {
        workspace: &workspace,
        store,
        session,
        definition,
        workers,
        cancel: ProgramCancel::when(move || cancelled.load(Ordering::Relaxed)),
        attempts: 0,
    });
    let over = CallSetup { front, task, author, definition: &resolved.definition, observer: hear };
    let called = calls.run_call(over, |front, outcome| front.end_session(outcome.is_ok()));
    let CallReport { outcome: internal, trace, rollback_failure: stuck, .. } = called;
    drop(held);
    let (public, _) = egress(&internal);
    let trace_file = directory.join(TRACE_FILE);
    Ok(TaskReport {
        session: id,
        public,
        internal,
        trace,
        trace_file,
        recovery,
        rollback_failure: stuck,
    })
}

/// A session name that is not used yet. The prefix shows what started the session.
pub fn new_session_name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (ms, process) = (now().wall.as_ms(), std::process::id());
    let more = if count == 0 { String::new() } else { format!("-{count}") };
    format!("{prefix}{ms}-{process}{more}")
}

/// Whether the task or a delegate writes programs.
fn writes_programs(task: &Task) -> bool {
    task.artifact == ArtifactKind::Program
        || task.delegates.values().any(|delegate| writes_programs(&delegate.task))
}

/// Fails if a variable for an API key is not set, before a model is asked.
fn check_keys(task: &Task) -> Result<(), TaskError> {
    if let TaskModel::Chat(chat) = &task.model
        && let Some(name) = &chat.key_env
        && named_variable(name).is_none()
    {
        return Err(TaskError::KeyNotSet(name.clone()));
    }
    task.delegates.values().try_for_each(|delegate| check_keys(&delegate.task))
}
