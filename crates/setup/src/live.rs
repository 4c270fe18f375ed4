//! The real client, driven by a scripted model: the last metre, seen.
//!
//! What a hook prints proves nothing. Whether the tool ran is read from the files
//! of a scratch workspace, and what the model was shown from its requests. The
//! client gets a home of its own, a key that is none, and the loopback address.

mod clock;
mod process;
mod run;
mod scratch;

pub use run::{Run, SUBAGENT, Seen};
pub use scratch::Scratch;

pub(crate) use clock::micros;

use std::io;
use std::path::PathBuf;

use jackline_clients::installed::InstalledError;

/// Why the client could not be driven.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The client can't be started.
    #[error(transparent)]
    Client(#[from] InstalledError),
    /// The scratch directories can't be used.
    #[error("can't use `{}`: {source}", path.display())]
    Scratch {
        /// What could not be used.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The scripted model does not start.
    #[error("can't listen on the loopback address: {0}")]
    Model(io::Error),
    /// A program does not start.
    #[error("can't start `{}`: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
