//! `jackline init`: installs the guard in the settings of agent clients, and removes it.

mod canary;
mod leftovers;
mod next_steps;
mod plan_display;

use std::io::{self, IsTerminal as _};
use std::path::Path;

use jackline_clients::installation::InstallScope;
use jackline_clients::{CLIENTS, Client, find_client};
use jackline_host::state_home;
use jackline_mcp::{AddressError, Encryption, ServerAddress};
use jackline_runtime::{vouch_for, vouch_for_removal};
use jackline_setup::install::{
    InstallError, InstallPlan, InstallRequest, RemoteSelection, WrittenFile, apply_plan, plan,
    plan_removal, plan_unwrapping, plan_wrapping,
};

use self::canary::CanaryOutcome;
use self::leftovers::RemainingFiles;
use self::next_steps::{offer_needed_trust, print_next_steps};
use self::plan_display::{display_path, show, show_written, summary};
use super::person::require_person;
use crate::args::InitArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    confirm, current_directory, fail, print_json_line, print_line, print_warning, sanitize,
};

/// The maximum length of a shown diff line.
const LINE_MAX: usize = 2000;

/// How many times a plan is made, because another process can change the files in between.
const TRIES_MAX: usize = 5;

/// The outcome of the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InitOutcome {
    NothingToDo,
    DryRun,
    Installed,
    Uninstalled,
}

impl InitOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::NothingToDo => "nothing_to_do",
            Self::DryRun => "dry_run",
            Self::Installed => "installed",
            Self::Uninstalled => "uninstalled",
        }
    }
}

pub(crate) fn run(args: &InitArgs) -> ExitKind {
    // Only a person may remove the guard.
    if args.uninstall
        && !args.dry_run
        && let Err(exit) = require_person("init --uninstall")
    {
        return exit;
    }
    let wish = match install_request(args) {
        Ok(wish) => wish,
        Err(exit) => return exit,
    };
    for _ in 0..TRIES_MAX {
        let planned = match (args.mcp, args.uninstall) {
            (false, false) => plan(&wish),
            (false, true) => plan_removal(&wish),
            (true, false) => plan_wrapping(&wish),
            (true, true) => plan_unwrapping(&wish),
        };
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => return install_failure(error),
        };
        match show_and_apply(&plan, &wish, args) {
            // Another process changed a file, so the plan is made again.
            Err(InstallError::Changed { .. }) => {}
            Err(error) => return install_failure(error),
            Ok(exit) => return exit,
        }
    }
    fail(ExitKind::No, "another program keeps changing these files; run the command again later")
}

fn install_request(args: &InitArgs) -> Result<InstallRequest, ExitKind> {
    let client = |name: &String| {
        find_client(name).ok_or_else(|| {
            let known: Vec<String> =
                CLIENTS.iter().map(|client| format!("`{}`", client.id)).collect();
            let text =
                format!("there is no client `{name}`; supported clients: {}", known.join(", "));
            fail(ExitKind::Usage, sanitize(&text, LINE_MAX))
        })
    };
    let clients =
        args.clients.iter().map(client).collect::<Result<Vec<&'static Client>, ExitKind>>()?;
    let scope = match (args.shared, args.user) {
        (true, _) => InstallScope::Shared,
        (_, true) => InstallScope::User,
        _ => InstallScope::Local,
    };
    let jackline = std::env::current_exe();
    Ok(InstallRequest {
        clients,
        scope,
        role: args.role.clone(),
        directory: current_directory(),
        guard_program: jackline.map_err(|error| {
            fail(ExitKind::Broken, format!("can't find the path of this program: {error}"))
        })?,
        client_program: args.client_program.clone(),
        state_home: state_home().map_err(|error| fail(ExitKind::Usage, error))?,
        remote_servers: match args.remote.as_slice() {
            [] => RemoteSelection::None,
            names if names.iter().any(String::is_empty) => RemoteSelection::All,
            names => RemoteSelection::Named(names.to_vec()),
        },
        can_connect: check_server,
    })
}

/// Checks that `jackline mcp wrap` accepts a server with this URL and these headers.
fn check_server(url: Option<&str>, headers: &[(&str, &str)]) -> Result<(), String> {
    // Headers can be checked with any URL.
    let url = url.unwrap_or("https://localhost");
    let text = |error: AddressError| error.to_string();
    let mut address = ServerAddress::parse(url, Encryption::Required).map_err(text)?;
    for (name, value) in headers {
        // The client replaces variables in a value; the rest of the value is checked.
        address = address.with_header(name, value).map_err(text)?;
    }
    Ok(())
}

fn install_failure(error: InstallError) -> ExitKind {
    let exit = match &error {
        InstallError::NoClient
        | InstallError::NoServers { .. }
        | InstallError::PartlyWritten { .. } => ExitKind::No,
        InstallError::Backup { .. } => ExitKind::Broken,
        _ => ExitKind::Usage,
    };
    fail(exit, error)
}

/// Shows a plan, asks for confirmation, and carries it out.
fn show_and_apply(
    plan: &InstallPlan,
    wish: &InstallRequest,
    args: &InitArgs,
) -> Result<ExitKind, InstallError> {
    let is_complete = plan.disabled_reasons.is_empty() && plan.still_wrapped.is_empty();
    let exit = if is_complete { ExitKind::Success } else { ExitKind::No };
    let mut remaining = RemainingFiles::of(plan, wish, args);
    let removes_rest = args.purge && !remaining.is_empty();
    if !args.json {
        show(plan, args.diff);
        if removes_rest {
            print_line("also removes:");
            remaining.list();
            print_line("");
        }
    }
    if plan.changes.is_empty() && !removes_rest {
        finish(plan, wish, args, &InitEnd::without_changes(InitOutcome::NothingToDo), remaining);
        return Ok(exit);
    }
    if args.dry_run {
        finish(plan, wish, args, &InitEnd::without_changes(InitOutcome::DryRun), remaining);
        return Ok(exit);
    }
    if !args.yes {
        if args.json || !io::stdin().is_terminal() {
            let text = "no terminal to confirm in; preview with --dry-run, then pass --yes";
            return Ok(fail(ExitKind::Usage, text));
        }
        let question = if args.uninstall { "Remove this?" } else { "Write this?" };
        if !confirm(question) {
            print_line("nothing was changed");
            return Ok(ExitKind::No);
        }
    }
    vouch_for_plan(plan, &wish.state_home);
    let written = apply_plan(plan, &wish.state_home)?;
    if !args.json {
        show_written(&written);
    }
    if removes_rest {
        remaining.remove(wish);
    }
    let try_client = |found| CanaryOutcome::run(found, plan, wish, args);
    let canaries = plan
        .clients
        .iter()
        .map(try_client)
        .collect::<Result<Vec<CanaryOutcome>, InstallError>>()?;
    let is_alarm = canaries.iter().any(CanaryOutcome::is_alarm) || remaining.has_failures();
    let outcome = if args.uninstall { InitOutcome::Uninstalled } else { InitOutcome::Installed };
    finish(plan, wish, args, &InitEnd { outcome, written, canaries }, remaining);
    Ok(if is_alarm { ExitKind::No } else { exit })
}

/// How the command ended.
struct InitEnd {
    outcome: InitOutcome,
    written: Vec<WrittenFile>,
    canaries: Vec<CanaryOutcome>,
}

impl InitEnd {
    fn without_changes(outcome: InitOutcome) -> Self {
        Self { outcome, written: Vec::new(), canaries: Vec::new() }
    }
}

/// Prints the outcome and the next steps.
fn finish(
    plan: &InstallPlan,
    wish: &InstallRequest,
    args: &InitArgs,
    end: &InitEnd,
    mut remaining: RemainingFiles,
) {
    let InitEnd { outcome, written, canaries } = end;
    if args.json {
        print_json_line(summary(plan, *outcome, written, canaries, &remaining));
        return;
    }
    match outcome {
        InitOutcome::NothingToDo => print_line(describe_nothing(plan, args)),
        InitOutcome::DryRun => print_line("nothing was written"),
        InitOutcome::Installed | InitOutcome::Uninstalled => {}
    }
    for (found, canary) in plan.clients.iter().zip(canaries) {
        canary.show(found);
    }
    let asks = !args.yes && !args.dry_run;
    match outcome {
        InitOutcome::Installed | InitOutcome::Uninstalled if args.mcp => {
            print_line("");
            print_line("next: restart the client, because it starts its servers only once");
        }
        InitOutcome::Installed => print_next_steps(plan, wish, asks),
        InitOutcome::NothingToDo if !args.mcp && !args.uninstall => {
            offer_needed_trust(plan, wish, asks);
        }
        _ => {}
    }
    remaining.report(wish);
    remaining.offer(wish, args);
    for server in &plan.still_wrapped {
        print_warning(format!(
            "server `{}` IS STILL GUARDED: see above",
            sanitize(server, LINE_MAX)
        ));
    }
}

/// Why there is nothing to do.
fn describe_nothing(plan: &InstallPlan, args: &InitArgs) -> String {
    match (args.mcp, args.uninstall) {
        _ if !plan.still_wrapped.is_empty() => "nothing was changed".to_owned(),
        (true, true) => "nothing to do: none of these MCP servers is guarded".to_owned(),
        (true, false) => {
            "nothing to do: there are no more MCP servers that can be guarded".to_owned()
        }
        (false, true) => "nothing to do: the guard is not installed in these settings".to_owned(),
        (false, false) if args.user => "nothing to do: the guard is installed".to_owned(),
        (false, false) => {
            format!("nothing to do: the guard is installed in {}", display_path(&plan.project))
        }
    }
}

/// Records that a person makes these changes, so that the guard of an open session does not undo them.
fn vouch_for_plan(plan: &InstallPlan, state_home: &Path) {
    for change in &plan.changes {
        let real = change.path.canonicalize().ok().filter(|real| *real != change.path);
        for path in real.iter().chain([&change.path]) {
            match &change.after {
                Some(contents) => vouch_for(state_home, path, contents),
                None => vouch_for_removal(state_home, path),
            }
        }
    }
}
