//! Whether somebody wants the run to end, asked while a command or a model is at work.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jackline_engine::SessionPhase;
use jackline_engine::facts::Markers;
use jackline_host::off::off_now;
use jackline_runtime::verification::{end_checks, is_checking};

use crate::run_journal::RunJournal;

/// What is looked at: a person's file, the journal, a signal, and whether the workspace is
/// still there.
#[derive(Debug)]
pub(crate) struct Lookout {
    workspace: PathBuf,
    /// Which directory it was at the beginning, by its device and number.
    directory: Option<(u64, u64)>,
    stop_file: PathBuf,
    pause_file: PathBuf,
    journal: RunJournal,
    cancelled: Arc<AtomicBool>,
    /// How long the journal was when it was last read.
    bytes: AtomicU64,
    /// Whether the session was over then, or paused.
    stopped: AtomicBool,
    paused: AtomicBool,
}

impl Lookout {
    pub(crate) fn new(workspace: &Path, journal: RunJournal, cancelled: Arc<AtomicBool>) -> Self {
        let file = |name: &str| workspace.join(name);
        Self {
            workspace: workspace.to_owned(),
            directory: directory(workspace),
            stop_file: file(Markers::STOP),
            pause_file: file(Markers::PAUSE),
            journal,
            cancelled,
            bytes: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            paused: AtomicBool::new(false),
        }
    }

    /// Whether a signal came.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Whether nothing may go on any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled()
            || self.stop_file.symlink_metadata().is_ok()
            || self.is_gone()
            || self.is_stopped()
    }

    /// Whether nothing may go on now. A program that has begun is ended then: what it did is
    /// undone, so nobody has to wait until it is through.
    pub(crate) fn is_held(&self) -> bool {
        self.is_over()
            || self.pause_file.symlink_metadata().is_ok()
            || self.paused.load(Ordering::SeqCst)
    }

    /// Whether the workspace was deleted. One that is made anew in its place is another:
    /// tools hold the first.
    pub(crate) fn is_gone(&self) -> bool {
        directory(&self.workspace) != self.directory
    }

    /// Whether a person has switched the guard off here.
    pub(crate) fn is_off(&self) -> bool {
        off_now(Some(&self.workspace)).is_some()
    }

    /// Whether a check of the session is at work.
    pub(crate) fn is_checking(&self) -> bool {
        is_checking(self.journal.directory())
    }

    /// Ends the checks of the session that are at work.
    pub(crate) fn end_checks(&self) {
        end_checks(self.journal.directory());
    }

    /// Whether the session was ended by somebody else. What they wrote is read only where
    /// the journal has grown.
    fn is_stopped(&self) -> bool {
        let bytes = self.journal.length();
        if bytes == 0 || self.bytes.swap(bytes, Ordering::SeqCst) == bytes {
            return self.stopped.load(Ordering::SeqCst);
        }
        let phase = self.journal.session().ok().map(|session| session.summary().phase);
        let stopped = phase == Some(SessionPhase::Stopped);
        self.stopped.store(stopped, Ordering::SeqCst);
        self.paused.store(phase == Some(SessionPhase::Paused), Ordering::SeqCst);
        stopped
    }
}

fn directory(path: &Path) -> Option<(u64, u64)> {
    let number = |it: Metadata| (it.dev(), it.ino());
    path.metadata().ok().map(number)
}
