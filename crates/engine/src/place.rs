//! Where a session works: what the paths of its calls mean.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Where a session works. It is pinned when the session is opened, and the
/// first record holds it, so that paths mean the same when it is replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The workspace, absolute, symbolic links resolved.
    pub workspace: Option<String>,
    /// The home directory, which `~` stands for.
    pub home: Option<String>,
    /// Where the guard keeps its state.
    pub state_home: Option<String>,
    /// The files of the definition in force, absolute: the one that was found
    /// first, then those it extends and the other layers.
    pub definition: Vec<String>,
}
