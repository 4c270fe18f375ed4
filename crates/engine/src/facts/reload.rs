//! Another definition for a session that runs.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::definition::StoredDefinition;
use crate::digest::Digest;

/// What a session would begin with that starts now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadFact {
    /// What this one runs under.
    Same,
    /// Something else.
    New(Box<NewDefinition>),
    /// Nothing: it can't be loaded.
    Broken {
        /// What is wrong with it.
        reason: String,
    },
}

/// A definition that takes the place of another. The record names it, and the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewDefinition {
    /// The sha256 of its sources.
    pub checksum: Digest,
    /// Its files, in the order of [`Place::definition`](crate::Place::definition).
    pub files: Vec<DefinitionFile>,
    /// What the engine runs on.
    pub lowered: StoredDefinition,
}

/// A file of a definition, as it was when the definition was made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionFile {
    /// Where it lies, absolute.
    pub path: String,
    /// What was in it.
    pub sha256: Digest,
    /// Whether a person had one of our own commands write that.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_person: bool,
}
