//! A new definition for a running session.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::definition::StoredDefinition;
use crate::digest::Digest;

/// The definition with which a session would start now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadFact {
    /// The definition that this session already runs under.
    Same,
    /// A different definition.
    New(Box<NewDefinition>),
    /// It can't be loaded.
    Broken {
        /// The error.
        reason: String,
    },
}

/// A definition that replaces the current one. The record contains its digest, and the store
/// contains the definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewDefinition {
    /// The sha256 of its sources.
    pub checksum: Digest,
    /// Its files, in the order of
    /// [`SessionLocation::definition`](crate::SessionLocation::definition).
    pub files: Vec<DefinitionFile>,
    /// The definition in the form the engine runs on.
    pub lowered: StoredDefinition,
}

/// A file of a definition, as it was when the definition was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionFile {
    /// The absolute path.
    pub path: String,
    /// The digest of its contents.
    pub sha256: Digest,
    /// Whether a person changed it with a Jackline command.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_person: bool,
}
