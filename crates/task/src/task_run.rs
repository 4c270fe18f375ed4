//! Runs a task in a session of its own, up to its public outcome.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use jackline_attempt::{CallTrace, InternalOutcome, OutcomeError, PublicOutcome};
use jackline_engine::SessionId;
use jackline_engine::id::IdError;
use jackline_engine::verdict::SessionStop;
use jackline_host::HostAccess;
use jackline_host::clock::now;
use jackline_host::environment::named_variable;
use jackline_journal::{FileStore, write_private};
use jackline_runtime::verification::{end_checks, is_checking};
use jackline_runtime::{
    AdapterTools, DefinitionError, Definitions, Gate, ResolvedDefinition, Runtime, RuntimeFault,
};
use jackline_sandbox_host::{ProgramCancel, Sandbox, WorkerError, WorkerPool};
use jackline_workspace::{Workspace, WorkspaceError};

use crate::attempt_event::AttemptEvent;
use crate::attempt_lock::lock_attempts;
use crate::attempt_recovery::{AttemptRecovery, TASK_SESSION_PREFIX, recover_attempts};
use crate::broken_guard::BrokenGuard;
use crate::task_calls::{CallEnvironment, CallReport, CallSetup, TaskCalls};
use crate::task_front::{StopRefusal, TaskFront};
use crate::task_model::{self, TaskModel};
use crate::task_spec::{ArtifactKind, Task};
use crate::trace_entry::TRACE_FILE;

/// The definition of a task without one: the rules that no project has to loosen.
const DEFAULT_DEFINITION: &str =
    "version: 1\nname: jackline/attempt\nextends: [coding-agent]\nmode: enforce\n";

/// The file in the directory of a session that holds the default definition.
const DEFAULT_DEFINITION_FILE: &str = "definition.yaml";

/// The error type of a call that succeeded in a session that does not count as complete.
const NOT_COMPLETE: &str = "not_complete";

/// The error type of a call in a session that proves nothing.
const GUARD_BROKEN: &str = "guard_broken";

/// How often a verification command is looked at.
const CHECK_PAUSE: Duration = Duration::from_millis(50);

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

impl TaskError {
    /// A stable word for the error, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Workspace(_) => "workspace",
            Self::Worker(_) => "sandbox",
            Self::Definition(_) => "definition",
            Self::KeyNotSet(_) => "model",
            Self::Session(_) => "session",
            Self::UnfinishedAttempt(_) => "unfinished",
        }
    }
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
    /// The stop code of the session. `None` if its end could not be recorded.
    pub stop: Option<SessionStop>,
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
    /// Why the outcome says nothing about the work, if the guard broke.
    pub broken_guard: Option<BrokenGuard>,
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
    let id = new_session_name(TASK_SESSION_PREFIX);
    let session = SessionId::parse(&id)?;
    let directory = store.directory(&session);
    let definition = definition.or_else(|| task.definition.clone());
    let (definitions, resolved, definition) =
        resolve_definition(definition, &store, &root, &directory)?;
    let mut limits = jackline_workspace::WorkspaceLimits::from_definition(resolved.definition.io);
    limits.shell.supervisor.clone_from(&program);
    let opened = Workspace::open(&root, limits);
    let workspace = opened.map_err(|source| WorkspaceError::Open { path: root.clone(), source })?;
    let Some(shown) = root.to_str() else { return Err(WorkspaceError::NotUtf8(root).into()) };

    // A program is checked before it runs, so its host proposes only calls of tools that exist.
    let mut runtime = Runtime::new(store.clone(), definitions, root.clone())
        .with_tools(AdapterTools::all_proposed());
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

    let is_cancelled = move || cancelled.load(Ordering::Relaxed);
    let calls = TaskCalls::new(CallEnvironment {
        workspace: &workspace,
        store: store.clone(),
        session: session.clone(),
        definition,
        workers,
        cancel: ProgramCancel::when(is_cancelled.clone()),
        attempts: 0,
    });
    let definition = &resolved.definition;
    let over = CallSetup { front, task, author, is_run: false, definition, observer: hear };
    let (mut stop, mut broken_guard) = (None, None);
    let called = calls.run_call(over, |front, outcome, trace| {
        let outcome =
            check_completion(front, outcome, trace, || wait_for_checks(&directory, &is_cancelled));
        stop = front.end_session();
        broken_guard = BrokenGuard::find(&gate.borrow(), &store, &session, &outcome);
        match &broken_guard {
            Some(broken) => guard_broken_outcome(outcome, broken, trace),
            None => outcome,
        }
    });
    let CallReport { outcome: internal, public, trace, rollback_failure: stuck, .. } = called;
    drop(held);
    let trace_file = directory.join(TRACE_FILE);
    Ok(TaskReport {
        session: id,
        stop,
        public,
        internal,
        trace,
        trace_file,
        recovery,
        rollback_failure: stuck,
        broken_guard,
    })
}

/// The definition of the task, and its file if one is named. Without any definition, the default one
/// holds, in a file of the session.
fn resolve_definition(
    named: Option<PathBuf>,
    store: &FileStore,
    root: &Path,
    directory: &Path,
) -> Result<(Definitions, ResolvedDefinition, Option<PathBuf>), TaskError> {
    let host = || HostAccess::of_machine(Some(store.home()));
    let described = |error: DefinitionError| TaskError::Definition(error.to_string());
    let definitions = Definitions::new(named.clone(), host());
    match definitions.resolve(root) {
        Ok(resolved) => return Ok((definitions, resolved, named)),
        Err(DefinitionError::NotFound(_)) => {}
        Err(error) => return Err(described(error)),
    }
    let file = directory.join(DEFAULT_DEFINITION_FILE);
    write_private(&file, DEFAULT_DEFINITION.as_bytes())
        .map_err(|error| TaskError::Session(error.to_string()))?;
    let definitions = Definitions::new(Some(file.clone()), host());
    let resolved = definitions.resolve(root).map_err(described)?;
    Ok((definitions, resolved, Some(file)))
}

/// The outcome of the task: that of its call, unless the guards do not accept the session as
/// complete. Then the outcome says the same as the journal.
fn check_completion(
    front: &mut TaskFront<'_>,
    outcome: InternalOutcome,
    trace: &CallTrace,
    wait: impl FnMut() -> bool,
) -> InternalOutcome {
    let InternalOutcome::Ok { value, .. } = &outcome else { return outcome };
    let Err(StopRefusal { reason, guardrail }) = front.propose_stop(value, wait) else {
        return outcome;
    };
    front.add_person_text(format!("the session does not count as complete: {reason}"));
    InternalOutcome::InternalError {
        error: OutcomeError::new(NOT_COMPLETE, reason, false),
        guardrail,
        guardrail_recovery_attempts: trace.guardrail_recovery_attempts,
        retries: trace.lanes.retries(),
    }
}

/// The outcome of a task whose session proves nothing. A failure keeps its own reason.
fn guard_broken_outcome(
    outcome: InternalOutcome,
    broken: &BrokenGuard,
    trace: &CallTrace,
) -> InternalOutcome {
    if matches!(outcome, InternalOutcome::InternalError { .. }) {
        return outcome;
    }
    InternalOutcome::InternalError {
        error: OutcomeError::new(GUARD_BROKEN, broken.to_string(), false),
        guardrail: None,
        guardrail_recovery_attempts: trace.guardrail_recovery_attempts,
        retries: trace.lanes.retries(),
    }
}

/// Waits until no verification command of the session runs. Returns false if the task is cancelled
/// meanwhile, which ends the command.
fn wait_for_checks(directory: &Path, is_cancelled: &impl Fn() -> bool) -> bool {
    loop {
        std::thread::sleep(CHECK_PAUSE);
        if is_cancelled() {
            end_checks(directory);
            return false;
        }
        if !is_checking(directory) {
            return true;
        }
    }
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
