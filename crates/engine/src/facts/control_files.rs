//! The control files, with which a person controls a session without a command. Every gate checks
//! them.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Which control files exist. Anything at the path counts: a file, a directory, a dangling link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlFiles {
    /// The session has to end.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stop: bool,
    /// No call may run while the file exists.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pause: bool,
    /// Why the files can't be inspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl ControlFiles {
    /// The file that ends the session of its workspace.
    pub const STOP: &'static str = ".jackline/STOP";

    /// The file that pauses the session of its workspace.
    pub const PAUSE: &'static str = ".jackline/PAUSE";
}
