//! Whether whoever runs programs still waits for them.

use std::fmt;
use std::sync::Arc;

/// Asked now and then whether a program is to end; by default nobody ends it.
#[derive(Clone, Default)]
pub struct Ending(Option<Arc<Asked>>);

type Asked = dyn Fn() -> bool + Send + Sync;

impl Ending {
    /// Ends programs once this is true.
    pub fn when(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_over)))
    }

    /// Whether somebody may end them.
    pub(crate) fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Whether they are to end.
    pub fn is_now(&self) -> bool {
        self.0.as_ref().is_some_and(|is_over| is_over())
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_possible() { "Ending" } else { "Ending(nobody)" })
    }
}
