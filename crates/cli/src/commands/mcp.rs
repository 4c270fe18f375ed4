//! `jackline mcp`: the guard where tools are spoken of in MCP.

mod serve;
mod wrap;

use std::path::Path;

use jackline_engine::SessionId;
use jackline_engine::definition::Io;
use jackline_host::clock::now;
use jackline_host::environment::parent_session;
use jackline_runtime::Definitions;

use crate::args::McpCommand;
use crate::exit::Exit;
use crate::terminal::fail;

pub(crate) fn run(command: &McpCommand) -> Exit {
    // A backtrace is nothing that a model should read; the answer says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    match command {
        McpCommand::Serve(args) => serve::run(args),
        McpCommand::Wrap(args) => wrap::run(args),
    }
}

/// What tools may answer in a workspace, as its definition says now. Where none
/// loads the guard refuses every call, and nothing hangs on it.
fn io(definitions: &Definitions, workspace: &Path) -> Io {
    definitions.resolve(workspace).map(|resolved| resolved.definition.io).unwrap_or_default()
}

/// The session of the calls, and that of the client, where it is known.
fn sessions(
    session: Option<&String>,
    parent: Option<&String>,
) -> Result<(SessionId, Option<SessionId>), Exit> {
    let parse = |flag: &str, id: String| {
        SessionId::parse(id).map_err(|error| fail(Exit::Usage, format!("{flag} {error}")))
    };
    let new = || format!("mcp-{}-{}", now().wall.as_ms(), std::process::id());
    let session = parse("--session", session.cloned().unwrap_or_else(new))?;
    let parent = parent.cloned().or_else(parent_session);
    let parent = parent.map(|id| parse("--parent", id)).transpose()?;
    Ok((session, parent))
}
