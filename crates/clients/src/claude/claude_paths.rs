//! Where Claude Code stores the settings and data of a person.

use std::path::PathBuf;

use jackline_host::environment::{directory_variable, home};

/// The variable that selects another directory for these files.
pub(crate) const HOME_VARIABLE: &str = "CLAUDE_CONFIG_DIR";

/// The directory of the settings and transcripts.
pub(crate) fn claude_home() -> Option<PathBuf> {
    directory_variable(HOME_VARIABLE).or_else(|| home().map(|home| home.join(".claude")))
}

/// The file in which the client stores data about this person, such as their MCP servers and those
/// of their projects.
pub(crate) fn claude_file() -> Option<PathBuf> {
    directory_variable(HOME_VARIABLE).or_else(home).map(|directory| directory.join(".claude.json"))
}
