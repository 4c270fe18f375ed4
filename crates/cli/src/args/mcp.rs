//! The arguments of `jackline mcp`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum McpCommand {
    /// Serve guarded tools for one workspace, on standard input and output
    Serve(ServeArgs),
    /// Run as a proxy for an MCP server: only calls that the definition allows reach it
    Wrap(WrapArgs),
}

#[derive(Args)]
#[command(
    after_help = "An MCP client starts this command. The guard decides on each call first; a refusal is returned \
as the result of the tool. See docs/guide/mcp-serve.md."
)]
pub(crate) struct ServeArgs {
    /// The definition [default: jackline.yaml in the workspace or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// The directory that the tools work in [default: the current directory]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) workspace: Option<PathBuf>,
    /// The session for the calls [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The session of the client that uses this server
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
}

#[derive(Args)]
#[command(
    group = ArgGroup::new("behind").required(true).args(["url", "url_env", "server"]),
    after_help = "All messages pass unchanged except tool calls. The guard decides on each call; a refusal is returned \
as the result of the tool. See docs/guide/mcp.md."
)]
pub(crate) struct WrapArgs {
    /// The definition [default: jackline.yaml here or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// The session for the calls [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The session of the client that uses this server [default: from the environment]
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
    /// Timeout in seconds of a request without an answer or a progress message
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// The URL of a remote server that speaks streamable HTTP
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The environment variable with the URL. Use it for a URL that contains a key, because other
    /// users can read command lines
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) url_env: Option<String>,
    /// A header for every request, as `Name: value`; can be given several times
    #[arg(long, value_name = "HEADER", conflicts_with = "server")]
    pub(crate) header: Vec<String>,
    /// A header with its value from an environment variable, as `Name=VARIABLE`. Use it for tokens,
    /// because other users can read command lines
    #[arg(long, value_name = "HEADER", conflicts_with = "server")]
    pub(crate) header_env: Vec<String>,
    /// Allow an unencrypted connection to a server on another machine
    #[arg(long, conflicts_with = "server")]
    pub(crate) insecure_http: bool,
    /// The server: a program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) server: Vec<String>,
}
