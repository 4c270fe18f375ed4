//! `jackline mcp`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum McpCommand {
    /// Serve bounded tools for one workspace, on standard input and output
    Serve(ServeArgs),
    /// Stand before a server: its tools are called only if the definition lets them
    Wrap(WrapArgs),
}

#[derive(Args)]
#[command(
    after_help = "Started by an MCP client. Each call is decided on first, and a refusal is \
the tool's result. See docs/guide/mcp.md."
)]
pub(crate) struct ServeArgs {
    /// The definition [default: jackline.yaml in the workspace or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// The directory that the tools work in [default: the one it is started in]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) workspace: Option<PathBuf>,
    /// The session of the calls [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The session of the client that has this server
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
}

#[derive(Args)]
#[command(
    group = ArgGroup::new("behind").required(true).args(["url", "url_env", "server"]),
    after_help = "Everything passes as it is, but calls of tools: each is decided on, and a \
refusal is the tool's result. See docs/guide/mcp.md."
)]
pub(crate) struct WrapArgs {
    /// The definition [default: jackline.yaml here or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// The session of the calls [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The session of the client that has this server [default: what the environment names]
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
    /// Seconds a request may be without an answer or a word of progress
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// The address of a server that runs elsewhere, and speaks streamable HTTP
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The environment variable with that address: for one that holds a key, which others could
    /// read on the command line
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) url_env: Option<String>,
    /// A header for every request, as `Name: value`; may be given several times
    #[arg(long, value_name = "HEADER", conflicts_with = "server")]
    pub(crate) header: Vec<String>,
    /// A header whose value is in an environment variable, as `Name=VARIABLE`: for tokens,
    /// which others could read on the command line
    #[arg(long, value_name = "HEADER", conflicts_with = "server")]
    pub(crate) header_env: Vec<String>,
    /// Speak to a server on another machine without encryption
    #[arg(long, conflicts_with = "server")]
    pub(crate) insecure_http: bool,
    /// The server: a program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) server: Vec<String>,
}
