//! `jackline mcp serve`: the tools of one workspace.

use std::io::{self, BufReader};

use jackline_mcp::Opening;
use jackline_mcp::serve::{Served, Shelf, serve};
use jackline_runtime::Runtime;
use jackline_workspace::{Limits, Workspace};

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::terminal::{definitions, fail, here, plain, store, warn};

/// How much of a warning is shown: one line, however long the files are.
const WARNING_MAX: usize = 2000;

pub(super) fn run(args: &ServeArgs) -> Exit {
    let served = match start(args) {
        Ok(served) => served,
        Err(exit) => return exit,
    };
    let input = BufReader::with_capacity(64 << 10, io::stdin());
    let aside = |text: &str| warn(plain(text, WARNING_MAX));
    match serve(input, io::stdout().lock(), served, aside) {
        Ok(()) => Exit::Fine,
        Err(error) => fail(Exit::Broken, format!("no thread can be started: {error}")),
    }
}

fn start(args: &ServeArgs) -> Result<Served, Exit> {
    let (session, parent) = super::sessions(args.session.as_ref(), args.parent.as_ref())?;
    let root = args.workspace.clone().unwrap_or_else(here);
    let usage = |error: &dyn std::fmt::Display| {
        fail(Exit::Usage, format!("can't work in `{}`: {error}", root.display()))
    };
    let root = root.canonicalize().map_err(|error| usage(&error))?;
    let Some(named) = root.to_str().map(ToOwned::to_owned) else {
        return Err(usage(&"its path is not UTF-8"));
    };
    if let Some(file) = args.definition.as_ref().filter(|file| !file.is_file()) {
        let text = format!("no definition `{}`; check the path after -d", file.display());
        return Err(fail(Exit::Usage, text));
    }
    let store = store()?;
    let definitions = definitions(args.definition.clone(), &store);
    let mut limits = Limits::of(super::io(&definitions, &root));
    let shelf = Shelf::new(store.directory(&session).join("spill"), limits.output_bytes_max / 2);
    limits.shell.keep = shelf.keep();
    let workspace = Workspace::open(&root, limits).map_err(|error| usage(&error))?;
    let mut runtime = Runtime::new(store, definitions, root.clone());
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    let opening = Opening { session, parent, workspace: named };
    Ok(Served { runtime, opening, workspace, shelf })
}
