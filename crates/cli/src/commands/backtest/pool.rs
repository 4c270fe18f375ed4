//! Decides on many runs in parallel, and reports the results in the order of the input.
//!
//! Runs are independent. One thread reads and decompresses files, several threads decide, and the
//! main thread puts the results in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use jackline_analysis::open_lines;

use super::files::{RecordedFile, readable_clients};
use super::format::{RecordingFormat, detect_format};
use super::play::{
    BacktestContext, BacktestJob, BacktestPart, InputBuffers, RunBatch, SessionSource,
};

/// More threads would only wait for the reading thread.
const THREADS_MAX: usize = 8;

/// The stack size of a main thread, because arguments and command lines can be deeply nested.
const STACK_BYTES: usize = 8 << 20;

/// How often the progress is updated.
const TICK: Duration = Duration::from_millis(100);

type Numbered<T> = (u64, T);

/// Decides on all files. Reading starts while `open` still loads the definition. `each` receives
/// the results in order, and `tick` is called regularly.
pub(super) fn run_jobs<'a, E>(
    intake: &'a InputBuffers,
    files: Vec<RecordedFile>,
    open: impl FnOnce() -> Result<BacktestContext<'a>, E>,
    mut each: impl FnMut(BacktestPart),
    mut tick: impl FnMut(&BacktestContext<'_>),
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (jobs, todo) = sync_channel::<Numbered<BacktestJob>>(2 * threads);
    let (parts, done) = channel::<Numbered<BacktestPart>>();
    let todo = Arc::new(Mutex::new(todo));
    let opened = OnceLock::new();
    thread::scope(|scope| {
        let start = || thread::Builder::new().stack_size(STACK_BYTES);
        // If no thread can be started, the loop below must not wait for results.
        let reader =
            start().spawn_scoped(scope, || queue_files(files, intake, JobQueue { jobs, next: 0 }));
        // On an error `todo` is dropped, which also ends the reading thread.
        let shop = open()?;
        let shop = opened.get_or_init(|| shop);
        for _ in 0..threads {
            let (parts, todo) = (parts.clone(), Arc::clone(&todo));
            if start().spawn_scoped(scope, move || run_worker(shop, &todo, &parts)).is_err() {
                break;
            }
        }
        drop((parts, todo));
        if reader.is_err() {
            return Ok(());
        }
        let mut early = BTreeMap::new();
        let mut next = 0;
        loop {
            match done.recv_timeout(TICK) {
                Ok((number, part)) => {
                    early.insert(number, part);
                    while let Some(part) = early.remove(&next) {
                        next += 1;
                        each(part);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            tick(shop);
        }
    })
}

fn run_worker(
    shop: &BacktestContext<'_>,
    todo: &Mutex<Receiver<Numbered<BacktestJob>>>,
    parts: &Sender<Numbered<BacktestPart>>,
) {
    let mut events = Vec::new();
    loop {
        let job = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, job)) = job else { return };
        if parts.send((number, shop.run_job(job, &mut events))).is_err() {
            return;
        }
    }
}

/// Numbers the jobs and sends them to the deciding threads.
struct JobQueue {
    jobs: SyncSender<Numbered<BacktestJob>>,
    next: u64,
}

impl JobQueue {
    /// Sends a job; false if no thread receives it, because no definition could be loaded.
    fn send(&mut self, job: BacktestJob) -> bool {
        let sent = self.jobs.send((self.next, job)).is_ok();
        self.next += 1;
        sent
    }

    fn unreadable(&mut self, file: &Arc<RecordedFile>, error: String) -> bool {
        let unreadable = Some((Arc::clone(file), error));
        self.send(BacktestJob::Finished(Box::new(BacktestPart {
            unreadable,
            ..BacktestPart::default()
        })))
    }
}

/// Queues all files; stops early if no thread receives the jobs.
fn queue_files(files: Vec<RecordedFile>, intake: &InputBuffers, mut jobs: JobQueue) {
    for file in files {
        if !queue_file(&Arc::new(file), intake, &mut jobs) {
            return;
        }
    }
}

fn queue_file(file: &Arc<RecordedFile>, intake: &InputBuffers, jobs: &mut JobQueue) -> bool {
    let found =
        open_lines(&file.path, Arc::default()).and_then(|mut source| detect_format(&mut source));
    let format = match found {
        Ok(format) => format,
        Err(error) => return jobs.unreadable(file, error.to_string()),
    };
    match format {
        RecordingFormat::Trajectories => queue_runs(file, intake, jobs),
        RecordingFormat::Journal => {
            jobs.send(BacktestJob::Session(Arc::clone(file), SessionSource::Journal))
        }
        RecordingFormat::Transcript(client) => {
            jobs.send(BacktestJob::Session(Arc::clone(file), SessionSource::Transcript(client)))
        }
        // A directory can contain unrelated files.
        RecordingFormat::Empty | RecordingFormat::Unknown if !file.named => {
            intake.read.fetch_add(file.bytes, Ordering::Relaxed);
            true
        }
        RecordingFormat::Empty => jobs.unreadable(file, "it is empty".to_owned()),
        RecordingFormat::Unknown => {
            let text = format!(
                "unknown format: its lines are not runs (`steps`), journal records, or a transcript of {}",
                readable_clients()
            );
            jobs.unreadable(file, text)
        }
    }
}

fn queue_runs(file: &Arc<RecordedFile>, intake: &InputBuffers, jobs: &mut JobQueue) -> bool {
    let mut source = match open_lines(&file.path, Arc::clone(&intake.read)) {
        Ok(source) => source,
        Err(error) => return jobs.unreadable(file, error.to_string()),
    };
    let mut number = 0;
    loop {
        let (batch, result) = RunBatch::read(file, &mut source, &mut number, intake.take_buffer());
        let is_end = batch.is_none();
        if batch.is_some_and(|batch| !jobs.send(BacktestJob::Runs(batch))) {
            return false;
        }
        if let Err(error) = result {
            return jobs
                .unreadable(file, format!("{error}; the part before the error was decided"));
        }
        if is_end {
            return true;
        }
    }
}
