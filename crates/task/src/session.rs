//! A task from its beginning to its public outcome, in one session.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use jackline_attempt::{InternalOutcome, PublicOutcome, Trace, egress};
use jackline_engine::{IdError, SessionId};
use jackline_journal::FileStore;
use jackline_program::{Limits, Sandbox, WorkerError, Workers};
use jackline_registry::Registry;
use jackline_runtime::{Definitions, Fault, Runtime, named_variable, now};
use jackline_workspace::{OpenError, Workspace};
use serde_json::Map;

use crate::call::Calling;
use crate::context::Contexts;
use crate::guard::Guard;
use crate::held::hold;
use crate::model::{self, ModelSpec};
use crate::recover::{PREFIX, Recovery, recover, session_of};
use crate::shared::Shared;
use crate::spec::{ArtifactKind, Task};
use crate::told::Told;
use crate::trace::TRACE_FILE;

/// How many attempts may be open at once: so many the engine keeps, one a depth.
const DEPTHS: u32 = 4;

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
    /// The workspace can't be opened.
    #[error("can't work in `{}`: {source}", path.display())]
    Workspace {
        /// Which directory.
        path: PathBuf,
        /// Why.
        source: OpenError,
    },
    /// The workspace has a name that no record can hold.
    #[error("can't work in `{}`: its path is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
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
    let definitions = Definitions::new(definition.clone(), Some(&store));
    let resolved = definitions.resolve(&root);
    let resolved = resolved.map_err(|error| TaskError::Definition(error.to_string()))?;
    let mut limits = jackline_workspace::Limits::of(resolved.definition.io);
    limits.shell.supervisor.clone_from(&program);
    let opened = Workspace::open(&root, limits);
    let workspace = opened.map_err(|source| TaskError::Workspace { path: root.clone(), source })?;
    let Some(shown) = root.to_str() else { return Err(TaskError::NotUtf8(root)) };

    let id = new_id();
    let session = SessionId::parse(&id)?;
    let directory = store.directory(&session);
    let mut runtime = Runtime::new(Box::new(store.clone()), definitions, root.clone());
    if let Some(program) = program {
        runtime = runtime.with_verifier(program.clone()).with_notifier(program);
    }
    let mut guard = Guard::new(runtime, session);
    let recovery = recover(&store, &root);
    for recovered in &recovery.done {
        if let Some(session) = session_of(recovered) {
            guard.attempt_ended_elsewhere(&session, recovered.attempt);
        }
    }
    if let Some((log, why)) = recovery.failed.first() {
        // …/sessions/SESSION/undo/ATTEMPT
        let name = |path: Option<&Path>| {
            let name = path.and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let (session, attempt) = (log.parent().and_then(Path::parent), Some(log.as_path()));
        let again = format!("jackline undo {} {}", name(session), name(attempt));
        let text = format!(
            "{why}; copies of what was lie in `{}`, and `{again}` tries again",
            log.display()
        );
        return Err(TaskError::Unfinished(text));
    }
    let model = model::make(&task.model, None, &named_variable);
    let name = model.borrow().name();
    guard.begin(shown, name, &task.prompt).map_err(TaskError::Session)?;
    let held = hold(&directory).map_err(|error| TaskError::Session(error.to_string()))?;

    let registry = Registry::of_home(store.home());
    let shared = Shared {
        guard: RefCell::new(guard),
        workspace,
        registry: &registry,
        overlay: RefCell::new(registry.begin()),
        contexts: RefCell::new(Contexts::default()),
        workers,
        limits: Limits { depth_max: DEPTHS - 1, ..Limits::default() },
        budgets: resolved.definition.attempts.clone(),
        health: resolved.definition.health,
        directory: directory.clone(),
        session: id.clone(),
        store,
        definition,
        attempts: Cell::new(0),
        calls: Cell::new(0),
        uses: RefCell::default(),
        commands: RefCell::default(),
        stuck: RefCell::default(),
        cancelled,
        hear: RefCell::new(hear),
    };
    let calling = Calling::new(&shared, task, model, Map::new(), None);
    let (internal, trace) = calling.run();
    shared.guard.borrow_mut().end(internal.is_ok());
    calling.tell_asides();
    let stuck = shared.stuck.take();
    drop(held);
    let (public, _) = egress(&internal);
    let trace_file = directory.join(TRACE_FILE);
    Ok(Report { session: id, public, internal, trace, trace_file, recovery, stuck })
}

/// A name that no other session has.
fn new_id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (ms, process) = (now().wall.as_ms(), std::process::id());
    let more = if count == 0 { String::new() } else { format!("-{count}") };
    format!("{PREFIX}{ms}-{process}{more}")
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
