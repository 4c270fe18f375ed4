//! The protocol between the tool and the command supervisor: one JSON object per line.
//!
//! The request arrives on the supervisor's standard input. When the input closes, the command must
//! end. Reports go to standard output. Standard error is the output of the command; the supervisor
//! itself writes nothing there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::layers::LayerPaths;
use super::{ConfineMode, Confinement};

/// The first report contains this name, so that no other program is taken for a supervisor.
pub(super) const PROTOCOL_NAME: &str = "jackline-shell-child-1";

/// The maximum length of a line: a command with every byte escaped, and paths.
pub(super) const LINE_BYTES_MAX: u64 = 2 << 20;

/// The command to run. The workspace is the current directory of the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommandRequest {
    pub(super) command: String,
    pub(super) shell: PathBuf,
    pub(super) timeout_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) writable: Vec<PathBuf>,
    pub(super) environment: Vec<String>,
    pub(super) hidden: Vec<String>,
    pub(super) confine: ConfineMode,
    /// The overlay layer that receives the writes of the command.
    pub(super) layers: Option<LayerPaths>,
}

/// A report of the supervisor: its name first, then the result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SupervisorReport {
    Hello(String),
    Ended(CommandEnd),
    Failed(CommandStartFailure),
}

/// How the command ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommandEnd {
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) timed_out: bool,
    pub(super) stragglers: u32,
    pub(super) left: u32,
    pub(super) confinement: Confinement,
}

/// Why the command was not started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CommandStartFailure {
    ShellMissing,
    NotConfined(String),
    NotLayered,
    Start(String),
}
