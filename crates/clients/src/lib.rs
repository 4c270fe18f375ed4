//! Agent clients: one folder a client, with its dialect of hooks and its installation.
//!
//! An adapter translates and never decides: a payload becomes events, a verdict becomes an answer
//! in the client's own words. What all clients have in common stands beside the folders; the
//! clients themselves stand in [`CLIENTS`].

pub mod claude;
pub mod dialect;
pub mod file_write;
pub mod hook_line;
pub mod hook_server;
pub mod installation;
pub mod installed;
mod list;
pub mod live_client;
pub mod payload;
pub mod program;
pub mod settings_file;
pub mod settings_text;
pub mod surroundings;
#[cfg(test)]
mod test_program;
pub mod transcripts;
pub mod typed_code;
pub mod version;

pub use list::{CLIENTS, Client, find_client};
