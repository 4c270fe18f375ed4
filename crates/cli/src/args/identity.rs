//! The arguments of `jackline identity`.

use clap::{Args, Subcommand};

use super::{PERSON_ONLY_HELP, PersonArgs};

#[derive(Subcommand)]
pub(crate) enum IdentityCommand {
    /// Show the parts of a session's agent, and whether it is approved
    Show(IdentityShowArgs),
    /// Approve the agent of a session. From then on, only approved agents may work under its
    /// definition
    #[command(after_help = PERSON_ONLY_HELP)]
    Approve(IdentityApproveArgs),
    /// List the approved agents
    List(IdentityListArgs),
    /// Revoke the approval of an agent
    #[command(after_help = PERSON_ONLY_HELP)]
    Revoke(IdentityRevokeArgs),
}

#[derive(Args)]
pub(crate) struct IdentityShowArgs {
    /// An id, a unique prefix, a journal file or an export [default: the latest session of this
    /// workspace]
    pub(crate) session: Option<String>,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct IdentityApproveArgs {
    /// An id, a unique prefix, a journal file or an export [default: the latest session of this
    /// workspace]
    pub(crate) session: Option<String>,
    /// Do not ask, even if the client reported nothing about its agent
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) person: PersonArgs,
}

#[derive(Args)]
pub(crate) struct IdentityListArgs {
    /// Print JSON, one object per approval
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct IdentityRevokeArgs {
    /// The checksum of the agent, or its first characters (at least 8)
    pub(crate) checksum: String,
}
