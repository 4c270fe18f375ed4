//! The end of a journal.

use jackline_engine::Digest;

/// The last record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHead {
    /// Its sequence number.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
}

impl JournalHead {
    /// The sequence number of the record after a head, or of the first record.
    pub fn next_seq(head: Option<Self>) -> u64 {
        head.map_or(0, |head| head.seq + 1)
    }
}
