//! A pool of workers: started on demand, reused, and replaced when lost.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::program_cancel::ProgramCancel;
use crate::program_limits::ProgramLimits;
use crate::protocol::{Callables, CheckRequest, FromWorker, ProgramViolation, ToWorker};
use crate::sandbox_worker::{SandboxWorker, WaitBudget, WorkerLoss, WorkerStartError};

/// The file name of the worker program.
const PROGRAM_NAME: &str = "jackline-sandbox";

/// How long a worker may take to start.
const START_MS: u64 = 5_000;

/// How many idle workers are kept: one for a program, and one for a tool that it generated.
const IDLE_MAX: usize = 2;

/// How many programs a worker may run before it is replaced, so that leaks do not add up.
const RUNS_MAX: u32 = 1_000;

/// Where the worker program is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// The path, from the directory of this process. By default the program is searched beside the
    /// running one, then in `PATH`.
    pub path: Option<PathBuf>,
}

/// There is no worker, so that no program can be checked or run.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The worker program was not found.
    #[error(
        "`{PROGRAM_NAME}` is neither beside this program nor in PATH; \
         build it with `cargo build --release -p {PROGRAM_NAME}`"
    )]
    Missing,
    /// The worker program does not start.
    #[error("`{}` can't be started: {reason}; check the path, or build the worker with `cargo build --release -p {PROGRAM_NAME}`", path.display())]
    Start {
        /// The path of the program.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// The workers of a process. Clones share them.
#[derive(Debug, Clone)]
pub struct WorkerPool {
    state: Arc<PoolState>,
}

#[derive(Debug)]
struct PoolState {
    sandbox: Sandbox,
    cancel: ProgramCancel,
    idle: Mutex<Vec<SandboxWorker>>,
}

impl WorkerPool {
    /// An empty pool: the first worker starts on demand.
    pub fn new(sandbox: Sandbox) -> Self {
        Self::with_cancel(sandbox, ProgramCancel::default())
    }

    /// The same, with a signal that can end running programs.
    pub fn with_cancel(sandbox: Sandbox, ending: ProgramCancel) -> Self {
        Self { state: Arc::new(PoolState { sandbox, cancel: ending, idle: Mutex::default() }) }
    }

    /// Starts a worker if none is idle, so that a problem is reported before a run starts.
    pub fn ensure_available(&self) -> Result<(), WorkerError> {
        let worker = self.take()?;
        self.give_back(worker);
        Ok(())
    }

    /// An idle worker, or a new one.
    pub(crate) fn take(&self) -> Result<SandboxWorker, WorkerError> {
        loop {
            let idle = self.idle().pop();
            let Some(mut worker) = idle else { return self.start() };
            if worker.is_alive() {
                return Ok(worker);
            }
        }
    }

    /// Returns a worker that works. A broken one is dropped instead, which ends it.
    pub(crate) fn give_back(&self, worker: SandboxWorker) {
        let mut idle = self.idle();
        if worker.runs < RUNS_MAX && idle.len() < IDLE_MAX {
            idle.push(worker);
        }
    }

    /// All violations of a program. The program does not run.
    pub(crate) fn check(
        &self,
        source: &str,
        known: Callables,
        limits: &ProgramLimits,
    ) -> Result<Vec<ProgramViolation>, CheckError> {
        let mut worker = self.take()?;
        let mut patience = self.wait_budget(limits.deadline_ms);
        let check = ToWorker::Check(CheckRequest { source: source.to_owned(), known });
        worker.send(&check, &mut patience)?;
        let FromWorker::Objections(objections) =
            worker.receive(&mut patience, limits.line_bytes_max())?
        else {
            return Err(WorkerLoss::ProtocolBroken.into());
        };
        self.give_back(worker);
        Ok(objections)
    }

    /// The wait budget for a worker, with the cancel signal of the pool.
    pub(crate) fn wait_budget(&self, ms: u64) -> WaitBudget {
        WaitBudget::new(ms, self.state.cancel.clone())
    }

    fn start(&self) -> Result<SandboxWorker, WorkerError> {
        let path = self.state.sandbox.find().ok_or(WorkerError::Missing)?;
        // The start of an existing program is fast, so it can't be cancelled.
        let mut patience = WaitBudget::new(START_MS, ProgramCancel::default());
        // The worker starts in `/`, where a relative path would lead elsewhere.
        let program = if path.exists() { std::path::absolute(&path) } else { Ok(path.clone()) };
        let worker = program
            .map_err(WorkerStartError::Io)
            .and_then(|program| SandboxWorker::start(&program, &mut patience));
        worker.map_err(|error| match error {
            WorkerStartError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                WorkerError::Start { path, reason: "the file does not exist".to_owned() }
            }
            error => WorkerError::Start { path, reason: error.to_string() },
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SandboxWorker>> {
        self.state.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a program could not be checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(transparent)]
    Lost(#[from] WorkerLoss),
}

impl Sandbox {
    /// The configured path, or the first file that exists.
    fn find(&self) -> Option<PathBuf> {
        if let Some(path) = &self.path {
            return Some(path.clone());
        }
        let beside = std::env::current_exe().ok()?.parent().map(Path::to_path_buf);
        #[expect(
            clippy::disallowed_methods,
            reason = "only `PATH` lists the directories of programs"
        )]
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories = beside.into_iter().chain(std::env::split_paths(&path));
        directories.map(|directory| directory.join(PROGRAM_NAME)).find(|path| path.is_file())
    }
}
