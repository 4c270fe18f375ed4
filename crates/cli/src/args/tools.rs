//! The arguments of `jackline tools`, which manages generated tools.

use clap::{Args, Subcommand};

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "A generated tool is a tool that a model wrote. It is listed because an attempt succeeded with it; its \
version is the checksum of its source. Its state is `durable` if few of its last uses failed, `degraded` if most \
failed, `probation` if a model has generated a degraded tool again, and `new` until there are enough uses (`health` in the definition). Failures with an external cause do not \
count.\n\n\
Exit codes: 0 success; 1 an entry is broken, or the tool does not exist; 2 wrong usage; 3 the registry can't be \
read or written."
)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
    /// Print JSON, one object per tool
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum ToolsCommand {
    /// Show the source of a tool
    Show(ShowToolArgs),
    /// Remove a tool, even if its entry is broken
    #[command(
        after_help = "Only a person may run this command. It is refused if an agent started it."
    )]
    Remove(RemoveToolArgs),
}

#[derive(Args)]
pub(crate) struct ShowToolArgs {
    /// The name of the tool, as `jackline tools` lists it
    pub(crate) name: String,
    /// Print JSON, one object with all details
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RemoveToolArgs {
    /// The name of the tool, as `jackline tools` lists it
    pub(crate) name: String,
}
