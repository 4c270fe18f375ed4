//! What can be said to `jackline identity`.

use clap::{Args, Subcommand};

use super::{FOR_PEOPLE, Word};

#[derive(Subcommand)]
pub(crate) enum IdentityCommand {
    /// Show what the agent of a session is made of, and whether it is approved
    Show(IdentityShowArgs),
    /// Approve the agent of a session: from then on, only agents that are approved may work under
    /// its definition
    #[command(after_help = FOR_PEOPLE)]
    Approve(IdentityApproveArgs),
    /// List the agents that are approved
    List(IdentityListArgs),
    /// Approve an agent no longer
    #[command(after_help = FOR_PEOPLE)]
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
    #[command(flatten)]
    pub(crate) word: Word,
}

#[derive(Args)]
pub(crate) struct IdentityListArgs {
    /// Print JSON, one object an approval
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct IdentityRevokeArgs {
    /// The checksum, or how it begins: at least 8 letters
    pub(crate) checksum: String,
}
