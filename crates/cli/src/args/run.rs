//! The arguments of `jackline run`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(
    after_help = "The guards of one session decide on every call. If the agent is in a loop, an advisor model is \
asked, then the next model takes over. If a person is needed, the run waits, or without a terminal it exits: \
`jackline status` shows why; `jackline clear`, `ack` or `resume` continues it; `jackline stop` or a file \
`.jackline/STOP` stops it. See docs/guide/run.md.\n\n\
Exit codes: 0 the objective is achieved; 1 it is not; 2 wrong usage or an invalid task; 3 the guard is broken."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct RunArgs {
    /// The task: a YAML file, or a directory with a `task.yaml`
    #[arg(required_unless_present = "resume")]
    pub(crate) task: Option<PathBuf>,
    /// Resume a run that was interrupted [default: the latest unfinished run that was started here]
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "", conflicts_with = "task")]
    pub(crate) resume: Option<String>,
    /// The directory that the agent works in [default: the current directory, or a copy of the
    /// directory that the task names]
    #[arg(short, long, value_name = "DIRECTORY", conflicts_with = "resume")]
    pub(crate) workspace: Option<PathBuf>,
    /// The definition [default: the task's, else jackline.yaml in the workspace or in a parent]
    #[arg(short, long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) definition: Option<PathBuf>,
    /// The worker program, for a task with `acts: programs` [default: jackline-sandbox next to this
    /// program or in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) sandbox: Option<PathBuf>,
    /// The role of the agent [default: the task's, else `identity.default_role` of the definition]
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// The time when the work must be finished, as 2026-01-31T18:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Exit instead of waiting if a person is needed; `--resume` continues the run [default without
    /// a terminal]
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Wait for a person also without a terminal
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) wait: bool,
    /// Use the task's scripted model even if the environment configures a real model
    #[arg(long)]
    pub(crate) scripted: bool,
    /// Print JSON, one object per line; the last one is the outcome
    #[arg(long)]
    pub(crate) json: bool,
}
