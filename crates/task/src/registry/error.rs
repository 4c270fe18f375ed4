//! Why a registry does not do what it is asked.

use jackline_journal::{FileError, StoreError};

use crate::registry::tool::{DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, SOURCE_BYTES_MAX, TOOLS_MAX};

/// Why something could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A name that could be a path, an option, or nothing.
    #[error(
        "`{0}` is no name of a tool; it takes 1 to {NAME_BYTES_MAX} of the letters a-z, digits, `_` and `-`, and does not begin with `-`"
    )]
    Name(String),
    /// A source that is empty or too long.
    #[error("the source of `{name}` has {bytes} bytes; it takes 1 to {SOURCE_BYTES_MAX}")]
    Source {
        /// The tool.
        name: String,
        /// How long it is.
        bytes: usize,
    },
    /// A description that is empty or too long.
    #[error("the description of `{name}` has {bytes} bytes; it takes 1 to {DESCRIPTION_BYTES_MAX}")]
    Description {
        /// The tool.
        name: String,
        /// How long it is.
        bytes: usize,
    },
    /// There is no room for another tool.
    #[error("the registry takes {TOOLS_MAX} tools; remove one with `jackline tools remove`")]
    TooMany,
    /// Somebody has changed an entry by hand, or the disk has.
    #[error("the entry of `{name}` is broken: {why}")]
    Broken {
        /// The tool.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Another process has held the registry for too long.
    #[error("another process has held the registry of tools for more than {seconds} s")]
    Busy {
        /// How long was waited.
        seconds: u64,
    },
    /// A file of the state home can't be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The registry can't be locked.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy { seconds } => Self::Busy { seconds },
            error => Self::Store(error),
        }
    }
}
