//! Warns about a closed list of tools that lacks the tools of agents.
//!
//! Such a list is legal. But a person who declares one tool rarely wants to deny all others.

use jackline_engine::definition::UnknownTools;

use crate::lower::LoweredDefinition;
use crate::reader::NodeReader;
use crate::source::Origin;

/// The tools that an agent can hardly work without.
const TOOLS_OF_AGENTS: [&str; 8] =
    ["Read", "Edit", "Write", "Bash", "Glob", "Grep", "Agent", "Task"];

/// Warns if a file denies undeclared tools and does not declare the tools of agents.
pub(crate) fn warn_about_denied(lowered: &LoweredDefinition, reader: &mut NodeReader<'_>) {
    let definition = &lowered.definition;
    let Some(at) = lowered.unknown_tools_position else { return };
    let is_in_file = matches!(reader.origin(at), Origin::File(_));
    if !is_in_file || definition.unknown_tools != UnknownTools::Deny {
        return;
    }
    let denied = TOOLS_OF_AGENTS.iter().filter(|name| !definition.accepts_tool(name, false));
    let denied: Vec<String> = denied.map(|name| format!("`{name}`")).collect();
    if !denied.is_empty() {
        reader.report_with_hint(
            at,
            format!(
                "`unknown_tools: deny` denies every tool that `tools` does not declare, also those \
                 of the agent's client: {}",
                denied.join(", ")
            ),
            "declare the tools that the agent needs, or use `unknown_tools: client`",
        );
    }
}
