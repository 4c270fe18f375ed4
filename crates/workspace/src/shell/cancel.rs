//! A command that somebody else ends: whoever runs it is asked while it runs.

use std::fmt;
use std::sync::Arc;

/// Asked now and then whether a command is to end; by default nobody ends it.
#[derive(Clone, Default)]
pub struct Cancel(Option<Arc<Asked>>);

type Asked = dyn Fn() -> bool + Send + Sync;

impl Cancel {
    /// Ends commands once this is true.
    pub fn when(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_over)))
    }

    /// Ends commands once this is true, or the other.
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

    /// Whether somebody may end the command.
    pub(super) fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|is_over| is_over())
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_possible() { "Cancel" } else { "Cancel(nobody)" })
    }
}

impl PartialEq for Cancel {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

impl Eq for Cancel {}
