//! Agent clients: one folder a client, with its dialect of hooks and its installation.
//!
//! An adapter translates and never decides: a payload becomes events, a verdict becomes an answer
//! in the client's own words. What all clients have in common stands beside the folders; the
//! clients themselves stand in [`CLIENTS`].

pub mod claude;
pub mod dialect;
pub mod doctor;
pub mod file_write;
pub mod hook_line;
pub mod hook_server;
pub mod install;
pub mod installation;
mod list;
pub mod live;
pub mod payload;
mod program;
pub mod surroundings;
pub mod transcripts;
pub mod typed_code;
pub mod version;

pub use list::{CLIENTS, Client, find_client};
