//! The bounds of what a session keeps.

pub use crate::guards::completion::UNANSWERED;
pub use crate::guards::completion::verification::COMMANDS_MAX;
pub use crate::guards::custom::{CARRY_BYTES_MAX, CUSTOM_POLICIES_MAX, POLICY_BYTES_MAX};
pub use crate::id::ID_BYTES_MAX;
pub use crate::state::{STATE_BYTES_MAX, STATE_FORMAT};
