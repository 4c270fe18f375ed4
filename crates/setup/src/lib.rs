//! Puts the guard into agent clients and proves that it works there.
//!
//! Installing plans every change, shows it, and then replaces files. The doctor and the canary run
//! the real client in a scratch home against a scripted model.

pub mod doctor;
pub mod install;
pub mod live;
