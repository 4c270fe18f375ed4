//! The arguments of `jackline init`.

use std::path::PathBuf;

use clap::Args;
use jackline_clients::CLIENTS;

/// The help text for the list of clients.
fn clients_help() -> String {
    let names: Vec<&str> = CLIENTS.iter().map(|client| client.id.as_str()).collect();
    format!("The clients: {} [default: all installed clients]", names.join(", "))
}

#[derive(Args)]
#[command(
    after_help = "Without --shared or --user, installs in your own settings of this project. \
Shows what changes and asks before it writes. Your own hooks, comments and formatting stay. \
The earlier version of each file is saved in backups/ of the state home. At the end the real client tries a call \
that must be denied, as in `jackline doctor`.\n\n\
Exit codes: 0 done, or nothing to do; 1 not done, or the hooks will not run, or the denied call was not \
blocked; 2 wrong usage or invalid input; 3 the guard itself is broken."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct InitArgs {
    #[arg(value_name = "CLIENT", help = clients_help())]
    pub(crate) clients: Vec<String>,
    /// Guard the MCP servers of the client: your own servers of this project, with --user those of
    /// all your projects, with --shared those in .mcp.json
    #[arg(long)]
    pub(crate) mcp: bool,
    /// Also guard remote servers (type `http`): all of them, or the named server. Can be given
    /// several
    /// times. Servers that need a login by the client are not supported
    #[arg(long, value_name = "NAME", requires = "mcp", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) remote: Vec<String>,
    /// Install in the settings that everyone shares who works in this project. Where `jackline` is
    /// not installed, the client then blocks every call
    #[arg(long, conflicts_with = "user")]
    pub(crate) shared: bool,
    /// Install in your user settings, for all your projects
    #[arg(long)]
    pub(crate) user: bool,
    /// The role of the agent, for definitions with roles [default: the installed one, else none]
    #[arg(long, conflicts_with_all = ["mcp", "uninstall"], value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) role: Option<String>,
    /// Remove the guard
    #[arg(long)]
    pub(crate) uninstall: bool,
    /// With --uninstall, also remove the definition that init wrote, the reports in .jackline/, and
    /// the sessions of this project, without another question
    #[arg(long, requires = "uninstall", conflicts_with = "mcp")]
    pub(crate) purge: bool,
    /// Show every changed line
    #[arg(long)]
    pub(crate) diff: bool,
    /// Show what would change, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Skip the test with the real client at the end, which takes a few seconds
    #[arg(long)]
    pub(crate) no_canary: bool,
    /// The client's program, if it is not in PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) client_program: Option<PathBuf>,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}
