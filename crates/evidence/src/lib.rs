//! What a session can prove to others: an in-toto statement about its journal, signed with
//! ed25519 in a DSSE envelope.
//!
//! Nothing here reads a file. [`Statement`] is made from an [`Account`](jackline_analysis::Account)
//! and compared with one; [`Envelope`] signs and opens; [`SigningKey`] and [`PublicKey`] are the
//! PEM texts that other programs write, too.

mod envelope;
mod key;
mod statement;

pub use envelope::{Envelope, EnvelopeError, PAYLOAD_TYPE};
pub use key::{KeyError, PublicKey, SigningKey};
pub use statement::{Commit, PREDICATE_TYPE, Predicate, Statement, StatementError};
