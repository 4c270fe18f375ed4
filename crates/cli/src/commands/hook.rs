//! `jackline hook CLIENT`: answers one hook event in the client's dialect.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use jackline_clients::hook_server::{HookPort, HookRuntime, HookServer, ProcessPort};

use crate::args::HookArgs;

pub(crate) fn run(args: &HookArgs) -> ExitCode {
    // The model must not read a backtrace; the answer describes the failure.
    std::panic::set_hook(Box::new(|_| {}));
    let server = HookServer {
        dialect: args.client.dialect,
        runtime: HookRuntime::OfMachine { definition: args.definition.clone() },
        sealed: args.sealed,
        role: args.role.clone(),
        deadline: Duration::from_secs(args.deadline_seconds),
    };
    let port: Arc<dyn HookPort> = Arc::new(ProcessPort);
    server.serve(&port).into()
}
