//! Whom a person has approved.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The agents that a person has approved for a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinsFact {
    /// Whether any is approved for it, in whatever workflow; if none is, none is demanded.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub demanded: bool,
    /// The checksums of those that may work here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checksums: Vec<Digest>,
    /// Why nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

impl PinsFact {
    /// That nothing was approved is nothing to write down.
    #[expect(clippy::ref_option, reason = "serde calls it with this")]
    pub(super) fn says_nothing(fact: &Option<Self>) -> bool {
        fact.as_ref().is_none_or(|fact| *fact == Self::default())
    }
}
