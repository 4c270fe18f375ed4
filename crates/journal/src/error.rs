//! What can go wrong with a store.

use std::io;
use std::path::PathBuf;

use jackline_engine::FaultKind;

/// Why a store can't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("can't {what} `{}`: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Another process has held the session for too long.
    #[error("session is held by another process for more than {seconds} s")]
    Busy {
        /// How long was waited.
        seconds: u64,
    },
    /// The session was removed to make room while it was open here.
    #[error("the journal of this session was removed while it was open")]
    Removed,
    /// There is no complete first record.
    #[error("the journal has no record yet")]
    Unopened,
    /// The journal is shorter than what was answered.
    #[error(
        "the journal was truncated: it ends at record {found}, and record {expected} was answered"
    )]
    Truncated {
        /// The last record that is there.
        found: String,
        /// The last record that was.
        expected: u64,
    },
    /// A complete record is not what was written.
    #[error("the journal was tampered with at record {record}: {reason}")]
    Tampered {
        /// The record, as far as it can be named.
        record: String,
        /// What does not fit.
        reason: String,
    },
    /// A file means to be an export, and is none.
    #[error("`{}` can't be read: {reason}", .path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: crate::export::ExportError,
    },
    /// A newer Jackline wrote this.
    #[error("{what} has format {found}, and this jackline knows up to {known}")]
    Newer {
        /// What was read.
        what: &'static str,
        /// Its format.
        found: u32,
        /// The newest known format.
        known: u32,
    },
    /// A record can't be understood although its hash fits.
    #[error(transparent)]
    Record(#[from] crate::record::RecordError),
}

impl StoreError {
    /// The kind of fault.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => FaultKind::StoreFull,
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    FaultKind::StoreReadOnly
                }
                _ => FaultKind::Store,
            },
            Self::Busy { .. } => FaultKind::StoreBusy,
            Self::Removed => FaultKind::StoreRemoved,
            Self::Unopened => FaultKind::JournalEmpty,
            Self::Truncated { .. } => FaultKind::JournalTruncated,
            Self::Tampered { .. } => FaultKind::JournalTampered,
            Self::Export { .. } => FaultKind::ExportBroken,
            Self::Newer { .. } => FaultKind::NewerVersion,
            Self::Record(_) => FaultKind::JournalUnreadable,
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self.kind() {
            FaultKind::StoreFull => "free some space, then send it again",
            FaultKind::StoreReadOnly => {
                "make the state home writable or set JACKLINE_HOME to a directory that is, then send it again"
            }
            FaultKind::StoreBusy => "end the process that holds the session, then send it again",
            FaultKind::StoreRemoved => "go on in a new session",
            FaultKind::JournalEmpty => "send its first event",
            FaultKind::JournalTruncated
            | FaultKind::JournalTampered
            | FaultKind::JournalUnreadable => {
                "look at it with `jackline verify`, and go on in a new session"
            }
            FaultKind::ExportBroken => "have it made again with `jackline export`",
            FaultKind::NewerVersion => "update jackline, then send it again",
            _ => "look at the state home, then send it again",
        }
    }
}

/// Names the operation and the path in an I/O error.
pub(crate) trait Context<T> {
    fn context(self, what: &'static str, path: &std::path::Path) -> Result<T, StoreError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str, path: &std::path::Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { what, path: path.to_owned(), source })
    }
}
