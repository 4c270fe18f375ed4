//! `jackline init`.

use std::path::PathBuf;

use clap::Args;
use jackline_clients::CLIENTS;

/// The help of the list of clients.
fn clients_help() -> String {
    let words: Vec<&str> = CLIENTS.iter().map(|client| client.id.as_str()).collect();
    format!("The clients: {} [default: those that are found]", words.join(", "))
}

#[derive(Args)]
#[command(
    after_help = "Shows what would change and asks before it writes. Your own hooks, comments and \
formatting stay; what a file was before is kept in backups/ of the state home. At the end the client \
itself tries a call that must not run, as `jackline doctor` does.\n\n\
Exit codes: 0 done, or nothing to do; 1 not done, or the hooks will not run, or the guard was not seen \
to hold; 2 usage or bad input; 3 the guard itself is broken."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct InitArgs {
    #[arg(value_name = "CLIENT", help = clients_help())]
    pub(crate) clients: Vec<String>,
    /// Put the guard before the MCP servers of the client: those in .mcp.json, or with --local and
    /// --user those that you have added for yourself
    #[arg(long)]
    pub(crate) mcp: bool,
    /// Also before those that the client reaches by an address of type `http`: all of them, or one
    /// by its name, which may be given several times. Not for those that the client logs in to
    #[arg(long, value_name = "NAME", requires = "mcp", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) remote: Vec<String>,
    /// For you in this project alone: the client's own settings here that are not shared
    #[arg(long, conflicts_with = "user")]
    pub(crate) local: bool,
    /// For you in all projects: the client's settings of your user
    #[arg(long)]
    pub(crate) user: bool,
    /// Take the guard out again
    #[arg(long)]
    pub(crate) uninstall: bool,
    /// Only show what would change
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Write without being asked
    #[arg(long)]
    pub(crate) yes: bool,
    /// Do not let the client try afterwards whether a denied call runs; it takes a few seconds
    #[arg(long)]
    pub(crate) no_canary: bool,
    /// The client's program, where it is not found by its name
    #[arg(long, value_name = "PATH")]
    pub(crate) client_program: Option<PathBuf>,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}
