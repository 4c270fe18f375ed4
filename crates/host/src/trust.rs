//! Repository definitions that a person trusts to loosen rules and to run commands.
//!
//! The document `trust` in the state home has one grant per line. A grant is for one file with
//! exactly these contents, including the files that it extends. A changed file needs a new grant.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::{Digest, Timestamp};
use jackline_journal::StoreError;
use serde::{Deserialize, Serialize};

use crate::document_lines::DocumentLines;
use crate::state_home::{StateDocument, StateHome};

/// One file that a person trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustGrant {
    /// The checksum of the file and of the files that it extends.
    pub checksum: Digest,
    /// The absolute path of the file.
    pub file: String,
    /// The time of the grant.
    pub at: Timestamp,
    /// The person who gave it.
    pub by: String,
}

/// The grants of a state home.
#[derive(Debug, Clone)]
pub struct TrustStore {
    lines: DocumentLines,
}

impl TrustStore {
    /// Opens the grants of a state home.
    pub fn of(home: Arc<dyn StateHome>) -> Self {
        Self { lines: DocumentLines::new(home, StateDocument::Trust) }
    }

    /// Every grant, in the order in which they were given. A line that is not valid grants nothing.
    pub fn list(&self) -> Vec<TrustGrant> {
        self.lines.list()
    }

    /// Whether a file with these contents is trusted.
    pub fn is_granted(&self, file: &Path, checksum: &Digest) -> bool {
        let is_it =
            |grant: &TrustGrant| grant.checksum == *checksum && Path::new(&grant.file) == file;
        self.list().iter().any(is_it)
    }

    /// Trusts a file, and replaces an earlier grant for it.
    pub fn grant(&self, grant: &TrustGrant) -> Result<(), StoreError> {
        self.lines.change(|grants: &mut Vec<TrustGrant>| {
            grants.retain(|known| known.file != grant.file);
            grants.push(grant.clone());
        })
    }

    /// Removes the grant for a file. Returns whether there was one.
    pub fn revoke(&self, file: &Path) -> Result<bool, StoreError> {
        let mut was = false;
        self.lines.change(|grants: &mut Vec<TrustGrant>| {
            let before = grants.len();
            grants.retain(|known| Path::new(&known.file) != file);
            was = grants.len() < before;
        })?;
        Ok(was)
    }
}
