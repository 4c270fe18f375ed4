//! Decides on many runs at once, and tells what came of them in their order.
//!
//! Runs know nothing of each other. One thread reads and unpacks, others decide,
//! and the one that was there puts the parts together as if it had been alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jackline_runtime::{Memo, open_lines};

use super::files::File;
use super::format::{Format, recognise};
use super::play::{Batch, Job, Kind, Part, Shop};

/// More threads would only wait for the one that reads.
const THREADS_MAX: usize = 8;

/// As much as the main thread has: arguments nest, and so do command lines.
const STACK_BYTES: usize = 8 << 20;

/// How often somebody is told how far it is.
const TICK: Duration = Duration::from_millis(100);

type Numbered<T> = (u64, T);

/// Decides on every file. `each` is given what came of it, in order, and `tick`
/// is called now and then.
pub(super) fn play(
    shop: &Shop<'_>,
    files: Vec<File>,
    mut each: impl FnMut(Part),
    mut tick: impl FnMut(),
) {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (jobs, todo) = sync_channel::<Numbered<Job>>(2 * threads);
    let (parts, done) = channel::<Numbered<Part>>();
    let todo = Mutex::new(todo);
    thread::scope(|scope| {
        let start = || thread::Builder::new().stack_size(STACK_BYTES);
        // Where no thread can be started, there is nothing to wait for either.
        let reads = start().spawn_scoped(scope, || read(files, shop, Jobs { jobs, next: 0 }));
        let todo = &todo;
        for _ in 0..threads {
            let parts = parts.clone();
            if start().spawn_scoped(scope, move || work(shop, todo, &parts)).is_err() {
                break;
            }
        }
        drop(parts);
        if reads.is_err() {
            return;
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
                Err(RecvTimeoutError::Disconnected) => break,
            }
            tick();
        }
    });
}

fn work(shop: &Shop<'_>, todo: &Mutex<Receiver<Numbered<Job>>>, parts: &Sender<Numbered<Part>>) {
    let mut memo = Memo::default();
    loop {
        let job = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, job)) = job else { return };
        if parts.send((number, shop.play(job, &mut memo))).is_err() {
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
    fn send(&mut self, job: Job) {
        // Those who work only leave when there is nothing left.
        let _ = self.jobs.send((self.next, job));
        self.next += 1;
    }

    fn unreadable(&mut self, file: &Arc<File>, error: String) {
        let unreadable = Some((Arc::clone(file), error));
        self.send(Job::Said(Part { unreadable, ..Part::default() }));
    }
}

fn read(files: Vec<File>, shop: &Shop<'_>, mut jobs: Jobs) {
    for file in files {
        let file = Arc::new(file);
        let found =
            open_lines(&file.path, Arc::default()).and_then(|mut source| recognise(&mut source));
        let format = match found {
            Ok(format) => format,
            Err(error) => {
                jobs.unreadable(&file, error.to_string());
                continue;
            }
        };
        match format {
            Format::Trajectories => runs(&file, shop, &mut jobs),
            Format::Journal => jobs.send(Job::Session(file, Kind::Journal)),
            Format::Transcript => jobs.send(Job::Session(file, Kind::Transcript)),
            // Others may keep files of theirs there.
            Format::Empty | Format::Unknown if !file.named => {
                shop.read.fetch_add(file.bytes, Ordering::Relaxed);
            }
            Format::Empty => jobs.unreadable(&file, "it is empty".to_owned()),
            Format::Unknown => {
                let text = "its lines are neither runs (`steps`), records of a journal, nor a \
                            transcript of Claude Code";
                jobs.unreadable(&file, text.to_owned());
            }
        }
    }
}

fn runs(file: &Arc<File>, shop: &Shop<'_>, jobs: &mut Jobs) {
    let mut source = match open_lines(&file.path, Arc::clone(&shop.read)) {
        Ok(source) => source,
        Err(error) => return jobs.unreadable(file, error.to_string()),
    };
    let mut number = 0;
    loop {
        let (batch, result) = Batch::read(file, &mut source, &mut number, shop.room());
        let over = batch.is_none();
        if let Some(batch) = batch {
            jobs.send(Job::Runs(batch));
        }
        if let Err(error) = result {
            return jobs.unreadable(file, format!("{error}; what comes before was decided"));
        }
        if over {
            return;
        }
    }
}
