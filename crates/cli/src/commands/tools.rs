//! `jackline tools`: what attempts have forged, and how it does.

use jackline_host::clock::now;
use jackline_host::state_home;
use jackline_task::registry::{Registry, RegistryError, Tool};
use serde_json::{Value, json};

use super::person::may_open;
use crate::args::{ToolsArgs, ToolsCommand};
use crate::exit::Exit;
use crate::terminal::{ago, bold, dim, fail, plain, say, say_json, table, warn};

/// How much of a version is shown.
const VERSION_CHARS: usize = 12;

pub(crate) fn run(args: &ToolsArgs) -> Exit {
    let registry = match state_home() {
        Ok(home) => Registry::of_home(&home),
        Err(error) => return fail(Exit::Broken, error),
    };
    match &args.command {
        None => list(&registry, args.json),
        Some(ToolsCommand::Show(show)) => self::show(&registry, &show.name, show.json),
        Some(ToolsCommand::Remove(remove)) => self::remove(&registry, &remove.name),
    }
}

fn list(registry: &Registry, as_json: bool) -> Exit {
    let listing = match registry.list() {
        Ok(listing) => listing,
        Err(error) => return refused(&error),
    };
    if as_json {
        for tool in &listing.tools {
            say_json(summary(tool));
        }
        for (name, why) in &listing.broken {
            say_json(json!({ "name": name, "broken": why }));
        }
    } else if listing.tools.is_empty() && listing.broken.is_empty() {
        say("no attempt has forged a tool yet");
    } else if !listing.tools.is_empty() {
        let head = ["name", "version", "state", "failed", "of", "last used"];
        let mut rows = vec![head.map(dim).to_vec()];
        rows.extend(listing.tools.iter().map(row));
        table(&rows);
    }
    if !as_json {
        for (name, why) in &listing.broken {
            let why = plain(why, 200);
            warn(format!(
                "the entry of `{name}` is broken: {why}; `jackline tools remove {name}` takes it away"
            ));
        }
    }
    if listing.broken.is_empty() { Exit::Fine } else { Exit::No }
}

fn row(tool: &Tool) -> Vec<String> {
    let health = &tool.health;
    let failed = health.failed_pct().map_or_else(|| "-".to_owned(), |pct| format!("{pct} %"));
    let pressure = health.is_under_pressure().then(|| dim("exhausted again and again"));
    let mut row = vec![
        bold(&tool.name),
        short(tool),
        health.state().word().to_owned(),
        failed,
        health.samples().to_string(),
        tool.last_used.map_or_else(|| "never".to_owned(), ago),
    ];
    row.extend(pressure);
    row
}

fn short(tool: &Tool) -> String {
    tool.version.to_string().chars().take(VERSION_CHARS).collect()
}

fn summary(tool: &Tool) -> Value {
    let health = &tool.health;
    json!({
        "name": tool.name,
        "description": tool.description,
        "version": tool.version,
        "state": health.state(),
        "failed_pct": health.failed_pct(),
        "samples": health.samples(),
        "under_pressure": health.is_under_pressure(),
        "uses": tool.uses,
        "forged_at": tool.forged_at,
        "last_used": tool.last_used,
    })
}

fn show(registry: &Registry, name: &str, as_json: bool) -> Exit {
    let tool = match registry.get(name) {
        Ok(Some(tool)) => tool,
        Ok(None) => return unknown(name),
        Err(error) => return refused(&error),
    };
    if as_json {
        let mut all = summary(&tool);
        if let Value::Object(fields) = &mut all {
            fields.insert("source".to_owned(), Value::from(tool.source));
        }
        say_json(all);
        return Exit::Fine;
    }
    let tabbed = |line: &str| {
        let parts: Vec<String> = line.split('\t').map(|part| plain(part, usize::MAX)).collect();
        parts.join("\t")
    };
    let lines: Vec<String> = tool.source.lines().map(tabbed).collect();
    say(format!(
        "{} {}",
        bold(&tool.name),
        dim(format!("{}, {}", short(&tool), tool.health.state().word()))
    ));
    say(plain(&tool.description, 1000));
    say(format!("\n{}", lines.join("\n")));
    Exit::Fine
}

fn remove(registry: &Registry, name: &str) -> Exit {
    if let Err(exit) = may_open("tools remove") {
        return exit;
    }
    match registry.remove(name, now().wall) {
        Ok(true) => {
            say(format!("`{name}` is removed"));
            Exit::Fine
        }
        Ok(false) => unknown(name),
        Err(error) => refused(&error),
    }
}

fn unknown(name: &str) -> Exit {
    fail(Exit::No, format!("no tool is called `{}`; `jackline tools` lists them", plain(name, 64)))
}

fn refused(error: &RegistryError) -> Exit {
    match error {
        RegistryError::Name(_) => fail(Exit::Usage, error),
        RegistryError::Broken { name, .. } => {
            fail(Exit::No, format!("{error}; `jackline tools remove {name}` takes it away"))
        }
        RegistryError::Store(store) => fail(Exit::Broken, format!("{error}; {}", store.remedy())),
        RegistryError::File(_) => fail(Exit::Broken, format!("{error}; look at the state home")),
        _ => fail(Exit::Broken, error),
    }
}
