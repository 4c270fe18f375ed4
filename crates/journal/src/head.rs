//! Where a journal ends.

use jackline_engine::Digest;

/// The last record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its number.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
}

impl Head {
    /// The number of the record that follows a head, or of the first one.
    pub fn next_seq(head: Option<Self>) -> u64 {
        head.map_or(0, |head| head.seq + 1)
    }
}
