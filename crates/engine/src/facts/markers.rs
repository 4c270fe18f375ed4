//! The files by which a person steers without a command: they are looked at in
//! every gate.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// What is there, whatever it is: a file, a directory, a link that leads nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Markers {
    /// The session has to end.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stop: bool,
    /// No call may run while it is there.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pause: bool,
    /// Why nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl Markers {
    /// The file that ends a session, in its workspace.
    pub const STOP: &'static str = ".jackline/STOP";

    /// The file that holds a session, in its workspace.
    pub const PAUSE: &'static str = ".jackline/PAUSE";
}
