//! `jackline mcp`: the guard for MCP tools.

mod serve;
mod wrap;

use std::path::Path;

use jackline_engine::SessionId;
use jackline_engine::definition::IoLimits;
use jackline_host::clock::now;
use jackline_host::environment::parent_session;
use jackline_runtime::Definitions;

use crate::args::McpCommand;
use crate::exit::ExitKind;
use crate::terminal::fail;

pub(crate) fn run(command: &McpCommand) -> ExitKind {
    // The model must not read a backtrace; the answer describes the failure.
    std::panic::set_hook(Box::new(|_| {}));
    match command {
        McpCommand::Serve(args) => serve::run(args),
        McpCommand::Wrap(args) => wrap::run(args),
    }
}

/// The output limits for tools in a workspace, from its current definition. If no definition
/// loads, the guard refuses every call, so the defaults do not matter.
fn io_limits(definitions: &Definitions, workspace: &Path) -> IoLimits {
    definitions.resolve(workspace).map(|resolved| resolved.definition.io).unwrap_or_default()
}

/// The session for the calls, and the session of the client if it is known.
fn session_ids(
    session: Option<&String>,
    parent: Option<&String>,
) -> Result<(SessionId, Option<SessionId>), ExitKind> {
    let parse = |flag: &str, id: String| {
        SessionId::parse(id).map_err(|error| fail(ExitKind::Usage, format!("{flag} {error}")))
    };
    let new = || format!("mcp-{}-{}", now().wall.as_ms(), std::process::id());
    let session = parse("--session", session.cloned().unwrap_or_else(new))?;
    let parent = parent.cloned().or_else(parent_session);
    let parent = parent.map(|id| parse("--parent", id)).transpose()?;
    Ok((session, parent))
}
