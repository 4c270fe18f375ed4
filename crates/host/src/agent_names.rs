//! The names by which agent clients are recognised on a machine.
//!
//! This module holds only tables. No code of this crate behaves differently for one client. A new
//! client gets its entries here, so that Jackline recognises its processes as an agent and protects
//! its settings.

/// File names of agent programs.
pub(crate) const AGENT_PROGRAMS: [&str; 8] =
    ["claude", "codex", "gemini", "opencode", "copilot", "qwen", "cursor-agent", "goose"];

/// Parts of the paths in which the scripts of agents are installed.
pub(crate) const AGENT_PACKAGES: [&str; 6] = [
    "/@anthropic-ai/claude-code",
    "/@openai/codex",
    "/@google/gemini-cli",
    "/@qwen-code/qwen-code",
    "/@github/copilot",
    "/opencode-ai/",
];

/// Environment variables that agents set for the programs they run. `CODEX_HOME` and similar
/// variables are settings of a person, so they are not in this list.
pub(crate) const AGENT_VARIABLES: [&str; 15] = [
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "CODEX_CI",
    "GEMINI_CLI",
    "QWEN_CODE",
    "OPENCODE",
    "COPILOT_CLI",
    "COPILOT_AGENT",
    "CURSOR_AGENT",
    "GOOSE_TERMINAL",
    "CLINE_ACTIVE",
    "AUGMENT_AGENT",
    "AI_AGENT",
];

/// Variables in which clients pass their session id to the programs that they start.
pub(crate) const SESSION_VARIABLES: [&str; 1] = ["CLAUDE_CODE_SESSION_ID"];

/// The location of the settings in which a client lists hooks for all projects.
pub(crate) struct ClientSettingsLocation {
    /// The variable that names the settings directory.
    pub(crate) variable: &'static str,
    /// The settings directory below the home directory, used when the variable is not set.
    pub(crate) below_home: &'static str,
    /// The file names in that directory.
    pub(crate) files: &'static [&'static str],
}

/// The settings of all clients.
pub(crate) const CLIENT_SETTINGS: [ClientSettingsLocation; 1] = [ClientSettingsLocation {
    variable: "CLAUDE_CONFIG_DIR",
    below_home: ".claude",
    files: &["settings.json", "settings.local.json"],
}];
