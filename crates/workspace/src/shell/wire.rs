//! What a tool and the supervisor of its command tell each other, a line each.
//!
//! The request comes on the supervisor's standard input, which stays open: when
//! it closes, the command is to end. Reports go to its standard output. Its
//! standard error is the command's output, and it writes nothing there itself.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::layers::Layers;
use super::{Confine, Confinement};

/// What the first report says, so that no other program is taken for a supervisor.
pub(super) const PROGRAM: &str = "jackline-shell-child-1";

/// The longest line of either side: a command, every byte of it escaped, and paths.
pub(super) const LINE_BYTES_MAX: u64 = 2 << 20;

/// What is to be run. The workspace is the directory that the supervisor is in.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) command: String,
    pub(super) shell: PathBuf,
    pub(super) timeout_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) writable: Vec<PathBuf>,
    pub(super) environment: Vec<String>,
    pub(super) hidden: Vec<String>,
    pub(super) confine: Confine,
    /// Where what it writes goes instead of the workspace.
    pub(super) layers: Option<Layers>,
}

/// What a supervisor says: who it is, and how it ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    Hello(String),
    Ended(Ended),
    Failed(Failure),
}

/// How a command ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) timed_out: bool,
    pub(super) stragglers: u32,
    pub(super) left: u32,
    pub(super) confinement: Confinement,
}

/// Why it was never run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    ShellMissing,
    NotConfined(String),
    NotLayered,
    Start(String),
}
