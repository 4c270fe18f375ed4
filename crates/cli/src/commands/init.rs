//! `jackline init`: puts the guard into the settings of agent clients, and
//! takes it out again.

mod canary;

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anstyle::AnsiColor;
use jackline_clients::installation::Scope;
use jackline_clients::{CLIENTS, Client, find_client};
use jackline_host::state_home;
use jackline_mcp::{Address, AddressError, Encryption};
use jackline_setup::install::{
    Change, DiffLine, InstallError, Plan, Purpose, Remote, Wish, Written, carry_out, diff, plan,
    plan_removal, plan_unwrapping, plan_wrapping,
};
use serde_json::{Value, json};

use self::canary::Canary;
use super::person::may_open;
use crate::args::InitArgs;
use crate::exit::Exit;
use crate::terminal::{ask, bold, dim, fail, here, plain, say, say_json, styled, warn};

/// How much of a line of a difference is shown.
const LINE_MAX: usize = 2000;

/// How often a plan is made again because somebody else wrote first.
const TRIES_MAX: usize = 5;

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    NothingToDo,
    DryRun,
    Installed,
    Uninstalled,
}

impl End {
    fn word(self) -> &'static str {
        match self {
            Self::NothingToDo => "nothing_to_do",
            Self::DryRun => "dry_run",
            Self::Installed => "installed",
            Self::Uninstalled => "uninstalled",
        }
    }
}

pub(crate) fn run(args: &InitArgs) -> Exit {
    // What takes the guard out is a person's to run.
    if args.uninstall
        && !args.dry_run
        && let Err(exit) = may_open("init --uninstall")
    {
        return exit;
    }
    let wish = match wish(args) {
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
            Err(error) => return refuse(error),
        };
        match follow(&plan, &wish, args) {
            // Another one was faster; what is there now is planned for anew.
            Err(InstallError::Changed { .. }) => {}
            Err(error) => return refuse(error),
            Ok(exit) => return exit,
        }
    }
    fail(Exit::No, "others keep changing these files; run this again once they are done")
}

fn wish(args: &InitArgs) -> Result<Wish, Exit> {
    let client = |name: &String| {
        find_client(name).ok_or_else(|| {
            let known: Vec<String> =
                CLIENTS.iter().map(|client| format!("`{}`", client.id)).collect();
            let text = format!("there is no client `{name}`; known: {}", known.join(", "));
            fail(Exit::Usage, plain(&text, LINE_MAX))
        })
    };
    let clients =
        args.clients.iter().map(client).collect::<Result<Vec<&'static Client>, Exit>>()?;
    let scope = match (args.local, args.user) {
        (true, _) => Scope::Local,
        (_, true) => Scope::User,
        _ => Scope::Project,
    };
    let jackline = std::env::current_exe();
    Ok(Wish {
        clients,
        scope,
        here: here(),
        jackline: jackline
            .map_err(|error| fail(Exit::Broken, format!("which program is this: {error}")))?,
        client_program: args.client_program.clone(),
        state_home: state_home().map_err(|error| fail(Exit::Usage, error))?,
        remote: match args.remote.as_slice() {
            [] => Remote::None,
            names if names.iter().any(String::is_empty) => Remote::All,
            names => Remote::Named(names.to_vec()),
        },
        reaches,
    })
}

/// Whether `jackline mcp wrap` takes such a server.
fn reaches(url: Option<&str>, headers: &[(&str, &str)]) -> Result<(), String> {
    // Who is asked there does not matter to the headers.
    let url = url.unwrap_or("https://localhost");
    let text = |error: AddressError| error.to_string();
    let mut address = Address::parse(url, Encryption::Demanded).map_err(text)?;
    for (name, value) in headers {
        // Where the client fills something in, what is around it counts.
        address = address.with_header(name, value).map_err(text)?;
    }
    Ok(())
}

fn refuse(error: InstallError) -> Exit {
    let exit = match &error {
        InstallError::NoClient | InstallError::NoServers { .. } | InstallError::Partly { .. } => {
            Exit::No
        }
        InstallError::State { .. } => Exit::Broken,
        _ => Exit::Usage,
    };
    fail(exit, error)
}

/// Shows a plan, asks, and does it.
fn follow(plan: &Plan, wish: &Wish, args: &InitArgs) -> Result<Exit, InstallError> {
    let is_all = plan.silenced.is_empty() && plan.still_guarded.is_empty();
    let exit = if is_all { Exit::Fine } else { Exit::No };
    if !args.json {
        show(plan);
    }
    if plan.changes.is_empty() {
        finish(plan, args, End::NothingToDo, &[], &[]);
        return Ok(exit);
    }
    if args.dry_run {
        finish(plan, args, End::DryRun, &[], &[]);
        return Ok(exit);
    }
    if !args.yes {
        if args.json || !io::stdin().is_terminal() {
            let text = "nobody can be asked here; look at it with --dry-run, then say --yes";
            return Ok(fail(Exit::Usage, text));
        }
        if !ask("Write this?") {
            say("nothing was changed");
            return Ok(Exit::No);
        }
    }
    let written = carry_out(plan, &wish.state_home)?;
    if !args.json {
        show_written(&written);
    }
    let send = |found| Canary::send(found, plan, wish, args);
    let canaries = plan.found.iter().map(send).collect::<Result<Vec<Canary>, InstallError>>()?;
    let done = if args.uninstall { End::Uninstalled } else { End::Installed };
    finish(plan, args, done, &written, &canaries);
    Ok(if canaries.iter().any(Canary::is_alarm) { Exit::No } else { exit })
}

/// What was found, and what would change.
fn show(plan: &Plan) {
    for found in &plan.found {
        let version = found.version.map(|version| format!(" {version}")).unwrap_or_default();
        let place = match &found.program {
            Some(program) => dim(format!("  {}", name(program))),
            None => String::new(),
        };
        say(format!("{}{version}{place}", bold(found.client.title)));
    }
    plan.notes.iter().for_each(|note| say(plain(note, LINE_MAX)));
    for change in &plan.changes {
        say("");
        say(format!("{}  {}", bold(name(&change.path)), dim(act(change))));
        for line in lines(change) {
            say(line);
        }
    }
    if !plan.changes.is_empty() {
        say("");
    }
    plan.warnings.iter().for_each(|text| warn(plain(text, LINE_MAX)));
    for why in &plan.silenced {
        warn(format!("THE HOOKS WILL NOT RUN: {}", plain(why, LINE_MAX)));
    }
}

fn name(path: &Path) -> String {
    plain(&path.display().to_string(), LINE_MAX)
}

fn act(change: &Change) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "new file",
        (Some(_), Some(_)) => "changes",
        (Some(_), None) => "is removed",
    }
}

/// The difference that a change makes, a line each.
fn lines(change: &Change) -> Vec<String> {
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let (green, red) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let line = |line: DiffLine| match line {
        DiffLine::Same(text) => format!("    {}", plain(&text, LINE_MAX)),
        DiffLine::Added(text) => styled(green, format!("  + {}", plain(&text, LINE_MAX))),
        DiffLine::Removed(text) => styled(red, format!("  - {}", plain(&text, LINE_MAX))),
        DiffLine::Gap => dim("    …"),
    };
    diff(&text(&change.before), &text(&change.after)).into_iter().map(line).collect()
}

/// What was done.
fn show_written(written: &[Written]) {
    for done in written {
        let verb = if done.removed { "removed" } else { "wrote" };
        let kept = done.backup.as_deref().map(|backup| format!("  before: {}", name(backup)));
        say(format!("{verb} {}{}", name(&done.path), dim(kept.unwrap_or_default())));
    }
}

/// Says how it ended, and what is next.
fn finish(plan: &Plan, args: &InitArgs, end: End, written: &[Written], canaries: &[Canary]) {
    if args.json {
        say_json(summary(plan, end, written, canaries));
        return;
    }
    match end {
        End::NothingToDo if !plan.still_guarded.is_empty() => say("nothing was changed"),
        End::NothingToDo if args.mcp && args.uninstall => {
            say("nothing to do: it was put before none of these MCP servers");
        }
        End::NothingToDo if args.mcp => {
            say("nothing to do: there is no other MCP server that the guard can stand before");
        }
        End::NothingToDo if args.uninstall && !args.local && !args.user => say(
            "nothing to do: the guard is not installed here; what `--local` or `--user` installed \
             goes with the same word",
        ),
        End::NothingToDo if args.uninstall => say("nothing to do: the guard is not installed here"),
        End::NothingToDo if args.user => say("nothing to do: the guard is installed"),
        End::NothingToDo => {
            say(format!("nothing to do: the guard is installed in {}", name(&plan.project)));
        }
        End::DryRun => say("nothing was written"),
        End::Installed | End::Uninstalled => {}
    }
    for (found, canary) in plan.found.iter().zip(canaries) {
        canary.show(found);
    }
    match end {
        End::Installed | End::Uninstalled if args.mcp => {
            say("");
            say("next: start the client anew; it starts its servers when it begins");
        }
        End::Installed => next(plan),
        _ => {}
    }
    for server in &plan.still_guarded {
        warn(format!("THE GUARD IS STILL BEFORE `{}`: see above", plain(server, LINE_MAX)));
    }
}

fn next(plan: &Plan) {
    let client = plan.found.first().map_or("the client", |found| found.client.id.as_str());
    say("");
    if !plan.silenced.is_empty() {
        say(format!("next: let `{client}` run its hooks, see above, then `jackline init` again"));
        return;
    }
    say(format!("next: start `{client}` in {}", name(&plan.project)));
    say("      `jackline status` shows what would have been denied");
    say("      `jackline enforce` when you are happy with it");
}

/// The same for programs.
fn summary(plan: &Plan, end: End, written: &[Written], canaries: &[Canary]) -> Value {
    let clients = plan.found.iter().map(|found| {
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
            Purpose::Settings(_) => "settings",
            Purpose::Servers(_) => "servers",
            Purpose::Exclude => "exclude",
            Purpose::Definition => "definition",
        };
        let done = written.iter().find(|done| done.path == change.path);
        json!({
            "path": change.path, "purpose": purpose, "action": action, "written": done.is_some(),
            "backup": done.and_then(|done| done.backup.as_ref()),
        })
    });
    let canaries = plan.found.iter().zip(canaries).map(|(found, canary)| canary.summary(found));
    json!({
        "outcome": end.word(),
        "project": plan.project,
        "clients": clients.collect::<Vec<Value>>(),
        "changes": changes.collect::<Vec<Value>>(),
        "canary": canaries.collect::<Vec<Value>>(),
        "notes": plan.notes,
        "warnings": plan.warnings,
        "silenced": plan.silenced,
        "still_guarded": plan.still_guarded,
    })
}
