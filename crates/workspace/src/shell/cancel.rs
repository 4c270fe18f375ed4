//! Lets the caller cancel a running command.

use std::fmt;
use std::sync::Arc;

/// A function that tells whether a command must be cancelled; by default there is none.
#[derive(Clone, Default)]
pub struct CancelSignal(Option<Arc<CancelProbe>>);

type CancelProbe = dyn Fn() -> bool + Send + Sync;

impl CancelSignal {
    /// Cancels commands once the function returns true.
    pub fn when(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_cancelled)))
    }

    /// Cancels commands once this or the other returns true.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        match (&self.0, &other.0) {
            (None, _) => other.clone(),
            (_, None) => self.clone(),
            (Some(ours), Some(theirs)) => {
                let (ours, theirs) = (Arc::clone(ours), Arc::clone(theirs));
                Self::when(move || ours() || theirs())
            }
        }
    }

    /// Whether there is a function to call.
    pub(super) fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|is_cancelled| is_cancelled())
    }
}

impl fmt::Debug for CancelSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_possible() { "CancelSignal" } else { "CancelSignal(none)" })
    }
}

impl PartialEq for CancelSignal {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

impl Eq for CancelSignal {}
