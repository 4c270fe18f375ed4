//! Goes through a tree as ripgrep does, by descriptors instead of paths.
//!
//! A directory is opened beneath the root with no link on the way, and its files
//! are opened in it by their bare names. So whoever swaps directories and links
//! while we walk can hide things from us, and show us nothing from outside.

mod ignores;

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use crate::jail::{Jail, kind};
use crate::time::Deadline;
use ignores::Ignores;

/// A directory that a walk is in.
pub(crate) struct Directory {
    pub(crate) opened: OwnedFd,
    pub(crate) path: PathBuf,
}

/// Whoever wants to know what a walk comes by. Every thread has one.
pub(crate) trait Visitor: Send {
    /// A regular file, as far as its directory says. Says whether to go on.
    fn file(&mut self, directory: &Directory, name: &OsStr) -> bool;

    /// Something that is ignored or hidden.
    fn skipped(&mut self, _path: &Path, _kind: FileType) {}
}

/// Which entries a walk goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What git would show: neither hidden nor ignored.
    Usual,
    /// All but the insides of `.git`.
    Everything,
}

/// A walk to be made.
pub(crate) struct Walk<'j> {
    pub(crate) jail: &'j Jail,
    pub(crate) scope: Scope,
    /// One thread goes in order; several go anyhow.
    pub(crate) threads: usize,
    pub(crate) entries_max: u64,
    pub(crate) deadline: Deadline,
}

/// How far a walk came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Everything was seen.
    End,
    /// There was more than anybody looks at, or a visitor had enough.
    Bound,
    /// The time was up.
    Time,
}

/// How many files are handed from thread to thread at once.
const BATCH: usize = 128;

enum Work {
    Open(PathBuf, Option<Arc<Ignores>>),
    Files(Arc<Directory>, Vec<OsString>),
}

/// What the threads of a walk share.
struct Shared<'w> {
    walk: &'w Walk<'w>,
    queue: Mutex<Queue>,
    ready: Condvar,
    entries: AtomicU64,
    stopped: AtomicBool,
    late: AtomicBool,
}

struct Queue {
    // The newest first, so that few directories are open at once.
    work: Vec<Work>,
    busy: usize,
}

impl Walk<'_> {
    /// Goes through everything below `start`. Gives back the visitors, and how far
    /// the walk came.
    pub(crate) fn run<V: Visitor>(&self, start: &Path, visitors: Vec<V>) -> (Vec<V>, Reached) {
        let ignores = match self.scope {
            Scope::Usual => Ignores::above(self.jail, start),
            Scope::Everything => None,
        };
        let first = Work::Open(start.to_owned(), ignores);
        let shared = Shared {
            walk: self,
            queue: Mutex::new(Queue { work: vec![first], busy: 0 }),
            ready: Condvar::new(),
            entries: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            late: AtomicBool::new(false),
        };
        let visitors = if visitors.len() < 2 {
            visitors.into_iter().map(|visitor| shared.run(visitor)).collect()
        } else {
            std::thread::scope(|scope| {
                let shared = &shared;
                let run = |visitor| scope.spawn(move || shared.run(visitor));
                let threads: Vec<_> = visitors.into_iter().map(run).collect();
                // A thread that panicked takes the whole call with it, to the adapter's door.
                let join = |thread: std::thread::ScopedJoinHandle<'_, V>| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            })
        };
        let reached = match (&shared.late, &shared.stopped) {
            (late, _) if late.load(Ordering::Relaxed) => Reached::Time,
            (_, stopped) if stopped.load(Ordering::Relaxed) => Reached::Bound,
            _ => Reached::End,
        };
        (visitors, reached)
    }
}

impl Shared<'_> {
    fn run<V: Visitor>(&self, mut visitor: V) -> V {
        while let Some(work) = self.next() {
            let done = Done(self);
            match work {
                Work::Open(path, ignores) => self.open(path, ignores.as_ref(), &mut visitor),
                Work::Files(directory, names) => self.files(&directory, &names, &mut visitor),
            }
            drop(done);
        }
        visitor
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece of work; none when there is none and nobody can make more.
    fn next(&self) -> Option<Work> {
        let mut queue = self.lock();
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(work) = queue.work.pop() {
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
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether to go on: nobody has stopped, and there is time.
    fn goes_on(&self) -> bool {
        if self.walk.deadline.is_over() {
            self.late.store(true, Ordering::Relaxed);
            self.stop();
        }
        !self.stopped.load(Ordering::Relaxed)
    }

    fn files<V: Visitor>(&self, directory: &Directory, names: &[OsString], visitor: &mut V) {
        for name in names {
            if !self.goes_on() {
                return;
            }
            if !visitor.file(directory, name) {
                return self.stop();
            }
        }
    }

    fn open<V: Visitor>(&self, path: PathBuf, above: Option<&Arc<Ignores>>, visitor: &mut V) {
        if !self.goes_on() {
            return;
        }
        // What vanished, may not be read or became a link is not there for us.
        let Ok(opened) = self.walk.jail.open_walked(&path) else { return };
        let mut found: Vec<(OsString, FileType)> = Vec::new();
        let listed = entries(&opened, |name, kind| {
            found.push((name.to_owned(), kind));
            self.entries.fetch_add(1, Ordering::Relaxed) < self.walk.entries_max
        });
        match listed {
            Ok(true) => {}
            Ok(false) => self.stop(),
            Err(_) => return,
        }
        found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let directory = Arc::new(Directory { opened, path });
        let ignores = match self.walk.scope {
            Scope::Usual => Ignores::of(&directory, &found, above),
            Scope::Everything => None,
        };
        let (mut files, mut work) = (Vec::new(), Vec::new());
        for (name, hint) in found {
            let kind = match hint {
                FileType::Unknown => statat(&directory.opened, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |look| kind(&look)),
                known => known,
            };
            if !matches!(kind, FileType::RegularFile | FileType::Directory) {
                continue;
            }
            let path = directory.path.join(&name);
            let is_dir = kind == FileType::Directory;
            let skip = match self.walk.scope {
                Scope::Usual => ignores::skips(ignores.as_deref(), &path, &name, is_dir),
                Scope::Everything => name == ".git",
            };
            if skip {
                visitor.skipped(&path, kind);
            } else if is_dir {
                work.push(Work::Open(path, ignores.clone()));
            } else {
                files.push(name);
            }
        }
        work.reverse();
        let mut files = files.chunks(BATCH).map(<[OsString]>::to_vec);
        let own = files.next();
        let mut batches: Vec<Work> =
            files.map(|names| Work::Files(Arc::clone(&directory), names)).collect();
        batches.reverse();
        work.extend(batches);
        if self.walk.threads > 1 && !work.is_empty() {
            self.lock().work.append(&mut work);
            self.ready.notify_all();
        }
        if let Some(names) = own {
            self.files(&directory, &names, visitor);
        }
        self.lock().work.append(&mut work);
    }
}

/// Marks a piece of work as done, even if it ends in a panic: the others would wait forever.
struct Done<'w>(&'w Shared<'w>);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
        self.0.lock().busy -= 1;
        self.0.ready.notify_all();
    }
}

/// Goes through the entries of a directory as they come, while `each` says so.
/// Says whether it saw them all.
pub(crate) fn entries(
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
