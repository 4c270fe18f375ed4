//! Claude Code: its hooks, its settings, its transcripts.
//!
//! The client starts one process an event and takes almost every failure of
//! it for consent. So the hook server always has an answer, before the client's
//! deadline.

mod answer;
mod dialect;
mod hooks;
mod installation;
mod lines;
mod live;
mod output;
pub(crate) mod places;
mod reload;
mod results;
pub mod settings;
pub mod transcript;
mod translate;
pub mod usage;
mod worker;
mod writes;

use jackline_engine::ClientId;

use crate::list::Client;

pub use dialect::ClaudeDialect;
pub use hooks::ClaudeHook;

/// The word of the client.
const NAME: &str = "claude";

/// Claude Code.
pub static CLIENT: Client = Client {
    id: ClientId::from_static(NAME),
    title: "Claude Code",
    dialect: &ClaudeDialect,
    installation: &installation::ClaudeInstallation,
    live: &live::ClaudeLive,
    worker: Some(&worker::ClaudeWorker),
    resume: Some("claude --resume"),
    transcripts: Some(&transcript::ClaudeTranscripts),
};
