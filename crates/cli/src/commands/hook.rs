//! `jackline hook CLIENT`: picks the client's dialect and has the hook server answer.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use jackline_clients::hook_server::{HookPort, HookServer, ProcessPort};
use jackline_clients::surroundings::Surroundings;
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Runtime, boot_number, state_home};

use crate::args::HookArgs;

pub(crate) fn run(args: &HookArgs) -> ExitCode {
    // A backtrace is nothing that a model should read; the answer says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    let server = HookServer {
        dialect: args.client.dialect,
        start: &|at| start(args, at),
        sealed: args.sealed,
        deadline: Duration::from_secs(args.deadline_seconds),
    };
    let port: Arc<dyn HookPort> = Arc::new(ProcessPort);
    server.serve(&port).into()
}

fn start(args: &HookArgs, at: &Surroundings) -> Result<Runtime, String> {
    let home = state_home().map_err(|error| error.to_string())?;
    let store = FileStore::new(home, boot_number());
    let definitions = Definitions::new(args.definition.clone(), Some(&store));
    let workspace = at.workspace().clone();
    let mut runtime = Runtime::new(Box::new(store), definitions, workspace).with_spool();
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    Ok(runtime)
}
