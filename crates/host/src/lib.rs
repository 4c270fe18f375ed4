//! The user's machine, as far as a program lets the guard use it.
//!
//! Nothing here decides. The runtime asks for the clock, for documents that outlast a process, for
//! the off switch and for the processes above this one. A program passes [`HostAccess`] to say
//! which of them the library may use; [`HostAccess::default`] allows nothing.

mod access;
mod agent_names;
mod ancestry;
pub mod clock;
mod document_lines;
pub mod environment;
pub mod markers;
pub mod off;
mod pins;
mod regular;
pub mod stamp;
mod state_home;
mod trust;
pub mod worker;

pub use access::HostAccess;
pub use ancestry::{Agent, agent_above, forged_by_agent};
pub use clock::now;
pub use environment::{HomeError, LayerFiles, state_home};
pub use off::{Off, OffError, Switch};
pub use pins::{Pin, Pins};
pub use regular::read_regular;
pub use state_home::{Document, DocumentChange, FileStateHome, MemoryStateHome, StateHome};
pub use trust::{Grant, Trust};
