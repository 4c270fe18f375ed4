//! Faults: answers without a decision, because the line is invalid or the guard is broken.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::ViolationSubtype;
use crate::words::open_words;

/// Why a line was denied without a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireFault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// What happened, and what to do next.
    pub reason: String,
    /// The number of the line in the stream, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

open_words! {
    /// What is broken: a line, the store, or the guard.
    FaultKind {
        /// A line is not valid JSON.
        Json = "json",
        /// A line is JSON but not an object.
        NotAnObject = "not_an_object",
        /// A line has an unsupported version of the wire protocol.
        Version = "version",
        /// A field is missing.
        Missing = "missing",
        /// A field has the wrong type.
        Type = "type",
        /// A field is unknown.
        UnknownField = "unknown_field",
        /// An event is unknown.
        UnknownEvent = "unknown_event",
        /// An id is invalid.
        Id = "id",
        /// Two fields contradict each other.
        Conflict = "conflict",
        /// A line is too long.
        TooLong = "too_long",
        /// The name of a tool is invalid.
        Tool = "tool",
        /// An agent sent a control that only a person may send.
        OpeningControl = "opening_control",
        /// An id was used for another event.
        IdReused = "id_reused",
        /// The definition can't be loaded.
        Definition = "definition",
        /// The workspace can't be used.
        Workspace = "workspace",
        /// The guard panicked.
        Internal = "internal",
        /// The store can't be used.
        Store = "store",
        /// The disk of the store is full.
        StoreFull = "store_full",
        /// The store can't be written.
        StoreReadOnly = "store_read_only",
        /// Another process has locked the session.
        StoreBusy = "store_busy",
        /// The journal was removed.
        StoreRemoved = "store_removed",
        /// The journal has no records.
        JournalEmpty = "journal_empty",
        /// The journal lost records.
        JournalTruncated = "journal_truncated",
        /// A record of the journal was changed.
        JournalTampered = "journal_tampered",
        /// A record of the journal can't be read.
        JournalUnreadable = "journal_unreadable",
        /// An export can't be read.
        ExportBroken = "export_broken",
        /// A newer Jackline wrote it.
        NewerVersion = "newer_version",
        /// A source of facts failed, was late, or gave a wrong answer.
        Facts = "facts",
        /// A hook call failed.
        Hook = "hook",
        /// A notification could not be sent.
        Notify = "notify",
        /// A report for people could not be written.
        Report = "report",
        /// The safety log could not be written.
        SafetyLog = "safety_log",
        /// A protected file could not be restored.
        Protected = "protected",
        /// A change can't be undone.
        Undo = "undo",
        /// An attempt could not be undone.
        Rollback = "rollback",
    }
}

impl FaultKind {
    /// Whether the session can never continue, because its records are missing or damaged.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::StoreRemoved
                | Self::JournalTruncated
                | Self::JournalTampered
                | Self::JournalUnreadable
        )
    }
}

impl From<&FaultKind> for ViolationSubtype {
    fn from(kind: &FaultKind) -> Self {
        Self::parse(kind.as_str())
    }
}
