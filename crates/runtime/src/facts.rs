//! Answers the engine's queries.
//!
//! The engine asks in rounds, and each round is one batch of queries. A [`FactSource`] answers a
//! batch. A source may be this machine, a recording, extensions written in Rust, or a program
//! behind a wire protocol. If a source fails, is late, or gives a wrong answer, the guard counts as
//! broken, and a broken guard denies.

mod file_search;
mod files;
mod gather;
mod guard_files;
pub(crate) mod links;
mod machine;
mod missing_paths;
mod recording;
mod reload;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use jackline_engine::facts::WrongFactError;
use jackline_engine::{Definition, Digest, Fact, Query, SessionId};
use jackline_journal::Store;

use crate::definitions::Definitions;
use crate::guard_links::known_target;
use crate::reports::ReportRemovals;
use jackline_host::clock;

pub(crate) use gather::{FactSources, gather};
pub(crate) use machine::LocalMachine;
pub use recording::Recording;

/// Answers queries of the engine.
pub trait FactSource: Send {
    /// Answers a batch: one fact for each query, in the same order, before the deadline.
    fn answer(
        &mut self,
        scene: &FactContext<'_>,
        queries: &[Query],
        deadline: FactDeadline,
    ) -> Result<Vec<Fact>, FactError>;
}

/// Why a source gave no usable facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    /// The source could not answer.
    #[error("the source of facts failed: {0}")]
    Failed(String),
    /// The source answered too late.
    #[error("the source of facts did not answer within {0} ms")]
    Late(u64),
    /// The number of answers differs from the number of queries.
    #[error("the source of facts gave {answers} answers to {queries} queries")]
    Count {
        /// The number of queries in the batch.
        queries: usize,
        /// The number of answers.
        answers: usize,
    },
    /// An answer does not fit its query.
    #[error("the source of facts gave a wrong answer: {0}")]
    Wrong(#[from] WrongFactError),
}

/// The time by which a source must answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactDeadline {
    limit_ms: u64,
    expires_at_ms: u64,
}

impl FactDeadline {
    /// A deadline this many milliseconds from now.
    pub fn within(limit_ms: u64) -> Self {
        Self { limit_ms, expires_at_ms: clock::boot_ms().saturating_add(limit_ms) }
    }

    /// The remaining milliseconds.
    pub fn remaining_ms(self) -> u64 {
        self.expires_at_ms.saturating_sub(clock::boot_ms())
    }

    /// Returns an error if the deadline has passed.
    pub fn check(self) -> Result<(), FactError> {
        if clock::boot_ms() > self.expires_at_ms {
            return Err(FactError::Late(self.limit_ms));
        }
        Ok(())
    }
}

/// The session and its surroundings, for which queries are answered.
pub struct FactContext<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) definitions: &'a Definitions,
    /// The definition in force, its files and its checksum.
    pub(crate) definition: &'a Definition,
    pub(crate) definition_files: &'a [String],
    /// The links among the files of the guard, with their targets.
    pub(crate) guard_links: &'a BTreeMap<String, String>,
    pub(crate) definition_checksum: Digest,
    /// The digest of its stored form.
    pub(crate) definition_digest: Digest,
    /// Stores the contents of protected files.
    pub(crate) store: &'a dyn Store,
    /// The directory of the session, if it has one.
    pub(crate) session_directory: Option<&'a Path>,
}

impl FactContext<'_> {
    /// The session.
    pub fn session(&self) -> &SessionId {
        self.session
    }

    /// The directory the agent works in; `None` if the agent has no files.
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace
    }

    /// The definition in force.
    pub fn definition(&self) -> &Definition {
        self.definition
    }

    /// Follows a known link of a file of the guard.
    pub(crate) fn known_target<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        known_target(path, self.guard_links)
    }

    /// The reports of this workspace.
    pub(crate) fn reports(&self) -> ReportRemovals<'_> {
        let Self { workspace, session, .. } = *self;
        ReportRemovals {
            home: self.definitions.state_directory(),
            store: self.store,
            workspace,
            session,
        }
    }
}
