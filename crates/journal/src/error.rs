//! The errors of a store.

use std::io;

use jackline_engine::{Digest, FaultKind};

use crate::files::FileError;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system returned an error.
    #[error("can't {what}: {source}")]
    Io {
        /// The attempted operation, such as "open the journal". It contains no path, because a
        /// store may be on another machine and its errors may be sent elsewhere.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The journal does not end with the record that the caller expects.
    #[error("the journal does not end with the expected record: another process has written to it")]
    HeadChanged,
    /// A record refers to a definition that the store does not have.
    #[error("the definition {digest} that this journal refers to is missing")]
    DefinitionMissing {
        /// The SHA-256 of its stored form.
        digest: Digest,
    },
    /// A definition exists but is invalid.
    #[error("the definition {digest} that this journal refers to can't be read: {reason}")]
    DefinitionUnreadable {
        /// The SHA-256 of its stored form.
        digest: Digest,
        /// The reason.
        reason: String,
    },
    /// Another process has locked the session for too long.
    #[error("another process has locked the session for more than {seconds} s")]
    Busy {
        /// The time waited, in seconds.
        seconds: u64,
    },
    /// Retention removed the session while it was open here.
    #[error("the journal of this session was removed while it was open")]
    Removed,
    /// The journal has no complete first record.
    #[error("the journal has no record yet")]
    Empty,
    /// The journal is shorter than the last answered record.
    #[error(
        "the journal was truncated: it ends at record {found}, but record {expected} was answered"
    )]
    Truncated {
        /// The last existing record.
        found: String,
        /// The last answered record.
        expected: u64,
    },
    /// A complete record differs from the record that was written.
    #[error("the journal was tampered with at record {record}: {reason}")]
    Tampered {
        /// The record number, if it is known.
        record: String,
        /// The reason.
        reason: String,
    },
    /// A file begins like an export but is not a complete one.
    #[error("can't read the export: {reason}")]
    Export {
        /// The reason.
        reason: crate::export::ExportError,
    },
    /// A newer version of Jackline wrote this.
    #[error("{what} has format {found}, but this jackline supports only formats up to {known}")]
    Newer {
        /// The part that was read.
        what: &'static str,
        /// Its format.
        found: u32,
        /// The newest supported format.
        known: u32,
    },
    /// A record has a valid hash but can't be parsed.
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
            Self::Empty => FaultKind::JournalEmpty,
            Self::Truncated { .. } => FaultKind::JournalTruncated,
            Self::Tampered { .. } => FaultKind::JournalTampered,
            Self::Export { .. } => FaultKind::ExportBroken,
            Self::Newer { .. } => FaultKind::NewerVersion,
            Self::Record(_)
            | Self::DefinitionMissing { .. }
            | Self::DefinitionUnreadable { .. } => FaultKind::JournalUnreadable,
            Self::HeadChanged => FaultKind::Store,
        }
    }

    /// The action that may fix it, for a person.
    pub fn remedy(&self) -> &'static str {
        match self.kind() {
            FaultKind::StoreFull => "free some space, then send the event again",
            FaultKind::StoreReadOnly => {
                "make the state home writable or set JACKLINE_HOME to a writable directory, then send the event again"
            }
            FaultKind::StoreBusy => {
                "end the process that has locked the session, then send the event again"
            }
            FaultKind::StoreRemoved => "start a new session",
            FaultKind::JournalEmpty => "send the first event of the session",
            FaultKind::JournalTruncated
            | FaultKind::JournalTampered
            | FaultKind::JournalUnreadable => {
                "check it with `jackline verify`, and start a new session"
            }
            FaultKind::ExportBroken => "create it again with `jackline export`",
            FaultKind::NewerVersion => "update jackline, then send the event again",
            _ => "check the state home, then send the event again",
        }
    }
}

impl From<FileError> for StoreError {
    /// Drops the path, because store errors contain none.
    fn from(FileError { what, source, .. }: FileError) -> Self {
        let what = match what {
            "create" => "create a directory of the store",
            "sync" => "make a directory of the store durable",
            _ => "write a file of the store",
        };
        Self::Io { what, source }
    }
}

/// Adds the operation to an I/O error.
pub(crate) trait IoContext<T> {
    fn context(self, what: &'static str) -> Result<T, StoreError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, what: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { what, source })
    }
}
