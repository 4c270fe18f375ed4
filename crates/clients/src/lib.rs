//! Agent clients: one module a client, each with its dialect of hooks.
//!
//! An adapter translates and never decides: a payload becomes an event, a
//! verdict becomes an answer in the client's own words.

pub mod claude;
pub mod doctor;
pub mod install;
pub mod live;
mod program;
