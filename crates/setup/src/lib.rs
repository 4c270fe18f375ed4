//! Installs the guard in agent clients and proves that it works there.
//!
//! The installer plans every change, shows the plan, and then replaces files. The doctor and the
//! canary run the real client in a scratch home with a scripted model.

pub mod doctor;
pub mod install;
pub mod live;
