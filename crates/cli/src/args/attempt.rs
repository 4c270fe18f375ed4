//! The arguments of `jackline attempt` and `jackline undo`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(
    after_help = "The program that the model writes is checked before it runs, the guard decides on each of its calls, \
and everything is undone if the attempt fails. See docs/guide/attempt.md.\n\n\
Exit codes: 0 done; 1 not done; 2 wrong usage or an invalid task; 3 the guard or the worker is broken, \
or an attempt could not be undone."
)]
pub(crate) struct AttemptArgs {
    /// The task: a YAML file, or a directory with a `task.yaml`
    pub(crate) task: PathBuf,
    /// The directory that the tools work in [default: the current directory]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) workspace: Option<PathBuf>,
    /// The definition [default: the task's, else jackline.yaml in the workspace or in a parent,
    /// else the preset coding-agent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// The worker program that runs generated programs [default: jackline-sandbox next to this
    /// program or in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) sandbox: Option<PathBuf>,
    /// Print JSON, one object per line; the last one is the outcome
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the public outcome, as one JSON object without internal details
    #[arg(long, conflicts_with = "json")]
    pub(crate) public: bool,
}

#[derive(Args)]
#[command(
    after_help = "Undoes the changes that the agent's file tools made (Write and Edit of a hooked \
client), and the changes of attempts. A file that was changed later by someone else is left alone, and the \
output names the copy of its earlier contents. Changes made by commands are not undone.\n\n\
Exit codes: 0 done, or nothing to do; 1 a file was not restored; 2 wrong usage or invalid input; \
3 the guard itself is broken.\n\n\
Only a person may run this command without --dry-run. It is refused if an agent started it."
)]
pub(crate) struct UndoArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    /// Undo only this attempt
    pub(crate) attempt: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}
