//! What can be said to the commands that hand out evidence.

use std::path::PathBuf;

use clap::Args;

use super::SessionsArgs;

#[derive(Args)]
#[command(
    after_help = "One JSON file: what the session did, state by state, and its journal to the letter. `replay`, \
`verify`, `log`, `show` and `backtest` read it as they read a journal.\n\n\
Secrets were taken out before the journal was written; the file says in how many places. Exit codes: 0 \
fine; 1 the journal is not what was written; 2 usage or bad input; 3 the guard itself is broken."
)]
pub(crate) struct ExportArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    /// Write it to this file, which nobody else may read [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "The statement is one of in-toto (version 1) in a DSSE envelope. It names the journal by its sha256 \
and its head, the commit of the workspace, and says what was decided how often, how the session ended and whether \
its tests passed.\n\n\
A key is an ed25519 key in PEM (PKCS#8), as `openssl genpkey -algorithm ed25519` writes it. `--new-key` makes \
keys/attest.ed25519 and keys/attest.pub in the state home.\n\n\
Exit codes: 0 fine; 1 the journal is not what was written, or there is a key already; 2 usage or bad input; \
3 the guard itself is broken."
)]
pub(crate) struct AttestArgs {
    /// An id, a unique prefix, a journal file or an export [default: the latest session of this
    /// workspace]
    pub(crate) session: Option<String>,
    /// Make a key
    #[arg(long, conflicts_with_all = ["session", "out"])]
    pub(crate) new_key: bool,
    /// The private key [default: keys/attest.ed25519 in the state home]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Write it to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "With --attestation, what `jackline attest` wrote is checked: who signed it, and whether the journal \
still is and says what was attested. SESSION is then the journal or an export of it [default: the session that the \
attestation names].\n\n\
Exit codes: 0 all of it holds; 1 it does not; 2 usage, or a file that is none; 3 the guard itself is broken."
)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionsArgs,
    /// Check an attestation
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) attestation: Option<PathBuf>,
    /// The public key that has to have signed it [default: keys/attest.pub in the state home]
    #[arg(long, value_name = "FILE", requires = "attestation")]
    pub(crate) public_key: Option<PathBuf>,
    /// The commit that it has to be about, written out
    #[arg(long, value_name = "COMMIT", requires = "attestation")]
    pub(crate) commit: Option<String>,
    /// Its session has to have achieved its objective, with everything committed, and to be the latest of this
    /// workspace unless SESSION is named
    #[arg(long, requires = "attestation")]
    pub(crate) done: bool,
}
