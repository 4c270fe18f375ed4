//! What a run leaves for those who judge it.

use crate::protocol::Place;

/// How the last program ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ran {
    /// What it printed, at most as much as its limits allow.
    pub printed: String,
    /// How much it printed.
    pub printed_bytes: u64,
    /// How often it called the host.
    pub calls: u32,
    /// Who answered it from outside.
    pub external: Vec<String>,
    /// What delegates said of their inside; nobody else may read that.
    pub(crate) inside: Vec<String>,
    /// Where it answered.
    pub(crate) answered_at: Option<Place>,
}

impl Ran {
    pub(crate) fn told_from_outside(&mut self, name: &str) {
        if !self.external.iter().any(|known| known == name) {
            self.external.push(name.to_owned());
        }
    }
}
