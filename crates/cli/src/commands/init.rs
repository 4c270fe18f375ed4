//! `jackline init`: installs the guard in the settings of agent clients, and removes it.

mod canary;

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anstyle::AnsiColor;
use jackline_clients::installation::InstallScope;
use jackline_clients::{CLIENTS, Client, find_client};
use jackline_host::state_home;
use jackline_mcp::{AddressError, Encryption, ServerAddress};
use jackline_setup::install::{
    DiffLine, FilePurpose, InstallError, InstallPlan, InstallRequest, PlannedChange,
    RemoteSelection, WrittenFile, apply_plan, diff, plan, plan_removal, plan_unwrapping,
    plan_wrapping,
};
use serde_json::{Value, json};

use self::canary::CanaryOutcome;
use super::person::require_person;
use crate::args::InitArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, confirm, current_directory, dim, fail, print_json_line, print_line, print_warning,
    sanitize, styled,
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
    let scope = match (args.local, args.user) {
        (true, _) => InstallScope::Local,
        (_, true) => InstallScope::User,
        _ => InstallScope::Project,
    };
    let jackline = std::env::current_exe();
    Ok(InstallRequest {
        clients,
        scope,
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
    if !args.json {
        show(plan);
    }
    if plan.changes.is_empty() {
        finish(plan, args, InitOutcome::NothingToDo, &[], &[]);
        return Ok(exit);
    }
    if args.dry_run {
        finish(plan, args, InitOutcome::DryRun, &[], &[]);
        return Ok(exit);
    }
    if !args.yes {
        if args.json || !io::stdin().is_terminal() {
            let text = "no terminal to confirm in; preview with --dry-run, then pass --yes";
            return Ok(fail(ExitKind::Usage, text));
        }
        if !confirm("Write this?") {
            print_line("nothing was changed");
            return Ok(ExitKind::No);
        }
    }
    let written = apply_plan(plan, &wish.state_home)?;
    if !args.json {
        show_written(&written);
    }
    let try_client = |found| CanaryOutcome::run(found, plan, wish, args);
    let canaries = plan
        .clients
        .iter()
        .map(try_client)
        .collect::<Result<Vec<CanaryOutcome>, InstallError>>()?;
    let done = if args.uninstall { InitOutcome::Uninstalled } else { InitOutcome::Installed };
    finish(plan, args, done, &written, &canaries);
    Ok(if canaries.iter().any(CanaryOutcome::is_alarm) { ExitKind::No } else { exit })
}

/// Prints the clients that were found, and the changes.
fn show(plan: &InstallPlan) {
    for found in &plan.clients {
        let version = found.version.map(|version| format!(" {version}")).unwrap_or_default();
        let place = match &found.program {
            Some(program) => dim(format!("  {}", display_path(program))),
            None => String::new(),
        };
        print_line(format!("{}{version}{place}", bold(found.client.title)));
    }
    plan.notes.iter().for_each(|note| print_line(sanitize(note, LINE_MAX)));
    for change in &plan.changes {
        print_line("");
        print_line(format!("{}  {}", bold(display_path(&change.path)), dim(change_label(change))));
        for line in diff_lines(change) {
            print_line(line);
        }
    }
    if !plan.changes.is_empty() {
        print_line("");
    }
    plan.warnings.iter().for_each(|text| print_warning(sanitize(text, LINE_MAX)));
    for why in &plan.disabled_reasons {
        print_warning(format!("THE HOOKS WILL NOT RUN: {}", sanitize(why, LINE_MAX)));
    }
}

fn display_path(path: &Path) -> String {
    sanitize(&path.display().to_string(), LINE_MAX)
}

fn change_label(change: &PlannedChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "new file",
        (Some(_), Some(_)) => "changes",
        (Some(_), None) => "is removed",
    }
}

/// The diff of a change, line by line.
fn diff_lines(change: &PlannedChange) -> Vec<String> {
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let (green, red) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let line = |line: DiffLine| match line {
        DiffLine::Same(text) => format!("    {}", sanitize(&text, LINE_MAX)),
        DiffLine::Added(text) => styled(green, format!("  + {}", sanitize(&text, LINE_MAX))),
        DiffLine::Removed(text) => styled(red, format!("  - {}", sanitize(&text, LINE_MAX))),
        DiffLine::Gap => dim("    …"),
    };
    diff(&text(&change.before), &text(&change.after)).into_iter().map(line).collect()
}

/// Prints the files that were written.
fn show_written(written: &[WrittenFile]) {
    for done in written {
        let verb = if done.removed { "removed" } else { "wrote" };
        let backup = done.backup.as_deref().map(|file| format!("  backup: {}", display_path(file)));
        print_line(format!(
            "{verb} {}{}",
            display_path(&done.path),
            dim(backup.unwrap_or_default())
        ));
    }
}

/// Prints the outcome and the next steps.
fn finish(
    plan: &InstallPlan,
    args: &InitArgs,
    end: InitOutcome,
    written: &[WrittenFile],
    canaries: &[CanaryOutcome],
) {
    if args.json {
        print_json_line(summary(plan, end, written, canaries));
        return;
    }
    match end {
        InitOutcome::NothingToDo if !plan.still_wrapped.is_empty() => {
            print_line("nothing was changed");
        }
        InitOutcome::NothingToDo if args.mcp && args.uninstall => {
            print_line("nothing to do: none of these MCP servers is guarded");
        }
        InitOutcome::NothingToDo if args.mcp => {
            print_line("nothing to do: there are no more MCP servers that can be guarded");
        }
        InitOutcome::NothingToDo if args.uninstall && !args.local && !args.user => print_line(
            "nothing to do: the guard is not installed here; if you installed it with `--local` or \
             `--user`, pass the same flag",
        ),
        InitOutcome::NothingToDo if args.uninstall => {
            print_line("nothing to do: the guard is not installed here");
        }
        InitOutcome::NothingToDo if args.user => {
            print_line("nothing to do: the guard is installed");
        }
        InitOutcome::NothingToDo => {
            print_line(format!(
                "nothing to do: the guard is installed in {}",
                display_path(&plan.project)
            ));
        }
        InitOutcome::DryRun => print_line("nothing was written"),
        InitOutcome::Installed | InitOutcome::Uninstalled => {}
    }
    for (found, canary) in plan.clients.iter().zip(canaries) {
        canary.show(found);
    }
    match end {
        InitOutcome::Installed | InitOutcome::Uninstalled if args.mcp => {
            print_line("");
            print_line("next: restart the client, because it starts its servers only once");
        }
        InitOutcome::Installed => print_next_steps(plan),
        _ => {}
    }
    for server in &plan.still_wrapped {
        print_warning(format!(
            "server `{}` IS STILL GUARDED: see above",
            sanitize(server, LINE_MAX)
        ));
    }
}

fn print_next_steps(plan: &InstallPlan) {
    let client = plan.clients.first().map_or("the client", |found| found.client.id.as_str());
    print_line("");
    if !plan.disabled_reasons.is_empty() {
        print_line(format!(
            "next: allow `{client}` to run its hooks (see above), then run `jackline init` again"
        ));
        return;
    }
    print_line(format!("next: start `{client}` in {}", display_path(&plan.project)));
    print_line("      `jackline status` shows what would have been denied");
    print_line("      `jackline enforce` starts enforcing, when you are satisfied");
}

/// The outcome as JSON.
fn summary(
    plan: &InstallPlan,
    end: InitOutcome,
    written: &[WrittenFile],
    canaries: &[CanaryOutcome],
) -> Value {
    let clients = plan.clients.iter().map(|found| {
        json!({
            "client": found.client.id,
            "program": found.program,
            "version": found.version.map(|version| version.to_string()),
        })
    });
    let changes = plan.changes.iter().map(|change| {
        let action = match (&change.before, &change.after) {
            (None, _) => "create",
            (Some(_), Some(_)) => "change",
            (Some(_), None) => "remove",
        };
        let purpose = match change.purpose {
            FilePurpose::Settings(_) => "settings",
            FilePurpose::Servers(_) => "servers",
            FilePurpose::Exclude => "exclude",
            FilePurpose::Definition => "definition",
        };
        let done = written.iter().find(|done| done.path == change.path);
        json!({
            "path": change.path, "purpose": purpose, "action": action, "written": done.is_some(),
            "backup": done.and_then(|done| done.backup.as_ref()),
        })
    });
    let canaries = plan.clients.iter().zip(canaries).map(|(found, canary)| canary.summary(found));
    json!({
        "outcome": end.as_str(),
        "project": plan.project,
        "clients": clients.collect::<Vec<Value>>(),
        "changes": changes.collect::<Vec<Value>>(),
        "canary": canaries.collect::<Vec<Value>>(),
        "notes": plan.notes,
        "warnings": plan.warnings,
        "silenced": plan.disabled_reasons,
        "still_guarded": plan.still_wrapped,
    })
}
