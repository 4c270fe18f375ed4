//! Why a run was not begun, or could not go on, and what can be done about it.

use std::io::ErrorKind;
use std::path::PathBuf;

use jackline_journal::StoreError;
use jackline_runtime::GuardFault;
use jackline_sandbox_host::WorkerError;
use jackline_workspace::WorkspaceError;

/// Why a run was not begun, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workspace can't be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// There is no definition to decide by.
    #[error("{0}")]
    Definition(String),
    /// Nobody is there to work.
    #[error(
        "nobody is there to work: give the task a `model`, or the definition `models`{}",
        if *.0 { "; and one of them `when: [sensitive]`, because the task is" } else { "" }
    )]
    Nobody(bool),
    /// A model can't be asked.
    #[error("`{label}` can't be asked: {reason}")]
    Model {
        /// Which.
        label: String,
        /// Why.
        reason: String,
    },
    /// An agent program can't be started.
    #[error("`{label}` can't be started: {reason}")]
    Program {
        /// Which.
        label: String,
        /// Why.
        reason: String,
    },
    /// An agent program can't be told its task.
    #[error("the prompt can't be given to `{label}`: {reason}")]
    Prompt {
        /// Which.
        label: String,
        /// Why.
        reason: String,
    },
    /// There is nobody to run programs.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// What an earlier attempt has left could not be undone.
    #[error("an earlier attempt is neither done nor undone, so none is begun: {0}")]
    Unfinished(String),
    /// The session could not be begun.
    #[error("the session can't be begun: {0}")]
    Session(String),
    /// Somebody else drives it.
    #[error("session `{0}` is driven by another process; `jackline status {0}` shows it")]
    Driven(String),
    /// It is over.
    #[error("session `{session}` is over: {stop}; `jackline reset {session}` opens it anew")]
    Over {
        /// Which.
        session: String,
        /// How it ended.
        stop: String,
    },
    /// The journal is not what was written, so nothing is proven.
    #[error(
        "the journal of session `{session}` was changed ({found}), so nothing \
         that it says is proven; look at it with `jackline verify {session}`"
    )]
    Tampered {
        /// Which.
        session: String,
        /// What does not fit.
        found: String,
    },
    /// The guard is broken, so nothing goes on.
    #[error("{0}; once it is mended, go on with `jackline run --resume`")]
    Guard(String),
    /// The records are gone or spoilt, so this run never goes on.
    #[error("{0}; this run can't go on, `jackline run TASK` begins a new one")]
    Lost(String),
    /// What was said in a run can't be read.
    #[error(
        "what was said in this run can't be read (`{}`: {why}); move that file away, and `jackline run --resume` \
         goes on with a new conversation, which is told how far the work is",
        path.display()
    )]
    Conversation {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong there.
        why: String,
    },
    /// What a run keeps could not be written down.
    #[error(
        "what has to be kept can't be written down: {}; {}, then go on with `jackline run --resume`",
        .0,
        remedy(.0)
    )]
    Kept(#[from] std::io::Error),
}

impl RunError {
    /// A guard that is broken, with what can be done about it.
    pub(crate) fn broken(fault: GuardFault) -> Self {
        if fault.is_permanent() { Self::Lost(fault.reason) } else { Self::Guard(fault.reason) }
    }

    /// A stable word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Workspace(_) => "workspace",
            Self::Definition(_) => "definition",
            Self::Nobody(_) | Self::Model { .. } => "model",
            Self::Program { .. } => "program",
            Self::Prompt { .. } => "prompt",
            Self::Worker(_) => "sandbox",
            Self::Unfinished(_) => "unfinished",
            Self::Session(_) => "session",
            Self::Driven(_) => "driven",
            Self::Over { .. } => "over",
            Self::Tampered { .. } => "tampered",
            Self::Guard(_) => "guard",
            Self::Lost(_) => "records",
            Self::Conversation { .. } => "conversation",
            Self::Kept(_) => "store",
        }
    }
}

/// What a person can do where something can't be written down.
fn remedy(error: &std::io::Error) -> &'static str {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<StoreError>());
    let kind = match inner {
        Some(StoreError::Io { source, .. }) => source.kind(),
        _ => error.kind(),
    };
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room in the state home"
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            "make the state home writable"
        }
        _ => "look at the state home",
    }
}
