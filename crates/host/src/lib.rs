//! The user's machine, as far as a program lets the guard use it.
//!
//! This crate decides nothing. The runtime asks it for the clock, for documents that outlast a
//! process, for the off switch, and for the processes above this one. A program passes
//! [`HostAccess`] to allow each of them; [`HostAccess::default`] allows nothing.

mod access;
mod agent_names;
mod ancestry;
mod approvals;
pub mod clock;
pub mod control_files;
pub mod directory_stamp;
mod document_lines;
pub mod environment;
pub mod off_switch;
pub mod person;
mod proc_files;
mod regular_file;
mod state_home;
mod trust;
pub mod worker;

pub use access::HostAccess;
pub use ancestry::is_started_by_agent_tool;
pub use approvals::{AgentApproval, AgentApprovals};
pub use clock::now;
pub use environment::{HomeError, LayerFiles, state_home};
pub use off_switch::{OffError, OffPeriod, OffSwitch};
pub use person::{NotAPerson, check_person};
pub use regular_file::{ensure_regular, read_regular};
pub use state_home::{DocumentChange, FileStateHome, MemoryStateHome, StateDocument, StateHome};
pub use trust::{TrustGrant, TrustStore};
