//! Answers the engine's queries.
//!
//! The engine asks in rounds, and each round is one batch of queries. A [`FactSource`] answers
//! a batch: this machine, a recording, guards written in Rust, or a program at the other end
//! of a wire. A source that fails, is late, or answers something else breaks the guard, and
//! a broken guard denies.

mod absences;
mod files;
mod gather;
mod links;
mod machine;
mod recording;
mod reload;

use std::path::Path;

use jackline_engine::facts::WrongFact;
use jackline_engine::{Definition, Digest, Fact, Query, SessionId};
use jackline_journal::Store;

use crate::definitions::Definitions;
use crate::reports::Reports;
use jackline_host::clock;

pub(crate) use gather::{FactSources, gather};
pub(crate) use machine::Machine;
pub use recording::Recording;

/// Answers queries of the engine.
pub trait FactSource: Send {
    /// Answers a batch: one fact for each query, in the same order, before the deadline.
    fn answer(
        &mut self,
        scene: &Scene<'_>,
        queries: &[Query],
        deadline: Deadline,
    ) -> Result<Vec<Fact>, FactError>;
}

/// Why there are no facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    /// The source could not answer.
    #[error("the source of facts failed: {0}")]
    Failed(String),
    /// The source answered too late.
    #[error("the source of facts gave no answer within {0} ms")]
    Late(u64),
    /// Not each query has an answer.
    #[error("the source of facts gave {answers} answers to {queries} queries")]
    Count {
        /// How many queries the batch had.
        queries: usize,
        /// How many answers came.
        answers: usize,
    },
    /// An answer does not fit its query.
    #[error("the source of facts gave a wrong answer: {0}")]
    Wrong(#[from] WrongFact),
}

/// The time by which a source has to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    limit_ms: u64,
    over_at_ms: u64,
}

impl Deadline {
    /// So many milliseconds from now.
    pub fn within(limit_ms: u64) -> Self {
        Self { limit_ms, over_at_ms: clock::boot_ms().saturating_add(limit_ms) }
    }

    /// How many milliseconds are left.
    pub fn remaining_ms(self) -> u64 {
        self.over_at_ms.saturating_sub(clock::boot_ms())
    }

    /// An error once the deadline is over.
    pub fn check(self) -> Result<(), FactError> {
        if clock::boot_ms() > self.over_at_ms {
            return Err(FactError::Late(self.limit_ms));
        }
        Ok(())
    }
}

/// The session that queries are about.
pub struct Scene<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) definitions: &'a Definitions,
    /// The definition in force, its files and its checksum.
    pub(crate) definition: &'a Definition,
    pub(crate) definition_files: &'a [String],
    pub(crate) definition_checksum: Digest,
    /// The digest of its stored form.
    pub(crate) definition_digest: Digest,
    /// Keeps the contents of protected files.
    pub(crate) store: &'a dyn Store,
    /// The directory of the session, where it has one.
    pub(crate) session_directory: Option<&'a Path>,
}

impl Scene<'_> {
    /// The session.
    pub fn session(&self) -> &SessionId {
        self.session
    }

    /// The directory the agent works in; none where it has no files.
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace
    }

    /// The definition in force.
    pub fn definition(&self) -> &Definition {
        self.definition
    }

    /// The reports of this workspace.
    pub(crate) fn reports(&self) -> Reports<'_> {
        let Self { workspace, session, .. } = *self;
        Reports { home: self.definitions.given_home(), store: self.store, workspace, session }
    }
}
