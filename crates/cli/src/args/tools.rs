//! What can be said about forged tools.

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "A tool is here because an attempt succeeded with it; its version is the checksum of its \
source. It is `durable` where few of its last uses failed, `degraded` where most did, and `new` before \
enough is known (`health` in the definition). Failures that are the world's fault do not count.\n\n\
Exit codes: 0 fine; 1 an entry is broken, or there is no such tool; 2 usage; 3 the registry can't be \
read or written."
)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
    /// Print JSON, one object a tool
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum ToolsCommand {
    /// Show the source of a tool
    Show(ShowToolArgs),
    /// Remove a tool, also one whose entry is broken
    #[command(after_help = "This is for a person: it is refused where an agent started it.")]
    Remove(RemoveToolArgs),
}

#[derive(Args)]
pub(crate) struct ShowToolArgs {
    /// The tool, as `jackline tools` names it
    pub(crate) name: String,
    /// Print JSON, one object with everything that is known
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RemoveToolArgs {
    /// The tool, as `jackline tools` names it
    pub(crate) name: String,
}
