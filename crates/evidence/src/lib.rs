//! Evidence about a session for other parties: an in-toto statement about its journal, signed with
//! ed25519 in a DSSE envelope.
//!
//! This crate reads no files. A [`Statement`] is created from an
//! [`JournalAccount`](jackline_analysis::JournalAccount) and compared with one. A [`DsseEnvelope`] signs and opens
//! it. [`SigningKey`] and [`PublicKey`] use the same PEM format as other programs.

mod envelope;
mod key;
mod statement;

pub use envelope::{DsseEnvelope, EnvelopeError, PAYLOAD_TYPE};
pub use key::{KeyError, PublicKey, SigningKey};
pub use statement::{PREDICATE_TYPE, SessionPredicate, Statement, StatementError, WorkspaceCommit};
