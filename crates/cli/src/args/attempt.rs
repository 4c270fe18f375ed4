//! `jackline attempt`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(
    after_help = "What the model writes is looked at before it runs, each of its calls is decided on, and \
everything an attempt did is undone where it fails. See docs/guide/attempt.md.\n\n\
Exit codes: 0 done; 1 not done; 2 usage, or a task that is wrong; 3 the guard or the worker is broken, \
or an attempt could not be undone."
)]
pub(crate) struct AttemptArgs {
    /// The task: a YAML file, or a directory with a `task.yaml`
    pub(crate) task: PathBuf,
    /// The directory that the tools work in [default: the one it is started in]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) workspace: Option<PathBuf>,
    /// The definition [default: the task's, else jackline.yaml in the workspace or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// The worker that runs programs [default: jackline-sandbox beside this program or in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) sandbox: Option<PathBuf>,
    /// Print JSON, one object a line; the last one is the outcome
    #[arg(long)]
    pub(crate) json: bool,
}
