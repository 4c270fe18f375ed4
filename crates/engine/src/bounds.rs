//! The size limits of the state of a session, collected for other crates.

pub use crate::guards::completion::REASON_GUARD_BROKEN;
pub use crate::guards::completion::verification::COMMANDS_MAX;
pub use crate::guards::custom::{CARRY_BYTES_MAX, CUSTOM_POLICIES_MAX, POLICY_STATE_BYTES_MAX};
pub use crate::id::ID_BYTES_MAX;
pub use crate::state::{STATE_BYTES_MAX, STATE_FORMAT};
