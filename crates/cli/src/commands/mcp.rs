//! `jackline mcp`: the guard where tools are spoken of in MCP.

mod serve;
mod wrap;

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
