//! Why a run could not start or continue, and what a person can do about it.

use std::io::ErrorKind;
use std::path::PathBuf;

use jackline_journal::StoreError;
use jackline_runtime::GuardFault;
use jackline_sandbox_host::WorkerError;
use jackline_task::ChangedJournal;
use jackline_workspace::WorkspaceError;

/// Why a run could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workspace can't be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The definition can't be loaded.
    #[error("{0}")]
    Definition(String),
    /// No engine is available.
    #[error(
        "no engine is available: add a `model` to the task or `models` to the definition{}",
        if *.0 { ", and give one of them `when: [sensitive]`, because the task is sensitive" } else { "" }
    )]
    NoEngine(bool),
    /// A model can't be reached.
    #[error("model `{label}` can't be used: {reason}")]
    Model {
        /// The label of the engine.
        label: String,
        /// The reason.
        reason: String,
    },
    /// An agent program can't be started.
    #[error("agent program `{label}` can't be started: {reason}")]
    Program {
        /// The label of the engine.
        label: String,
        /// The reason.
        reason: String,
    },
    /// The prompt does not fit on the command line of an agent program.
    #[error("the prompt can't be passed to `{label}`: {reason}")]
    Prompt {
        /// The label of the engine.
        label: String,
        /// The reason.
        reason: String,
    },
    /// The sandbox can't run programs.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// An earlier attempt could not be undone.
    #[error(
        "an earlier attempt is unfinished and could not be undone, so no new one can start: {0}"
    )]
    UnfinishedAttempt(String),
    /// The session could not be started.
    #[error("can't start the session: {0}")]
    Session(String),
    /// Another process drives the session.
    #[error("session `{0}` is driven by another process; see `jackline status {0}`")]
    InUse(String),
    /// The session has ended.
    #[error("session `{session}` has ended: {stop}; reopen it with `jackline reset {session}`")]
    SessionEnded {
        /// The session id.
        session: String,
        /// The stop code.
        stop: String,
    },
    /// The journal was changed, so it proves nothing.
    #[error(transparent)]
    Tampered(#[from] ChangedJournal),
    /// The guard is broken, so the run can't continue.
    #[error("{0}; fix this, then resume with `jackline run --resume`")]
    GuardBroken(String),
    /// The records are missing or damaged, so the run can't be resumed.
    #[error("{0}; this run can't be resumed, start a new one with `jackline run TASK`")]
    RecordsLost(String),
    /// The conversation file can't be read.
    #[error(
        "the conversation of this run can't be read (`{}`: {why}); move that file away, then resume with \
         `jackline run --resume`, which starts a new conversation with the state of the work",
        path.display()
    )]
    Conversation {
        /// The file.
        path: PathBuf,
        /// Where the file is damaged, and how.
        why: String,
    },
    /// A file of the run could not be saved.
    #[error(
        "can't save the state of the run: {}; {}, then resume with `jackline run --resume`",
        .0,
        remedy(.0)
    )]
    NotSaved(#[from] std::io::Error),
}

impl RunError {
    /// The error for a broken guard.
    pub(crate) fn from_guard_fault(fault: GuardFault) -> Self {
        if fault.is_permanent() {
            Self::RecordsLost(fault.reason)
        } else {
            Self::GuardBroken(fault.reason)
        }
    }

    /// The stable JSON word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Workspace(_) => "workspace",
            Self::Definition(_) => "definition",
            Self::NoEngine(_) | Self::Model { .. } => "model",
            Self::Program { .. } => "program",
            Self::Prompt { .. } => "prompt",
            Self::Worker(_) => "sandbox",
            Self::UnfinishedAttempt(_) => "unfinished",
            Self::Session(_) => "session",
            Self::InUse(_) => "driven",
            Self::SessionEnded { .. } => "over",
            Self::Tampered(_) => "tampered",
            Self::GuardBroken(_) => "guard",
            Self::RecordsLost(_) => "records",
            Self::Conversation { .. } => "conversation",
            Self::NotSaved(_) => "store",
        }
    }
}

/// What a person can do when a file can't be saved.
fn remedy(error: &std::io::Error) -> &'static str {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<StoreError>());
    let kind = match inner {
        Some(StoreError::Io { source, .. }) => source.kind(),
        _ => error.kind(),
    };
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space in the state home"
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            "make the state home writable"
        }
        _ => "check the state home",
    }
}
