//! The workers of a process: started when wanted, kept warm, and replaced when lost.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ending::Ending;
use crate::limits::Limits;
use crate::protocol::{Check, FromWorker, Known, Objection, ToWorker};
use crate::worker::{Lost, Patience, StartError, Worker};

/// What the worker is called.
const NAME: &str = "jackline-sandbox";

/// How long a worker may take until it is there.
const START_MS: u64 = 5_000;

/// How many are kept warm: one that runs a program, and one for a tool that it forged.
const IDLE_MAX: usize = 2;

/// After so many programs a worker is replaced, so that nothing adds up in it.
const RUNS_MAX: u32 = 1_000;

/// Where the worker is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// The program itself. Unless told, the one beside this program, or else in `PATH`.
    pub path: Option<PathBuf>,
}

/// There is no worker, and so nothing can be checked or run.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It is not built, or not where it is looked for.
    #[error(
        "`{NAME}` is neither beside this program nor in PATH; \
         `cargo build --release -p {NAME}` builds it"
    )]
    Missing,
    /// It does not start.
    #[error("`{}` can't be started: {reason}; `cargo build --release -p {NAME}` builds it", path.display())]
    Start {
        /// Which program.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The workers of a process. Copies share them.
#[derive(Debug, Clone)]
pub struct Workers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sandbox: Sandbox,
    ending: Ending,
    idle: Mutex<Vec<Worker>>,
}

impl Workers {
    /// None yet: the first is started when it is wanted.
    pub fn new(sandbox: Sandbox) -> Self {
        Self::until(sandbox, Ending::default())
    }

    /// The same, for programs that somebody may want to end while they run.
    pub fn until(sandbox: Sandbox, ending: Ending) -> Self {
        Self { shared: Arc::new(Shared { sandbox, ending, idle: Mutex::default() }) }
    }

    /// Has a worker ready, or says why there is none, before anything hangs on it.
    pub fn ready(&self) -> Result<(), WorkerError> {
        let worker = self.take()?;
        self.give_back(worker);
        Ok(())
    }

    /// One that nobody uses: a warm one, or a new one.
    pub(crate) fn take(&self) -> Result<Worker, WorkerError> {
        loop {
            let idle = self.idle().pop();
            let Some(mut worker) = idle else { return self.start() };
            if worker.is_alive() {
                return Ok(worker);
            }
        }
    }

    /// Takes one back that is in order. One that is not is simply dropped, and ends.
    pub(crate) fn give_back(&self, worker: Worker) {
        let mut idle = self.idle();
        if worker.runs < RUNS_MAX && idle.len() < IDLE_MAX {
            idle.push(worker);
        }
    }

    /// Everything that is wrong with a program, which is not run.
    pub(crate) fn check(
        &self,
        source: &str,
        known: Known,
        limits: &Limits,
    ) -> Result<Vec<Objection>, CheckError> {
        let mut worker = self.take()?;
        let mut patience = self.patience(limits.deadline_ms);
        let check = ToWorker::Check(Check { source: source.to_owned(), known });
        worker.send(&check, &mut patience)?;
        let FromWorker::Objections(objections) =
            worker.receive(&mut patience, limits.line_bytes_max())?
        else {
            return Err(Lost::Garbled.into());
        };
        self.give_back(worker);
        Ok(objections)
    }

    /// How long a worker may be silent, for whoever may want its program to end.
    pub(crate) fn patience(&self, ms: u64) -> Patience {
        Patience::new(ms, self.shared.ending.clone())
    }

    fn start(&self) -> Result<Worker, WorkerError> {
        let path = self.shared.sandbox.find().ok_or(WorkerError::Missing)?;
        // One that is there already does not take long.
        let mut patience = Patience::new(START_MS, Ending::default());
        Worker::start(&path, &mut patience).map_err(|error| match error {
            StartError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                WorkerError::Start { path, reason: "nothing is there".to_owned() }
            }
            error => WorkerError::Start { path, reason: error.to_string() },
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a program could not be checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl Sandbox {
    /// The program that was named, or the first that is there.
    fn find(&self) -> Option<PathBuf> {
        if let Some(path) = &self.path {
            return Some(path.clone());
        }
        let beside = std::env::current_exe().ok()?.parent().map(Path::to_path_buf);
        #[expect(clippy::disallowed_methods, reason = "where programs are is said there alone")]
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories = beside.into_iter().chain(std::env::split_paths(&path));
        directories.map(|directory| directory.join(NAME)).find(|path| path.is_file())
    }
}
