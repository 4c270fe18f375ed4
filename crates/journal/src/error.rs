//! What can go wrong with a store.

use std::io;

use jackline_engine::{Digest, FaultKind};

use crate::files::FileError;

/// Why a store can't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("can't {what}: {source}")]
    Io {
        /// What was tried, such as "open the journal". It names no path: a store need not be on
        /// this machine, and its errors travel.
        what: &'static str,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The journal does not end where the caller believes.
    #[error("the journal ends at another record than expected: another process wrote to it")]
    Moved,
    /// A record names a definition that the store does not have.
    #[error("the definition {digest} that this journal names is missing")]
    DefinitionMissing {
        /// The sha256 of its stored form.
        digest: Digest,
    },
    /// A definition is there and can't be used.
    #[error("the definition {digest} that this journal names can't be read: {reason}")]
    DefinitionUnreadable {
        /// The sha256 of its stored form.
        digest: Digest,
        /// What is wrong with it.
        reason: String,
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
    /// A file begins like an export and is not a complete one.
    #[error("the export can't be read: {reason}")]
    Export {
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
            Self::Record(_)
            | Self::DefinitionMissing { .. }
            | Self::DefinitionUnreadable { .. } => FaultKind::JournalUnreadable,
            Self::Moved => FaultKind::Store,
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

impl From<FileError> for StoreError {
    /// Drops the path: a caller that knows the place of the store can name it.
    fn from(FileError { what, source, .. }: FileError) -> Self {
        let what = match what {
            "create" => "create a directory of the store",
            "sync" => "make a directory of the store durable",
            _ => "write a file of the store",
        };
        Self::Io { what, source }
    }
}

/// Names the operation in an I/O error.
pub(crate) trait Context<T> {
    fn context(self, what: &'static str) -> Result<T, StoreError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { what, source })
    }
}
