//! The journal: every verdict, hash-chained, durable before it is shown.
//!
//! A [`Store`] keeps one [`Log`] a session and lists the sessions for readers, who get a
//! [`JournalView`]. [`FileStore`] is the embedded store, an append-only file a session;
//! [`MemoryStore`] is for tests and for library users who keep nothing. [`contract`] is what every
//! store must pass.

mod chain;
pub mod contract;
mod definitions;
mod error;
mod export;
mod file_log;
mod file_store;
mod files;
mod head;
mod ids;
mod lines;
mod lock;
mod memory;
mod names;
mod record;
mod retention;
mod session_entry;
mod slots;
mod store;
mod verify;
mod view;

pub use chain::{LineFault, Sealed, check_line, seal};
pub use error::StoreError;
pub use export::{Export, ExportError, Redacted};
pub use file_store::FileStore;
pub use files::{FileError, create_directory, write_private};
pub use head::Head;
pub use lock::{exclusive as lock_exclusive, shared as lock_shared};
pub use memory::MemoryStore;
pub use names::directory_name;
pub use record::{
    Body, EventRecord, Line, Note, Opened, OpenedDefinition, RecordError, ReloadedDefinition,
    Snapshot, parse_record,
};
pub use retention::Retention;
pub use session_entry::{SessionEntry, SessionFilter};
pub use store::{DefinitionSource, Log, Reading, Store};
pub use verify::{Finding, FindingKind, Report, Verifier};
pub use view::JournalView;
