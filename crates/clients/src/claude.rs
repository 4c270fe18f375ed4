//! Claude Code: its hooks, its settings, its transcripts.
//!
//! The client starts one process for each event. It treats almost every failure of that process as
//! consent, so the hook server always prints an answer before the client's deadline.

mod answer;
pub(crate) mod claude_paths;
mod dialect;
mod file_tools;
mod hooks;
mod installation;
mod live_run;
mod output_page;
mod raw_value;
pub mod settings;
mod settings_change;
mod surface;
mod tool_results;
pub mod transcript;
mod translate;
pub mod usage;
mod worker;

use jackline_engine::ClientId;

use crate::client_list::Client;

pub use dialect::ClaudeDialect;
pub use hooks::ClaudeHook;

/// The id of the client on the command line, in definitions and in journals.
const CLIENT_ID: &str = "claude";

/// Claude Code.
pub static CLIENT: Client = Client {
    id: ClientId::from_static(CLIENT_ID),
    title: "Claude Code",
    dialect: &ClaudeDialect,
    installation: &installation::ClaudeInstallation,
    live: &live_run::ClaudeLive,
    worker: Some(&worker::ClaudeWorker),
    resume_command: Some("claude --resume"),
    compact_command: Some("/compact"),
    transcripts: Some(&transcript::ClaudeTranscriptStore),
};
