//! A task from its beginning to its public outcome, in one session.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use jackline_attempt::{InternalOutcome, PublicOutcome, Trace, egress};
use jackline_engine::SessionId;
use jackline_engine::id::IdError;
use jackline_host::HostAccess;
use jackline_host::clock::now;
use jackline_host::environment::named_variable;
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Fault, Gate, Runtime};
use jackline_sandbox_host::{Ending, Sandbox, WorkerError, Workers};
use jackline_workspace::{Workspace, WorkspaceError};

use crate::calls::{Called, Calls, Ground, Over};
use crate::held::hold;
use crate::model::{self, ModelSpec};
use crate::recover::{PREFIX, Recovery, recover};
use crate::spec::{ArtifactKind, Task};
use crate::task_front::TaskFront;
use crate::told::Told;
use crate::trace::TRACE_FILE;

/// Where a task is done, and by what.
pub struct Opening {
    /// The store of the machine.
    pub store: FileStore,
    /// The directory that tools work in.
    pub workspace: PathBuf,
    /// The definition, where a person has named one.
    pub definition: Option<PathBuf>,
    /// Where the worker is.
    pub sandbox: Sandbox,
    /// The program that runs verifications, sends notices and stands above commands.
    pub program: Option<PathBuf>,
    /// Set from outside when the task is to end.
    pub cancelled: Arc<AtomicBool>,
}

/// Why a task was not begun.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The workspace can't be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// There is no worker.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// There is no definition to decide by.
    #[error("{0}")]
    Definition(String),
    /// A key is not where the task says.
    #[error("the variable `{0}`, which `key_env` names, is not set")]
    NoKey(String),
    /// The session could not be begun.
    #[error("the session can't be begun: {0}")]
    Session(String),
    /// What earlier attempts have left could not be undone.
    #[error("an earlier attempt is neither done nor undone, so none is begun: {0}")]
    Unfinished(String),
}

impl From<IdError> for TaskError {
    fn from(error: IdError) -> Self {
        Self::Session(error.to_string())
    }
}

impl From<Fault> for TaskError {
    fn from(error: Fault) -> Self {
        Self::Session(error.to_string())
    }
}

/// How a task went.
#[derive(Debug)]
pub struct Report {
    /// Its session.
    pub session: String,
    /// What whoever asked is told.
    pub public: PublicOutcome,
    /// How it ended, with everything.
    pub internal: InternalOutcome,
    /// How it went, with everything.
    pub trace: Trace,
    /// Where the trace is.
    pub trace_file: PathBuf,
    /// What earlier attempts had left.
    pub recovery: Recovery,
    /// Which file is in which state, where an attempt could not be undone.
    pub stuck: Option<String>,
}

/// Does a task. `hear` is told how it goes on.
pub fn run(
    task: &Task,
    opening: Opening,
    hear: &mut dyn FnMut(&Told),
) -> Result<Report, TaskError> {
    let Opening { store, workspace: root, definition, sandbox, program, cancelled } = opening;
    let workers = Workers::new(sandbox);
    if writes_programs(task) {
        workers.ready()?;
    }
    check_keys(task)?;
    let definition = definition.or_else(|| task.definition.clone());
    let definitions =
        Definitions::new(definition.clone(), HostAccess::of_machine(Some(store.home())));
    let resolved = definitions.resolve(&root);
    let resolved = resolved.map_err(|error| TaskError::Definition(error.to_string()))?;
    let mut limits = jackline_workspace::Limits::of(resolved.definition.io);
    limits.shell.supervisor.clone_from(&program);
    let opened = Workspace::open(&root, limits);
    let workspace = opened.map_err(|source| WorkspaceError::Open { path: root.clone(), source })?;
    let Some(shown) = root.to_str() else { return Err(WorkspaceError::NotUtf8(root).into()) };

    let id = new_session_name(PREFIX);
    let session = SessionId::parse(&id)?;
    let directory = store.directory(&session);
    let mut runtime = Runtime::new(store.clone(), definitions, root.clone());
    if let Some(program) = program {
        runtime = runtime.with_verifier(program.clone()).with_notifier(program);
    }
    let gate = RefCell::new(Gate::new(runtime, session.clone()).saving_late());
    let mut front = TaskFront::new(&gate, Some("start the task again"));
    let recovery = recover(&store, &root, &gate, None);
    if let Some(text) = recovery.unfinished() {
        return Err(TaskError::Unfinished(text));
    }
    let author = model::make(&task.model, None, &named_variable);
    let name = author.borrow().name();
    front.start(shown, name, &task.prompt).map_err(TaskError::Session)?;
    let held = hold(&directory).map_err(|error| TaskError::Session(error.to_string()))?;
    let Some(held) = held else {
        let text = format!("another process is at work in `{id}`");
        return Err(TaskError::Session(text));
    };

    let calls = Calls::new(Ground {
        workspace: &workspace,
        store,
        session,
        definition,
        workers,
        ending: Ending::when(move || cancelled.load(Ordering::Relaxed)),
        attempts: 0,
    });
    let over = Over { front, task, author, defined: &resolved.definition, hear };
    let called = calls.make(over, |front, outcome| front.end(outcome.is_ok()));
    let Called { outcome: internal, trace, stuck, .. } = called;
    drop(held);
    let (public, _) = egress(&internal);
    let trace_file = directory.join(TRACE_FILE);
    Ok(Report { session: id, public, internal, trace, trace_file, recovery, stuck })
}

/// A name that no other session has, behind a prefix that says what began it.
pub fn new_session_name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (ms, process) = (now().wall.as_ms(), std::process::id());
    let more = if count == 0 { String::new() } else { format!("-{count}") };
    format!("{prefix}{ms}-{process}{more}")
}

/// Whether there is a program to run, here or by a delegate.
fn writes_programs(task: &Task) -> bool {
    task.artifact == ArtifactKind::Program
        || task.delegates.values().any(|delegate| writes_programs(&delegate.task))
}

/// Whether all keys are there, before anybody is asked.
fn check_keys(task: &Task) -> Result<(), TaskError> {
    if let ModelSpec::Chat(chat) = &task.model
        && let Some(name) = &chat.key_env
        && named_variable(name).is_none()
    {
        return Err(TaskError::NoKey(name.clone()));
    }
    task.delegates.values().try_for_each(|delegate| check_keys(&delegate.task))
}
