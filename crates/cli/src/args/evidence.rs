//! The arguments of `jackline export`, `attest` and `verify`.

use std::path::PathBuf;

use clap::Args;

use super::SessionsArgs;

#[derive(Args)]
#[command(
    after_help = "Writes one JSON file with the actions of the session, state by state, and an exact copy of its journal. \
`replay`, `verify`, `log`, `show` and `backtest` read it like a journal.\n\n\
Secrets are removed before the journal is written; the file contains the number of places. Exit codes: 0 \
success; 1 the journal was changed after it was written; 2 wrong usage or invalid input; 3 the guard itself is broken."
)]
pub(crate) struct ExportArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    /// Write to this file, which only you can read [default: standard output, unless it is a
    /// terminal]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Writes an in-toto statement (version 1) in a DSSE envelope. It contains the sha256 and the head of the \
journal, the commit of the workspace, the number of decisions of each kind, how the session ended and whether its \
tests passed.\n\n\
The key is an ed25519 key in PEM format (PKCS#8), as written by `openssl genpkey -algorithm ed25519`. `--new-key` \
creates keys/attest.ed25519 and keys/attest.pub in the state home.\n\n\
Exit codes: 0 success; 1 the journal was changed after it was written, or a key already exists; 2 wrong usage or \
invalid input; 3 the guard itself is broken."
)]
pub(crate) struct AttestArgs {
    /// An id, a unique prefix, a journal file or an export [default: the latest session of this
    /// workspace]
    pub(crate) session: Option<String>,
    /// Create a key pair
    #[arg(long, conflicts_with_all = ["session", "out"])]
    pub(crate) new_key: bool,
    /// The private key [default: keys/attest.ed25519 in the state home]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "With --attestation, checks a file that `jackline attest` wrote: its signature, and whether the journal \
is unchanged and agrees with the statement. SESSION is then the journal or an export of it [default: the session that \
the attestation names].\n\n\
Exit codes: 0 everything is valid; 1 something is not valid; 2 wrong usage, or the file is not an attestation; 3 the \
guard itself is broken."
)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionsArgs,
    /// Check an attestation
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) attestation: Option<PathBuf>,
    /// The public key of the required signer [default: keys/attest.pub in the state home]
    #[arg(long, value_name = "FILE", requires = "attestation")]
    pub(crate) public_key: Option<PathBuf>,
    /// The required commit, as a full id
    #[arg(long, value_name = "COMMIT", requires = "attestation")]
    pub(crate) commit: Option<String>,
    /// Require that the session achieved its objective, that everything is committed, and that it
    /// is the latest
    /// session of this workspace (unless SESSION is given)
    #[arg(long, requires = "attestation")]
    pub(crate) done: bool,
}
