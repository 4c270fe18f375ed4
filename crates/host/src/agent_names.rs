//! The names by which agent clients are recognised on a machine.
//!
//! These are tables and nothing else: no code of this crate behaves differently for one client.
//! A client that is added gets its entries here, so that its processes are known as an agent's and
//! its settings are protected.

/// How the programs of agents are called.
pub(crate) const NAMES: [&str; 8] =
    ["claude", "codex", "gemini", "opencode", "copilot", "qwen", "cursor-agent", "goose"];

/// Where their scripts lie.
pub(crate) const PACKAGES: [&str; 6] = [
    "/@anthropic-ai/claude-code",
    "/@openai/codex",
    "/@google/gemini-cli",
    "/@qwen-code/qwen-code",
    "/@github/copilot",
    "/opencode-ai/",
];

/// What agents tell the programs that they run. `CODEX_HOME` and its like are a
/// person's settings, and not among them.
pub(crate) const MARKERS: [&str; 15] = [
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

/// Variables in which clients name their session to the programs that they start.
pub(crate) const SESSION_VARIABLES: [&str; 1] = ["CLAUDE_CODE_SESSION_ID"];

/// Where the settings of a client lie by which it starts its hooks everywhere.
pub(crate) struct SettingsPlace {
    /// The variable that names their directory.
    pub(crate) variable: &'static str,
    /// Their directory in the home of the person, where the variable is not set.
    pub(crate) below_home: &'static str,
    /// Their names there.
    pub(crate) files: &'static [&'static str],
}

/// The settings of all clients.
pub(crate) const SETTINGS: [SettingsPlace; 1] = [SettingsPlace {
    variable: "CLAUDE_CONFIG_DIR",
    below_home: ".claude",
    files: &["settings.json", "settings.local.json"],
}];
