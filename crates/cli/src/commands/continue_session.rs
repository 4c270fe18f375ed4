//! How a person continues a session that has ended: each client has its own command.

use jackline_clients::find_client;
use jackline_engine::SessionId;
use jackline_mcp::CLIENT_NAME as MCP_CLIENT;
use jackline_supervisor::RUN_SESSION_PREFIX;

use crate::terminal::sanitize;

/// The way to continue a session, for the end of a sentence such as "continue it with …".
pub(super) fn how_to_continue(client: Option<&str>, session: &SessionId) -> String {
    let name = sanitize(session.as_str(), 80);
    if session.as_str().starts_with(RUN_SESSION_PREFIX) {
        return format!("`jackline reset {name}`, then `jackline run --resume {name}`");
    }
    if client == Some(MCP_CLIENT) {
        return format!(
            "`jackline mcp wrap --session {name}` or `jackline mcp serve --session {name}`"
        );
    }
    match client.and_then(find_client).and_then(|client| client.resume_command) {
        Some(command) => format!("`{command} {name}`"),
        None => "the program that started it".to_owned(),
    }
}
