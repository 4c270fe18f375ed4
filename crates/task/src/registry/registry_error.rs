//! Why the registry can't be read or changed.

use jackline_journal::{FileError, StoreError};

use crate::registry::stored_tool::{
    DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, SOURCE_BYTES_MAX, TOOLS_MAX,
};

/// Why the registry can't be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name can't be used as a tool name.
    #[error(
        "`{0}` is not a valid tool name; use 1 to {NAME_BYTES_MAX} of the letters a-z, digits, `_` and `-`, and do not start with `-`"
    )]
    Name(String),
    /// The source is empty or too long.
    #[error("the source of `{name}` has {bytes} bytes; it must have 1 to {SOURCE_BYTES_MAX}")]
    Source {
        /// The name of the tool.
        name: String,
        /// The length of the source.
        bytes: usize,
    },
    /// The description is empty or too long.
    #[error(
        "the description of `{name}` has {bytes} bytes; it must have 1 to {DESCRIPTION_BYTES_MAX}"
    )]
    Description {
        /// The name of the tool.
        name: String,
        /// The length of the description.
        bytes: usize,
    },
    /// The registry is full.
    #[error("the registry is full with {TOOLS_MAX} tools; remove one with `jackline tools remove`")]
    TooMany,
    /// An entry was changed by another program, or the disk is damaged.
    #[error("the entry of `{name}` is broken: {why}")]
    Broken {
        /// The name of the tool.
        name: String,
        /// What is wrong with the entry.
        why: String,
    },
    /// Another process holds the lock of the registry.
    #[error("another process has locked the tool registry for more than {seconds} s")]
    Busy {
        /// How many seconds this process waited.
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
