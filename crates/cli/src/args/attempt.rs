//! What can be said about attempts, and about what they and others wrote.

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

#[derive(Args)]
#[command(
    after_help = "Undone is what the agent's own tools for files wrote (Write and Edit of a hooked \
client), and what attempts did. A file that somebody else has changed since stays as it is, and is \
named with the copy of what it was. What commands did is not undone.\n\n\
Exit codes: 0 done, or nothing to do; 1 something is not as it was; 2 usage or bad input; \
3 the guard itself is broken.\n\n\
This is for a person: it is refused where an agent started it, unless with --dry-run."
)]
pub(crate) struct UndoArgs {
    /// An id, a unique prefix, or a journal file
    pub(crate) session: String,
    /// Only what this attempt did
    pub(crate) attempt: Option<String>,
    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}
