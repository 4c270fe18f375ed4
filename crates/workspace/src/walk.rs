//! Walks a directory tree like ripgrep, but with descriptors instead of paths.
//!
//! A directory is opened beneath the root without following a link, and its files are opened in it
//! by their bare names. So a program that swaps directories and links during the walk can hide
//! files, but can't show files from outside.

mod ignore_files;

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use crate::jail::{Jail, file_type};
use crate::time::SearchDeadline;
use ignore_files::IgnoreFiles;

/// An open directory of the walk.
pub(crate) struct WalkDirectory {
    pub(crate) opened: OwnedFd,
    pub(crate) path: PathBuf,
}

/// Receives the entries of a walk. Every thread has its own visitor.
pub(crate) trait WalkVisitor: Send {
    /// Visits a regular file, according to its directory entry. Returns whether to continue.
    fn visit_file(&mut self, directory: &WalkDirectory, name: &OsStr) -> bool;

    /// Visits an entry that is ignored or hidden.
    fn visit_skipped(&mut self, _path: &Path, _kind: FileType) {}
}

/// Which entries a walk visits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkScope {
    /// Entries that are neither hidden nor ignored by git.
    Visible,
    /// All entries except those inside of `.git`.
    All,
}

/// The settings of a walk.
pub(crate) struct TreeWalk<'j> {
    pub(crate) jail: &'j Jail,
    pub(crate) scope: WalkScope,
    /// One thread walks in sorted order; several threads have no fixed order.
    pub(crate) threads: usize,
    pub(crate) entries_max: u64,
    pub(crate) deadline: SearchDeadline,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// All entries were visited.
    Complete,
    /// The limit of entries was reached, or a visitor ended the walk.
    Stopped,
    /// The deadline passed.
    TimedOut,
}

/// How many files one thread passes to another at once.
const FILES_PER_JOB: usize = 128;

enum WalkJob {
    Open(PathBuf, Option<Arc<IgnoreFiles>>),
    Files(Arc<WalkDirectory>, Vec<OsString>),
}

/// The state that the threads of a walk share.
struct WalkState<'w> {
    walk: &'w TreeWalk<'w>,
    queue: Mutex<WalkQueue>,
    ready: Condvar,
    entries: AtomicU64,
    is_stopped: AtomicBool,
    is_timed_out: AtomicBool,
}

struct WalkQueue {
    // The newest job first, so that few directories are open at once.
    jobs: Vec<WalkJob>,
    busy: usize,
}

impl TreeWalk<'_> {
    /// Visits everything below `start`. Returns the visitors, and how the walk ended.
    pub(crate) fn run<V: WalkVisitor>(&self, start: &Path, visitors: Vec<V>) -> (Vec<V>, WalkEnd) {
        let ignores = match self.scope {
            WalkScope::Visible => IgnoreFiles::above(self.jail, start),
            WalkScope::All => None,
        };
        let first = WalkJob::Open(start.to_owned(), ignores);
        let shared = WalkState {
            walk: self,
            queue: Mutex::new(WalkQueue { jobs: vec![first], busy: 0 }),
            ready: Condvar::new(),
            entries: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            is_timed_out: AtomicBool::new(false),
        };
        let visitors = if visitors.len() < 2 {
            visitors.into_iter().map(|visitor| shared.run_jobs(visitor)).collect()
        } else {
            std::thread::scope(|scope| {
                let shared = &shared;
                let run = |visitor| scope.spawn(move || shared.run_jobs(visitor));
                let threads: Vec<_> = visitors.into_iter().map(run).collect();
                // A panic in one thread fails the whole call; the adapter catches it.
                let join = |thread: std::thread::ScopedJoinHandle<'_, V>| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            })
        };
        let reached = match (&shared.is_timed_out, &shared.is_stopped) {
            (late, _) if late.load(Ordering::Relaxed) => WalkEnd::TimedOut,
            (_, stopped) if stopped.load(Ordering::Relaxed) => WalkEnd::Stopped,
            _ => WalkEnd::Complete,
        };
        (visitors, reached)
    }
}

impl WalkState<'_> {
    fn run_jobs<V: WalkVisitor>(&self, mut visitor: V) -> V {
        while let Some(work) = self.next_job() {
            let job = JobGuard(self);
            match work {
                WalkJob::Open(path, ignores) => {
                    self.visit_directory(path, ignores.as_ref(), &mut visitor);
                }
                WalkJob::Files(directory, names) => {
                    self.visit_files(&directory, &names, &mut visitor);
                }
            }
            drop(job);
        }
        visitor
    }

    fn lock(&self) -> MutexGuard<'_, WalkQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next job. Returns `None` if there is no job and no other thread can add one.
    fn next_job(&self) -> Option<WalkJob> {
        let mut queue = self.lock();
        loop {
            if self.is_stopped.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(work) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(work);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether to continue: no thread has stopped the walk, and the deadline has not passed.
    fn should_continue(&self) -> bool {
        if self.walk.deadline.has_passed() {
            self.is_timed_out.store(true, Ordering::Relaxed);
            self.stop();
        }
        !self.is_stopped.load(Ordering::Relaxed)
    }

    fn visit_files<V: WalkVisitor>(
        &self,
        directory: &WalkDirectory,
        names: &[OsString],
        visitor: &mut V,
    ) {
        for name in names {
            if !self.should_continue() {
                return;
            }
            if !visitor.visit_file(directory, name) {
                return self.stop();
            }
        }
    }

    fn visit_directory<V: WalkVisitor>(
        &self,
        path: PathBuf,
        above: Option<&Arc<IgnoreFiles>>,
        visitor: &mut V,
    ) {
        if !self.should_continue() {
            return;
        }
        // Skip a directory that vanished, is not readable or became a link.
        let Ok(opened) = self.walk.jail.open_without_links(&path) else { return };
        let mut listing: Vec<(OsString, FileType)> = Vec::new();
        let listed = for_each_entry(&opened, |name, kind| {
            listing.push((name.to_owned(), kind));
            self.entries.fetch_add(1, Ordering::Relaxed) < self.walk.entries_max
        });
        match listed {
            Ok(true) => {}
            Ok(false) => self.stop(),
            Err(_) => return,
        }
        listing.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let directory = Arc::new(WalkDirectory { opened, path });
        let ignores = match self.walk.scope {
            WalkScope::Visible => IgnoreFiles::of(&directory, &listing, above),
            WalkScope::All => None,
        };
        let (mut files, mut work) = (Vec::new(), Vec::new());
        for (name, hint) in listing {
            let kind = match hint {
                FileType::Unknown => statat(&directory.opened, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| file_type(&stat)),
                kind => kind,
            };
            if !matches!(kind, FileType::RegularFile | FileType::Directory) {
                continue;
            }
            let path = directory.path.join(&name);
            let is_dir = kind == FileType::Directory;
            let skip = match self.walk.scope {
                WalkScope::Visible => {
                    ignore_files::should_skip(ignores.as_deref(), &path, &name, is_dir)
                }
                WalkScope::All => name == ".git",
            };
            if skip {
                visitor.visit_skipped(&path, kind);
            } else if is_dir {
                work.push(WalkJob::Open(path, ignores.clone()));
            } else {
                files.push(name);
            }
        }
        work.reverse();
        let mut files = files.chunks(FILES_PER_JOB).map(<[OsString]>::to_vec);
        let own = files.next();
        let mut batches: Vec<WalkJob> =
            files.map(|names| WalkJob::Files(Arc::clone(&directory), names)).collect();
        batches.reverse();
        work.extend(batches);
        if self.walk.threads > 1 && !work.is_empty() {
            self.lock().jobs.append(&mut work);
            self.ready.notify_all();
        }
        if let Some(names) = own {
            self.visit_files(&directory, &names, visitor);
        }
        self.lock().jobs.append(&mut work);
    }
}

/// Marks a job as finished, even after a panic; otherwise the other threads would wait forever.
struct JobGuard<'w>(&'w WalkState<'w>);

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
        self.0.lock().busy -= 1;
        self.0.ready.notify_all();
    }
}

/// Calls `each` for the entries of a directory, in any order, until it returns false. Returns
/// whether all entries were visited.
pub(crate) fn for_each_entry(
    dir: impl AsFd,
    mut each: impl FnMut(&OsStr, FileType) -> bool,
) -> Result<bool, Errno> {
    let mut buffer = vec![MaybeUninit::uninit(); 32 << 10].into_boxed_slice();
    let mut listing = RawDir::new(dir, &mut buffer);
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && !each(OsStr::from_bytes(name), entry.file_type()) {
            return Ok(false);
        }
    }
    Ok(true)
}
