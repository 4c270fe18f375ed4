//! Runs the real client with a scripted model.
//!
//! The output of a hook proves nothing. So we check the files in a scratch workspace to see which
//! tools ran, and the requests of the client to see what the model got. The client gets its own
//! home, a fake key and a loopback address.

mod clock;
mod process;
mod run;
mod scratch;

pub use run::{LiveOutcome, LiveRun, SUBAGENT_PROMPT};
pub use scratch::ScratchHome;

pub(crate) use clock::micros;

use std::io;
use std::path::PathBuf;

use jackline_clients::installed_client::FindClientError;

/// Why a client could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The client can't be started.
    #[error(transparent)]
    Client(#[from] FindClientError),
    /// The scratch directories can't be used.
    #[error("can't use `{}`: {source}", path.display())]
    Scratch {
        /// The path that could not be used.
        path: PathBuf,
        /// The error of the system.
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
        /// The error of the system.
        source: io::Error,
    },
}
