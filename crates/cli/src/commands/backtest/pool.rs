//! Decides on many runs at once, and tells what came of them in their order.
//!
//! Runs know nothing of each other. One thread reads and unpacks, others decide,
//! and the one that was there puts the parts together as if it had been alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use jackline_analysis::open_lines;

use super::files::{File, readable_clients};
use super::format::{Format, recognise};
use super::play::{Batch, Intake, Job, Kind, Part, Shop};

/// More threads would only wait for the one that reads.
const THREADS_MAX: usize = 8;

/// As much as the main thread has: arguments nest, and so do command lines.
const STACK_BYTES: usize = 8 << 20;

/// How often somebody is told how far it is.
const TICK: Duration = Duration::from_millis(100);

type Numbered<T> = (u64, T);

/// Decides on every file. Reading begins while `open` still finds out what to decide by;
/// `each` is given what came of it, in order, and `tick` is called now and then.
pub(super) fn play<'a, E>(
    intake: &'a Intake,
    files: Vec<File>,
    open: impl FnOnce() -> Result<Shop<'a>, E>,
    mut each: impl FnMut(Part),
    mut tick: impl FnMut(&Shop<'_>),
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (jobs, todo) = sync_channel::<Numbered<Job>>(2 * threads);
    let (parts, done) = channel::<Numbered<Part>>();
    let todo = Arc::new(Mutex::new(todo));
    let opened = OnceLock::new();
    thread::scope(|scope| {
        let start = || thread::Builder::new().stack_size(STACK_BYTES);
        // Where no thread can be started, there is nothing to wait for either.
        let reads = start().spawn_scoped(scope, || read(files, intake, Jobs { jobs, next: 0 }));
        // Without it `todo` is dropped, and whoever reads ends, too.
        let shop = open()?;
        let shop = opened.get_or_init(|| shop);
        for _ in 0..threads {
            let (parts, todo) = (parts.clone(), Arc::clone(&todo));
            if start().spawn_scoped(scope, move || work(shop, &todo, &parts)).is_err() {
                break;
            }
        }
        drop((parts, todo));
        if reads.is_err() {
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

fn work(shop: &Shop<'_>, todo: &Mutex<Receiver<Numbered<Job>>>, parts: &Sender<Numbered<Part>>) {
    let mut events = Vec::new();
    loop {
        let job = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, job)) = job else { return };
        if parts.send((number, shop.play(job, &mut events))).is_err() {
            return;
        }
    }
}

/// Numbers jobs as it hands them on.
struct Jobs {
    jobs: SyncSender<Numbered<Job>>,
    next: u64,
}

impl Jobs {
    /// Whether somebody is there to do it: nobody is where there is nothing to decide by.
    fn send(&mut self, job: Job) -> bool {
        let sent = self.jobs.send((self.next, job)).is_ok();
        self.next += 1;
        sent
    }

    fn unreadable(&mut self, file: &Arc<File>, error: String) -> bool {
        let unreadable = Some((Arc::clone(file), error));
        self.send(Job::Said(Box::new(Part { unreadable, ..Part::default() })))
    }
}

/// Hands everything on; ends early where nobody takes it.
fn read(files: Vec<File>, intake: &Intake, mut jobs: Jobs) {
    for file in files {
        if !read_one(&Arc::new(file), intake, &mut jobs) {
            return;
        }
    }
}

fn read_one(file: &Arc<File>, intake: &Intake, jobs: &mut Jobs) -> bool {
    let found =
        open_lines(&file.path, Arc::default()).and_then(|mut source| recognise(&mut source));
    let format = match found {
        Ok(format) => format,
        Err(error) => return jobs.unreadable(file, error.to_string()),
    };
    match format {
        Format::Trajectories => runs(file, intake, jobs),
        Format::Journal => jobs.send(Job::Session(Arc::clone(file), Kind::Journal)),
        Format::Transcript(client) => {
            jobs.send(Job::Session(Arc::clone(file), Kind::Transcript(client)))
        }
        // Others may keep files of theirs there.
        Format::Empty | Format::Unknown if !file.named => {
            intake.read.fetch_add(file.bytes, Ordering::Relaxed);
            true
        }
        Format::Empty => jobs.unreadable(file, "it is empty".to_owned()),
        Format::Unknown => {
            let text = format!(
                "its lines are neither runs (`steps`), records of a journal, nor a transcript of {}",
                readable_clients()
            );
            jobs.unreadable(file, text)
        }
    }
}

fn runs(file: &Arc<File>, intake: &Intake, jobs: &mut Jobs) -> bool {
    let mut source = match open_lines(&file.path, Arc::clone(&intake.read)) {
        Ok(source) => source,
        Err(error) => return jobs.unreadable(file, error.to_string()),
    };
    let mut number = 0;
    loop {
        let (batch, result) = Batch::read(file, &mut source, &mut number, intake.room());
        let over = batch.is_none();
        if batch.is_some_and(|batch| !jobs.send(Job::Runs(batch))) {
            return false;
        }
        if let Err(error) = result {
            return jobs.unreadable(file, format!("{error}; what comes before was decided"));
        }
        if over {
            return true;
        }
    }
}
