//! Whether the run has to stop or pause, checked while a command or a model is active.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jackline_engine::SessionPhase;
use jackline_engine::facts::ControlFiles;
use jackline_host::off_switch::current_off_period;
use jackline_runtime::verification::{end_checks, is_checking};

use crate::run_journal::RunJournal;

/// The sources of a stop or pause: control files, the journal, a signal, and a deleted workspace.
#[derive(Debug)]
pub(crate) struct StopSignals {
    workspace: PathBuf,
    /// The device and inode number of the workspace directory at the start.
    directory: Option<(u64, u64)>,
    stop_file: PathBuf,
    pause_file: PathBuf,
    journal: RunJournal,
    cancelled: Arc<AtomicBool>,
    /// The length of the journal when it was last read.
    journal_bytes: AtomicU64,
    /// Whether the session was stopped or paused at that time.
    stopped: AtomicBool,
    paused: AtomicBool,
}

impl StopSignals {
    pub(crate) fn new(workspace: &Path, journal: RunJournal, cancelled: Arc<AtomicBool>) -> Self {
        let file = |name: &str| workspace.join(name);
        Self {
            workspace: workspace.to_owned(),
            directory: directory_id(workspace),
            stop_file: file(ControlFiles::STOP),
            pause_file: file(ControlFiles::PAUSE),
            journal,
            cancelled,
            journal_bytes: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            paused: AtomicBool::new(false),
        }
    }

    /// Whether the process got a signal.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Whether the run has to stop.
    pub(crate) fn should_stop(&self) -> bool {
        self.is_cancelled()
            || self.stop_file.symlink_metadata().is_ok()
            || self.is_workspace_gone()
            || self.is_session_stopped()
    }

    /// Whether the run has to pause or stop. A running program of the model is ended at a pause as
    /// well, because its changes can be undone.
    pub(crate) fn should_pause(&self) -> bool {
        self.should_stop()
            || self.pause_file.symlink_metadata().is_ok()
            || self.paused.load(Ordering::SeqCst)
    }

    /// Whether the workspace was deleted. A new directory at the same path is another one: the
    /// tools still use the old one.
    pub(crate) fn is_workspace_gone(&self) -> bool {
        directory_id(&self.workspace) != self.directory
    }

    /// Whether a person turned the guard off for this workspace.
    pub(crate) fn is_guard_off(&self) -> bool {
        current_off_period(Some(&self.workspace)).is_some()
    }

    /// Whether a verification command of the session runs.
    pub(crate) fn is_verification_running(&self) -> bool {
        is_checking(self.journal.directory())
    }

    /// Ends the verification commands of the session.
    pub(crate) fn end_verifications(&self) {
        end_checks(self.journal.directory());
    }

    /// Whether another process stopped the session. Reads the journal only if it has grown.
    fn is_session_stopped(&self) -> bool {
        let bytes = self.journal.length_bytes();
        if bytes == 0 || self.journal_bytes.swap(bytes, Ordering::SeqCst) == bytes {
            return self.stopped.load(Ordering::SeqCst);
        }
        let phase = self.journal.session().ok().map(|session| session.summary().phase);
        let stopped = phase == Some(SessionPhase::Stopped);
        self.stopped.store(stopped, Ordering::SeqCst);
        self.paused.store(phase == Some(SessionPhase::Paused), Ordering::SeqCst);
        stopped
    }
}

fn directory_id(path: &Path) -> Option<(u64, u64)> {
    let number = |it: Metadata| (it.dev(), it.ino());
    path.metadata().ok().map(number)
}
