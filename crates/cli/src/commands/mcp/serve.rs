//! `jackline mcp serve`: serves guarded tools for one workspace.

use std::io::{self, BufReader};

use jackline_mcp::McpSessionOpening;
use jackline_mcp::serve::{OutputStore, ServeSetup, serve};
use jackline_runtime::Runtime;
use jackline_workspace::{Workspace, WorkspaceLimits};

use crate::args::ServeArgs;
use crate::commands::check_definition_file;
use crate::exit::ExitKind;
use crate::terminal::{
    current_directory, fail, machine_definitions, open_store, print_warning, sanitize,
};

/// The maximum length of a shown warning.
const WARNING_MAX: usize = 2000;

pub(super) fn run(args: &ServeArgs) -> ExitKind {
    let served = match open_server(args) {
        Ok(served) => served,
        Err(exit) => return exit,
    };
    let input = BufReader::with_capacity(64 << 10, io::stdin());
    let print_warning = |text: &str| print_warning(sanitize(text, WARNING_MAX));
    match serve(input, io::stdout().lock(), served, print_warning) {
        Ok(()) => ExitKind::Success,
        Err(error) => fail(ExitKind::Broken, format!("can't start a thread: {error}")),
    }
}

fn open_server(args: &ServeArgs) -> Result<ServeSetup, ExitKind> {
    let (session, parent) = super::session_ids(args.session.as_ref(), args.parent.as_ref())?;
    let root = args.workspace.clone().unwrap_or_else(current_directory);
    let usage = |error: &dyn std::fmt::Display| {
        fail(ExitKind::Usage, format!("can't work in `{}`: {error}", root.display()))
    };
    let root = root.canonicalize().map_err(|error| usage(&error))?;
    let Some(path) = root.to_str().map(ToOwned::to_owned) else {
        return Err(usage(&"its path is not UTF-8"));
    };
    check_definition_file(args.definition.as_deref())
        .map_err(|text| fail(ExitKind::Usage, text))?;
    let store = open_store()?;
    let definitions = machine_definitions(args.definition.clone(), &store);
    let mut limits = WorkspaceLimits::from_definition(super::io_limits(&definitions, &root));
    let shelf =
        OutputStore::new(store.directory(&session).join("spill"), limits.output_bytes_max / 2);
    limits.shell.artifact_sink = shelf.artifact_sink();
    let workspace = Workspace::open(&root, limits).map_err(|error| usage(&error))?;
    let mut runtime = Runtime::new(store, definitions, root.clone()).with_held_sessions();
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    let opening = McpSessionOpening { session, parent, workspace: path };
    Ok(ServeSetup { runtime, opening, workspace, output_store: shelf })
}
