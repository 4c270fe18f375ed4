//! Tells a worker pool when to end running programs.

use std::fmt;
use std::sync::Arc;

/// A check for cancellation. The default value never cancels.
#[derive(Clone, Default)]
pub struct ProgramCancel(Option<Arc<CancelCheck>>);

type CancelCheck = dyn Fn() -> bool + Send + Sync;

impl ProgramCancel {
    /// Ends programs once the given function returns true.
    pub fn when(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_over)))
    }

    /// Whether a check is set.
    pub(crate) fn can_cancel(&self) -> bool {
        self.0.is_some()
    }

    /// Whether programs have to end now.
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|is_over| is_over())
    }
}

impl fmt::Debug for ProgramCancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.can_cancel() { "ProgramCancel" } else { "ProgramCancel(never)" })
    }
}
