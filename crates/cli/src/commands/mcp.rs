//! `jackline mcp`: the guard where tools are spoken of in MCP.

mod serve;
mod wrap;

use std::path::Path;

use jackline_engine::definition::Io;
use jackline_runtime::Definitions;

use crate::args::McpCommand;
use crate::exit::Exit;

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
