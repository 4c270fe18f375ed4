//! The journal: every verdict in a hash chain, durable before the agent sees it.
//!
//! A [`Store`] has one [`SessionLog`] per session, and lists the sessions for readers, who get a
//! [`JournalView`]. [`FileStore`] uses one append-only file per session. [`MemoryStore`] is for
//! tests and for library users who need no durable journal. Every store must pass the [`contract`].

mod chain;
pub mod contract;
mod definitions;
mod error;
mod event_ids;
mod export;
mod file_log;
mod file_store;
mod files;
mod head;
mod lines;
mod lock;
mod memory;
mod names;
mod record;
mod retention;
mod session_entry;
mod state_slots;
mod store;
mod verify;
mod view;

pub use chain::{LineFault, LineHashes, check_line, seal};
pub use error::StoreError;
pub use export::{Export, ExportError, RedactionSummary};
pub use file_store::FileStore;
pub use files::{FileError, create_directory, write_private};
pub use head::JournalHead;
pub use lock::{exclusive as lock_exclusive, shared as lock_shared};
pub use memory::MemoryStore;
pub use names::directory_name;
pub use record::{
    EventRecord, JournalLine, JournalNote, OpenedDefinition, OpeningRecord, RecordBody,
    RecordError, ReloadedDefinition, Snapshot, parse_record,
};
pub use retention::Retention;
pub use session_entry::{SessionEntry, SessionFilter};
pub use store::{DefinitionSource, ReadMode, SessionLog, Store};
pub use verify::{JournalProblem, JournalProblemKind, Verifier, VerifyReport};
pub use view::JournalView;
