//! One command line, run with an end.
//!
//! A command may fork, detach, ignore signals, print for ever or wait for
//! somebody. So a process of its own, the supervisor, stands above each one: it
//! adopts what its parents leave behind, and nothing is left when it reports.
//! Safe Rust can't prepare a process between fork and exec, so the supervisor is
//! this program again, started with [`CHILD`] as its only word.

mod apply;
mod cancel;
mod child;
mod confine;
mod descendants;
mod environment;
mod keep;
mod layers;
mod output;
mod relative;
mod supervised;
mod tool;
mod wire;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::cancel::Cancel;
pub use self::child::child;
pub use self::descendants::{adopt, end_adopted};
pub use self::keep::{Artifact, Keep};
pub(crate) use self::layers::{LAYER, Layers, clear_left};
pub use self::output::{Kept, Text};
pub use self::relative::Roots;
use self::supervised::Supervised;
pub(crate) use self::tool::{call, call_within, spec};

/// The word after a program's name that makes it a supervisor: whoever embeds
/// [`run`] calls [`child`] when it is started with it.
pub const CHILD: &str = "shell-child";

/// The longest command line: the system takes no longer single argument.
pub const COMMAND_BYTES_MAX: usize = (128 << 10) - 1;

/// How much of an output is kept as an artifact.
const ARTIFACT_BYTES_MAX: usize = 16 << 20;

/// Shells that are looked for, the best first: agents write for the first.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// How long a command may run, what it may print, and where it may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLimits {
    /// When it is ended, however far it is.
    pub timeout_ms: u64,
    /// How long it may tidy up then, before it is ended for good.
    pub grace_ms: u64,
    /// How much of its output is kept: half from the beginning, half from the end.
    pub output_bytes_max: usize,
    /// How much it may print before it is ended.
    pub printed_bytes_max: u64,
    /// Where it may write besides the workspace and the directory for temporary files.
    pub writable: Vec<PathBuf>,
    /// Variables it gets although their names look like secrets.
    pub environment: Vec<String>,
    /// Variables it does not get although their names look like nothing.
    pub hidden: Vec<String>,
    /// Whether it is kept from writing elsewhere.
    pub confine: Confine,
    /// The shell that reads it.
    pub shell: PathBuf,
    /// The program that stands above it, if not the one that runs.
    pub supervisor: Option<PathBuf>,
    /// Whether it is to be ended before its time.
    pub cancel: Cancel,
    /// Who keeps all that it printed where that is not shown, or where it failed.
    pub keep: Keep,
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
            confine: Confine::WherePossible,
            shell: PathBuf::from(there.unwrap_or("/bin/sh")),
            supervisor: None,
            cancel: Cancel::default(),
            keep: Keep::default(),
        }
    }
}

/// Whether a command is kept from writing outside of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confine {
    /// As far as the kernel can.
    WherePossible,
    /// Completely, or it is not run.
    Required,
    /// No.
    Off,
}

/// How far a command was kept from writing outside of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// Completely.
    Full,
    /// As far as an older kernel can.
    Partial,
    /// Not at all.
    None,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field that the agent reads")]
pub struct ShellOutput {
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it ran out of time.
    pub timed_out: bool,
    /// Whether it was ended because it printed too much.
    pub printed_too_much: bool,
    /// Whether it was ended from outside, before its time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// What it printed, both streams as a terminal shows them, paths within the
    /// workspace relative to it.
    pub output: String,
    /// Whether the middle of it is missing.
    pub truncated: bool,
    /// Whether some of it was no text, and is shown as `�`.
    pub lossy: bool,
    /// How much it printed.
    pub bytes_total: u64,
    /// How many processes were still at work when it ended, and were ended.
    pub processes_ended: u32,
    /// How many of them could not be ended.
    pub processes_left: u32,
    /// How far it was kept from writing outside of the workspace.
    pub confinement: Confinement,
    /// Where all of the output lies, where not all is shown or the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

impl ShellOutput {
    /// Has all of the output kept, if that is of use.
    fn keep(mut self, whole: &str, keep: &Keep) -> Self {
        if !whole.is_empty() && (self.truncated || !self.succeeded()) {
            match keep.keep(whole) {
                Some(Ok(artifact)) => self.artifact = Some(artifact),
                Some(Err(why)) => self.not_kept = Some(why),
                None => {}
            }
        }
        self
    }

    /// Whether it did what it was to do, as far as its exit code says.
    pub fn succeeded(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out && !self.printed_too_much && !self.cancelled
    }

    /// The output, and below it what is not to be overlooked.
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
            say("it ran out of time and was ended; run less at once");
        }
        if self.printed_too_much {
            say("it printed too much and was ended; send what it prints to a file");
        }
        if self.cancelled {
            say("it was ended from outside, before its time");
        }
        if let (Some(artifact), true) = (&self.artifact, self.truncated) {
            let Artifact { file, cursor, bytes } = artifact;
            say(&format!(
                "{bytes} bytes of it lie in `{file}` for now; read them with `jackline_page` \
                 {{\"cursor\":\"{cursor}\"}}"
            ));
        }
        if let Some(why) = &self.not_kept {
            say(&format!("what is not shown could not be kept: {why}"));
        }
        match (self.exit_code, self.signal) {
            (Some(code), _) => say(&format!("exit code {code}")),
            (None, Some(signal)) => say(&format!("ended by signal {signal}")),
            (None, None) => say("ended"),
        }
        match self.processes_ended {
            0 => {}
            1 => say("a process that it left running was ended"),
            many => say(&format!("{many} processes that it left running were ended")),
        }
        if self.processes_left > 0 {
            say(&format!("{} processes could not be ended", self.processes_left));
        }
        text
    }
}

/// Why a command was not run, or why nobody knows what came of it.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// There is nothing to run.
    #[error("the command is empty")]
    Empty,
    /// No system takes it.
    #[error("the command holds a NUL byte")]
    Nul,
    /// No system takes it.
    #[error("the command has {bytes} bytes, more than {COMMAND_BYTES_MAX}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// There is no such directory.
    #[error("can't work in the workspace")]
    Root(#[source] std::io::Error),
    /// There is no such shell.
    #[error("there is no shell `{}`", shell.display())]
    ShellMissing {
        /// Where it was looked for.
        shell: PathBuf,
    },
    /// It must be confined, and can't be.
    #[error("the command can't be kept within the workspace: {reason}")]
    NotConfined {
        /// What the kernel lacks.
        reason: String,
    },
    /// This kernel lays nothing over the workspace. Nothing was run.
    #[error("nothing can be laid over the workspace")]
    NotLayered,
    /// The shell could not be started.
    #[error("can't start the shell: {reason}")]
    Start {
        /// What the system says.
        reason: String,
    },
    /// The supervisor could not be started, or spoken with.
    #[error("can't run the supervisor of a command")]
    Supervisor(#[source] std::io::Error),
    /// The program that should supervise does something else.
    #[error("`{}` is no supervisor of commands", program.display())]
    Stranger {
        /// The program.
        program: PathBuf,
    },
    /// The supervisor was ended before it could report.
    #[error("the supervisor was ended before the command was")]
    Lost,
}

impl ShellError {
    /// The error as a word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty_command",
            Self::Nul => "invalid_command",
            Self::TooLong { .. } => "command_too_long",
            Self::Root(_) => "workspace_missing",
            Self::ShellMissing { .. } => "shell_missing",
            Self::NotConfined { .. } => "not_confined",
            Self::NotLayered => "not_layered",
            Self::Start { .. } => "shell_not_started",
            Self::Supervisor(_) | Self::Stranger { .. } => "supervisor_broken",
            Self::Lost => "supervisor_lost",
        }
    }

    /// What can be done about it.
    pub fn guidance(&self) -> &'static str {
        match self {
            Self::Empty => "say what to run in `command`",
            Self::Nul => "leave the NUL byte out; `printf '\\0'` makes one",
            Self::TooLong { .. } => "write the script to a file with `write_file`, and run that",
            Self::Root(_) => "the directory of the workspace is gone or closed: tell a person",
            Self::ShellMissing { .. } => "this machine runs no commands: use the other tools",
            Self::NotConfined { .. } => {
                "this kernel can't confine commands as demanded: use the other tools"
            }
            Self::NotLayered | Self::Start { .. } | Self::Supervisor(_) => {
                "try once more, then tell a person"
            }
            Self::Stranger { .. } => "the installation is broken: tell a person",
            Self::Lost => "what the command did is unknown: look before you run it again",
        }
    }
}

/// Runs a command line in the workspace and waits for its end. When it returns,
/// nothing that the command started is at work any more, or the output counts it.
pub fn run(root: &Path, limits: &ShellLimits, command: &str) -> Result<ShellOutput, ShellError> {
    run_over(root, limits, command, None)
}

/// The same, where what the command writes into the workspace goes into a layer over it.
fn run_over(
    root: &Path,
    limits: &ShellLimits,
    command: &str,
    layers: Option<&Layers>,
) -> Result<ShellOutput, ShellError> {
    if command.trim().is_empty() {
        return Err(ShellError::Empty);
    }
    if command.contains('\0') {
        return Err(ShellError::Nul);
    }
    if command.len() > COMMAND_BYTES_MAX {
        return Err(ShellError::TooLong { bytes: command.len() });
    }
    if !limits.shell.is_file() {
        return Err(ShellError::ShellMissing { shell: limits.shell.clone() });
    }
    let roots = Roots::new(root).map_err(ShellError::Root)?;
    let held = if limits.keep.is_possible() { ARTIFACT_BYTES_MAX } else { 0 };
    let mut kept = Kept::new(limits.output_bytes_max).holding(held);
    let supervised = Supervised::start(roots.canonical(), limits, command, layers)?;
    let heard = supervised.listen(limits, &mut kept)?;
    let bytes_total = kept.bytes_total();
    let whole = roots.relative(&kept.whole());
    let text = kept.finish();
    let output = ShellOutput {
        exit_code: heard.ended.exit_code,
        signal: heard.ended.signal,
        timed_out: heard.ended.timed_out,
        printed_too_much: heard.printed_too_much,
        cancelled: heard.cancelled,
        output: roots.relative(&text.shown),
        truncated: text.truncated,
        lossy: text.lossy,
        bytes_total,
        processes_ended: heard.ended.stragglers,
        processes_left: heard.ended.left,
        confinement: heard.ended.confinement,
        artifact: None,
        not_kept: None,
    };
    Ok(output.keep(&whole, &limits.keep))
}
