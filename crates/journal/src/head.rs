//! Where a journal ends.

use jackline_engine::Digest;

/// The last record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
    /// How many bytes the journal has up to and with it.
    pub bytes: u64,
}
