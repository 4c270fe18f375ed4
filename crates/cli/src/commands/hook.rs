//! `jackline hook CLIENT`: picks the client's dialect and has the hook server answer.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use jackline_clients::hook_server::{HookPort, HookRuntime, HookServer, ProcessPort};

use crate::args::HookArgs;

pub(crate) fn run(args: &HookArgs) -> ExitCode {
    // A backtrace is nothing that a model should read; the answer says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    let server = HookServer {
        dialect: args.client.dialect,
        runtime: HookRuntime::OfMachine { definition: args.definition.clone() },
        sealed: args.sealed,
        deadline: Duration::from_secs(args.deadline_seconds),
    };
    let port: Arc<dyn HookPort> = Arc::new(ProcessPort);
    server.serve(&port).into()
}
