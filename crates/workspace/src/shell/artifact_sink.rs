//! Stores the whole output of a command while the answer shows a part of it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Where the whole output is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// The path of the file.
    pub file: String,
    /// The cursor of its first page, for the tool `jackline_page`.
    pub cursor: String,
    /// The number of stored bytes. The command may have printed more.
    pub bytes: u64,
}

/// A function that stores the output of commands; by default there is none.
#[derive(Clone, Default)]
pub struct ArtifactSink(Option<Arc<StoreArtifact>>);

type StoreArtifact = dyn Fn(&str) -> Result<Artifact, String> + Send + Sync;

impl ArtifactSink {
    /// Stores outputs with this function. It returns an error text if it can't.
    pub fn storing_with(
        keeper: impl Fn(&str) -> Result<Artifact, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(keeper)))
    }

    /// Whether there is a function that stores outputs.
    pub(super) fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn store(&self, text: &str) -> Option<Result<Artifact, String>> {
        self.0.as_ref().map(|keeper| keeper(text))
    }
}

impl fmt::Debug for ArtifactSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_possible() { "ArtifactSink" } else { "ArtifactSink(none)" })
    }
}

impl PartialEq for ArtifactSink {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

impl Eq for ArtifactSink {}
