//! What can be said about work without a person.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(
    after_help = "Every call is decided on by the guards of one session. Where the agent goes in circles an advisor is \
asked, where a model does not answer the next one takes over, and where a person is needed it waits: \
`jackline status` shows for what, `jackline clear`, `ack` and `resume` go on, `jackline stop` or a file \
`.jackline/STOP` ends it. See docs/guide/run.md.\n\n\
Exit codes: 0 the objective is achieved; 1 it is not; 2 usage, or a task that is wrong; 3 the guard is broken."
)]
pub(crate) struct RunArgs {
    /// The task: a YAML file, or a directory with a `task.yaml`
    #[arg(required_unless_present = "resume")]
    pub(crate) task: Option<PathBuf>,
    /// Go on with a run that was left or killed [default: the latest that was started here and is not over]
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "", conflicts_with = "task")]
    pub(crate) resume: Option<String>,
    /// The directory that the agent works in [default: the one it is started in, or a copy of what the task names]
    #[arg(short, long, value_name = "DIRECTORY", conflicts_with = "resume")]
    pub(crate) workspace: Option<PathBuf>,
    /// The definition [default: the task's, else jackline.yaml in the workspace or in a parent]
    #[arg(short, long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) definition: Option<PathBuf>,
    /// The worker that runs programs, for a task that acts by them [default: jackline-sandbox beside this program or in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) sandbox: Option<PathBuf>,
    /// The role in which the agent acts [default: the task's, else developer]
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// When the work must be over, as 2026-01-31T18:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Leave where a person is needed, instead of waiting; `--resume` goes on
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Play the task's script although a model is in the environment
    #[arg(long)]
    pub(crate) scripted: bool,
    /// Print JSON, one object a line; the last one is the outcome
    #[arg(long)]
    pub(crate) json: bool,
}
