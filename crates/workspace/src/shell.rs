//! Runs one command line with a time limit, and ends everything it started.
//!
//! A command may fork, detach, ignore signals, print forever or wait for input. So each command has
//! its own supervisor process. The supervisor adopts processes whose parents ended, and ends all of
//! them before it reports. Safe Rust can't prepare a process between fork and exec, so the
//! supervisor is the current program, started again with the argument [`SUPERVISOR_ARGUMENT`].

mod apply_layer;
mod artifact_sink;
mod cancel;
mod confine;
mod descendants;
mod environment;
mod layers;
mod output;
mod relative;
mod supervised_command;
mod supervisor;
mod tool;
mod wire;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::artifact_sink::{Artifact, ArtifactSink};
pub use self::cancel::CancelSignal;
pub use self::descendants::{adopt_orphans, end_descendants};
pub(crate) use self::layers::{LAYER_PREFIX, LayerPaths, remove_stale_layers};
pub use self::output::{OutputBuffer, OutputText};
pub use self::relative::WorkspaceRoots;
use self::supervised_command::SupervisedCommand;
pub use self::supervisor::supervisor_main;
pub(crate) use self::tool::{call, call_within, spec};

/// The argument that makes a program the supervisor. A program that calls [`run_command`] must call
/// [`supervisor_main`] when it is started with this argument.
pub const SUPERVISOR_ARGUMENT: &str = "shell-child";

/// The longest command line. Linux accepts no longer single argument.
pub const COMMAND_BYTES_MAX: usize = (128 << 10) - 1;

/// How much of an output is stored as an artifact.
const ARTIFACT_BYTES_MAX: usize = 16 << 20;

/// The shells that are tried, in this order. Agents write commands for bash.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// The limits of a command: its run time, its output, and where it may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLimits {
    /// The timeout, after which the command is ended.
    pub timeout_ms: u64,
    /// How long the command may clean up after the timeout before it is killed.
    pub grace_ms: u64,
    /// How much of the output is shown: half from the start, half from the end.
    pub output_bytes_max: usize,
    /// How much the command may print before it is ended.
    pub printed_bytes_max: u64,
    /// Directories that the command may write to, in addition to the workspace and the directory
    /// for temporary files.
    pub writable: Vec<PathBuf>,
    /// Environment variables that the command gets although their names look like secrets.
    pub environment: Vec<String>,
    /// Environment variables that the command does not get although their names look harmless.
    pub hidden: Vec<String>,
    /// Whether the command is prevented from writing elsewhere.
    pub confine: ConfineMode,
    /// The shell that runs the command line.
    pub shell: PathBuf,
    /// The program of the supervisor, if it is not the current program.
    pub supervisor: Option<PathBuf>,
    /// Tells when the command must be cancelled.
    pub cancel: CancelSignal,
    /// Stores the whole output if only a part of it is shown or the command failed.
    pub artifact_sink: ArtifactSink,
}

impl Default for ShellLimits {
    fn default() -> Self {
        let there = SHELLS.iter().copied().find(|shell| Path::new(shell).is_file());
        Self {
            timeout_ms: 120_000,
            grace_ms: 500,
            output_bytes_max: 32 << 10,
            printed_bytes_max: 1 << 30,
            writable: Vec::new(),
            environment: Vec::new(),
            hidden: Vec::new(),
            confine: ConfineMode::WherePossible,
            shell: PathBuf::from(there.unwrap_or("/bin/sh")),
            supervisor: None,
            cancel: CancelSignal::default(),
            artifact_sink: ArtifactSink::default(),
        }
    }
}

/// Whether a command is prevented from writing outside of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfineMode {
    /// As far as the kernel supports it.
    WherePossible,
    /// Completely; if the kernel does not support it, the command is not run.
    Required,
    /// Not at all.
    Off,
}

/// How far a command was prevented from writing outside of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// Completely.
    Full,
    /// As far as an older kernel supports it.
    Partial,
    /// Not at all.
    None,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field that the agent reads")]
pub struct ShellOutput {
    /// The exit code, if no signal ended the command.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Whether the timeout ended the command.
    pub timed_out: bool,
    /// Whether the command was ended because it printed too much.
    pub printed_too_much: bool,
    /// Whether the caller cancelled the command.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The output of both streams, in the order of a terminal. Paths in the workspace are relative
    /// to it.
    pub output: String,
    /// Whether the middle of the output is missing.
    pub truncated: bool,
    /// Whether the output contained bytes that are not text; they are shown as `�`.
    pub lossy: bool,
    /// How many bytes the command printed.
    pub bytes_total: u64,
    /// How many background processes were still running when the command ended, and were ended.
    pub processes_ended: u32,
    /// How many processes could not be ended.
    pub processes_left: u32,
    /// How far the command was prevented from writing outside of the workspace.
    pub confinement: Confinement,
    /// Where the whole output is stored, if only a part is shown or the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// Why the whole output could not be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

impl ShellOutput {
    /// Stores the whole output, if the answer shows only a part of it or the command failed.
    fn store_artifact(mut self, whole: &str, keep: &ArtifactSink) -> Self {
        if !whole.is_empty() && (self.truncated || !self.succeeded()) {
            match keep.store(whole) {
                Some(Ok(artifact)) => self.artifact = Some(artifact),
                Some(Err(why)) => self.not_kept = Some(why),
                None => {}
            }
        }
        self
    }

    /// Whether the command succeeded, according to its exit code.
    pub fn succeeded(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out && !self.printed_too_much && !self.cancelled
    }

    /// The output, followed by notes about how the command ended.
    pub fn render_text(&self) -> String {
        let mut text = self.output.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let mut say = |line: &str| {
            text.push('[');
            text.push_str(line);
            text.push_str("]\n");
        };
        if self.timed_out {
            say("the command timed out and was ended; run less at once");
        }
        if self.printed_too_much {
            say("the command printed too much and was ended; redirect its output to a file");
        }
        if self.cancelled {
            say("the command was cancelled");
        }
        if let (Some(artifact), true) = (&self.artifact, self.truncated) {
            let Artifact { file, cursor, bytes } = artifact;
            say(&format!(
                "{bytes} bytes of the output are stored in `{file}`; read them with \
                 `jackline_page` {{\"cursor\":\"{cursor}\"}}"
            ));
        }
        if let Some(why) = &self.not_kept {
            say(&format!("the rest of the output could not be stored: {why}"));
        }
        match (self.exit_code, self.signal) {
            (Some(code), _) => say(&format!("exit code {code}")),
            (None, Some(signal)) => say(&format!("ended by signal {signal}")),
            (None, None) => say("ended without an exit code"),
        }
        match self.processes_ended {
            0 => {}
            1 => say("a process that the command left running was ended"),
            many => say(&format!("{many} processes that the command left running were ended")),
        }
        if self.processes_left > 0 {
            say(&format!("{} processes could not be ended", self.processes_left));
        }
        text
    }
}

/// Why a command was not run, or why its result is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The command line is empty.
    #[error("the command is empty")]
    Empty,
    /// The command line contains a NUL byte, which the system does not accept.
    #[error("the command contains a NUL byte")]
    ContainsNul,
    /// The command line is longer than the system accepts.
    #[error("the command has {bytes} bytes, more than {COMMAND_BYTES_MAX}")]
    TooLong {
        /// The length of the command line.
        bytes: usize,
    },
    /// The workspace directory is missing.
    #[error("can't open the workspace directory")]
    Root(#[source] std::io::Error),
    /// The shell is missing.
    #[error("the shell `{}` does not exist", shell.display())]
    ShellMissing {
        /// The path of the shell.
        shell: PathBuf,
    },
    /// The command must be confined, and the kernel can't do it.
    #[error("the command can't be confined to the workspace: {reason}")]
    NotConfined {
        /// What the kernel does not support.
        reason: String,
    },
    /// The kernel can't mount an overlay on the workspace. Nothing was run.
    #[error("can't mount an overlay on the workspace")]
    NotLayered,
    /// The shell could not be started.
    #[error("can't start the shell: {reason}")]
    Start {
        /// The error of the system.
        reason: String,
    },
    /// The supervisor could not be started, or the connection to it failed.
    #[error("can't run the command supervisor")]
    Supervisor(#[source] std::io::Error),
    /// The program that should be the supervisor did not answer as one.
    #[error("`{}` is not a command supervisor", program.display())]
    NotASupervisor {
        /// The program.
        program: PathBuf,
    },
    /// The supervisor was killed before it could report.
    #[error("the command supervisor was killed before it could report how the command ended")]
    Lost,
}

impl ShellError {
    /// The error code in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty_command",
            Self::ContainsNul => "invalid_command",
            Self::TooLong { .. } => "command_too_long",
            Self::Root(_) => "workspace_missing",
            Self::ShellMissing { .. } => "shell_missing",
            Self::NotConfined { .. } => "not_confined",
            Self::NotLayered => "not_layered",
            Self::Start { .. } => "shell_not_started",
            Self::Supervisor(_) | Self::NotASupervisor { .. } => "supervisor_broken",
            Self::Lost => "supervisor_lost",
        }
    }

    /// What the caller can do about the error.
    pub fn guidance(&self) -> &'static str {
        match self {
            Self::Empty => "put the command line into `command`",
            Self::ContainsNul => "remove the NUL byte; `printf '\\0'` prints one",
            Self::TooLong { .. } => {
                "write the script to a file with `write_file`, and run the file"
            }
            Self::Root(_) => "the workspace directory is missing or not accessible: tell the user",
            Self::ShellMissing { .. } => {
                "commands can't be run on this machine: use the other tools"
            }
            Self::NotConfined { .. } => {
                "this kernel can't confine commands as the definition requires: use the other tools"
            }
            Self::NotLayered | Self::Start { .. } | Self::Supervisor(_) => {
                "try once more, then tell the user"
            }
            Self::NotASupervisor { .. } => "the installation of Jackline is broken: tell the user",
            Self::Lost => "it is unknown what the command did: check that before you run it again",
        }
    }
}

/// Runs a command line in the workspace and waits for its end. When it returns, every process of
/// the command has ended, or `processes_left` counts it.
pub fn run_command(
    root: &Path,
    limits: &ShellLimits,
    command: &str,
) -> Result<ShellOutput, ShellError> {
    run_command_over(root, limits, command, None)
}

/// Like [`run_command`], but writes of the command go into an overlay layer instead of the
/// workspace.
fn run_command_over(
    root: &Path,
    limits: &ShellLimits,
    command: &str,
    layers: Option<&LayerPaths>,
) -> Result<ShellOutput, ShellError> {
    if command.trim().is_empty() {
        return Err(ShellError::Empty);
    }
    if command.contains('\0') {
        return Err(ShellError::ContainsNul);
    }
    if command.len() > COMMAND_BYTES_MAX {
        return Err(ShellError::TooLong { bytes: command.len() });
    }
    if !limits.shell.is_file() {
        return Err(ShellError::ShellMissing { shell: limits.shell.clone() });
    }
    let roots = WorkspaceRoots::new(root).map_err(ShellError::Root)?;
    let artifact_bytes_max =
        if limits.artifact_sink.is_possible() { ARTIFACT_BYTES_MAX } else { 0 };
    let mut buffer = OutputBuffer::new(limits.output_bytes_max).storing_whole(artifact_bytes_max);
    let supervised = SupervisedCommand::start(roots.canonical(), limits, command, layers)?;
    let outcome = supervised.wait_for_end(limits, &mut buffer)?;
    let bytes_total = buffer.bytes_total();
    let whole = roots.relative(&buffer.whole());
    let text = buffer.finish();
    let output = ShellOutput {
        exit_code: outcome.end.exit_code,
        signal: outcome.end.signal,
        timed_out: outcome.end.timed_out,
        printed_too_much: outcome.printed_too_much,
        cancelled: outcome.cancelled,
        output: roots.relative(&text.shown),
        truncated: text.truncated,
        lossy: text.lossy,
        bytes_total,
        processes_ended: outcome.end.stragglers,
        processes_left: outcome.end.left,
        confinement: outcome.end.confinement,
        artifact: None,
        not_kept: None,
    };
    Ok(output.store_artifact(&whole, &limits.artifact_sink))
}
