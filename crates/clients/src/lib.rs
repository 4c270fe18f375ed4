//! Agent clients. Each client has one folder with its hook dialect and its installation.
//!
//! An adapter translates and never decides: it turns a payload into events, and a verdict into an
//! answer in the client's format. The code that all clients share is in the other modules.
//! [`CLIENTS`] lists the clients.

pub mod claude;
mod client_list;
pub mod dialect;
pub mod file_write;
pub mod hook_environment;
pub mod hook_line;
pub mod hook_server;
pub mod installation;
pub mod installed_client;
pub mod live_client;
pub mod payload;
pub mod program;
pub mod settings_file;
pub mod settings_text;
#[cfg(test)]
mod test_program;
pub mod transcripts;
pub mod typed_code;
pub mod version;

pub use client_list::{CLIENTS, Client, find_client};
