//! The agents that a person has approved.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The agents that a person has approved for a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinsFact {
    /// Whether any agent is approved for the definition, in any workflow. If not, no approval is
    /// required.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub demanded: bool,
    /// The checksums of the agents that may work here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checksums: Vec<Digest>,
    /// Why the approvals can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

impl PinsFact {
    /// An empty fact is not written to the record.
    #[expect(clippy::ref_option, reason = "serde calls it with this")]
    pub(super) fn is_none_or_default(fact: &Option<Self>) -> bool {
        fact.as_ref().is_none_or(|fact| *fact == Self::default())
    }
}
