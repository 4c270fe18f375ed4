//! A record of how a program ran, for the code that judges its answer.

use crate::internal_texts::InternalTexts;
use crate::protocol::ProgramPosition;

/// How the last program ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramRun {
    /// Its printed output, up to the limit.
    pub printed: String,
    /// How many bytes it printed in total.
    pub printed_bytes: u64,
    /// How many times it called the host.
    pub calls: u32,
    /// The tools and delegates that answered with external data.
    pub external: Vec<String>,
    /// The texts of guards and delegates that this program and the earlier ones of its call got.
    pub(crate) internal_texts: InternalTexts,
    /// The position of its answer.
    pub(crate) answered_at: Option<ProgramPosition>,
}

impl ProgramRun {
    pub(crate) fn add_external(&mut self, name: &str) {
        if !self.external.iter().any(|known| known == name) {
            self.external.push(name.to_owned());
        }
    }
}
