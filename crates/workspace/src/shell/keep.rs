//! All that a command printed, for whoever keeps it while a part is shown.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Where all of an output lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// The file.
    pub file: String,
    /// Where its first page begins, for whoever shows pages.
    pub cursor: String,
    /// How long it is. A command may have printed more than is kept.
    pub bytes: u64,
}

/// Keeps the output of commands; by default nobody does.
#[derive(Clone, Default)]
pub struct Keep(Option<Arc<Keeper>>);

type Keeper = dyn Fn(&str) -> Result<Artifact, String> + Send + Sync;

impl Keep {
    /// Has outputs kept by this, which may say why it can't.
    pub fn by(keeper: impl Fn(&str) -> Result<Artifact, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(keeper)))
    }

    /// Whether somebody keeps them.
    pub(super) fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn keep(&self, text: &str) -> Option<Result<Artifact, String>> {
        self.0.as_ref().map(|keeper| keeper(text))
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_possible() { "Keep" } else { "Keep(nobody)" })
    }
}

impl PartialEq for Keep {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

impl Eq for Keep {}
