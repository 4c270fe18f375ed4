//! `jackline tools`: lists, shows and removes generated tools (tools that a model wrote).

use jackline_host::clock::now;
use jackline_host::state_home;
use jackline_task::registry::{Registry, RegistryError, StoredTool};
use serde_json::{Value, json};

use super::person::require_person;
use crate::args::{ToolsArgs, ToolsCommand};
use crate::exit::ExitKind;
use crate::terminal::{
    bold, dim, fail, format_age, print_json_line, print_line, print_table, print_warning, sanitize,
};

/// How many characters of a version are shown.
const VERSION_CHARS: usize = 12;

pub(crate) fn run(args: &ToolsArgs) -> ExitKind {
    let registry = match state_home() {
        Ok(home) => Registry::of_home(&home),
        Err(error) => return fail(ExitKind::Broken, error),
    };
    match &args.command {
        None => list(&registry, args.json),
        Some(ToolsCommand::Show(show)) => self::show(&registry, &show.name, show.json),
        Some(ToolsCommand::Remove(remove)) => self::remove(&registry, &remove.name),
    }
}

fn list(registry: &Registry, as_json: bool) -> ExitKind {
    let listing = match registry.list() {
        Ok(listing) => listing,
        Err(error) => return registry_failure(&error),
    };
    if as_json {
        for tool in &listing.tools {
            print_json_line(summary(tool));
        }
        for (name, why) in &listing.broken {
            print_json_line(json!({ "name": name, "broken": why }));
        }
    } else if listing.tools.is_empty() && listing.broken.is_empty() {
        print_line("no generated tools yet");
    } else if !listing.tools.is_empty() {
        let head = ["name", "version", "state", "failed", "of", "last used"];
        let mut rows = vec![head.map(dim).to_vec()];
        rows.extend(listing.tools.iter().map(row));
        print_table(&rows);
    }
    if !as_json {
        for (name, why) in &listing.broken {
            let why = sanitize(why, 200);
            print_warning(format!(
                "the entry of `{name}` is broken: {why}; `jackline tools remove {name}` removes it"
            ));
        }
    }
    if listing.broken.is_empty() { ExitKind::Success } else { ExitKind::No }
}

fn row(tool: &StoredTool) -> Vec<String> {
    let health = &tool.health;
    let failed = health.failed_pct().map_or_else(|| "-".to_owned(), |pct| format!("{pct} %"));
    let pressure = health.is_under_pressure().then(|| dim("often out of retries"));
    let mut row = vec![
        bold(&tool.name),
        short_version(tool),
        health.state().as_str().to_owned(),
        failed,
        health.samples().to_string(),
        tool.last_used.map_or_else(|| "never".to_owned(), format_age),
    ];
    row.extend(pressure);
    row
}

fn short_version(tool: &StoredTool) -> String {
    tool.version.to_string().chars().take(VERSION_CHARS).collect()
}

fn summary(tool: &StoredTool) -> Value {
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

fn show(registry: &Registry, name: &str, as_json: bool) -> ExitKind {
    let tool = match registry.get(name) {
        Ok(Some(tool)) => tool,
        Ok(None) => return unknown_tool(name),
        Err(error) => return registry_failure(&error),
    };
    if as_json {
        let mut all = summary(&tool);
        if let Value::Object(fields) = &mut all {
            fields.insert("source".to_owned(), Value::from(tool.source));
        }
        print_json_line(all);
        return ExitKind::Success;
    }
    let tabbed = |line: &str| {
        let parts: Vec<String> = line.split('\t').map(|part| sanitize(part, usize::MAX)).collect();
        parts.join("\t")
    };
    let lines: Vec<String> = tool.source.lines().map(tabbed).collect();
    print_line(format!(
        "{} {}",
        bold(&tool.name),
        dim(format!("{}, {}", short_version(&tool), tool.health.state().as_str()))
    ));
    print_line(sanitize(&tool.description, 1000));
    print_line(format!("\n{}", lines.join("\n")));
    ExitKind::Success
}

fn remove(registry: &Registry, name: &str) -> ExitKind {
    if let Err(exit) = require_person("tools remove") {
        return exit;
    }
    match registry.remove(name, now().wall) {
        Ok(true) => {
            print_line(format!("removed `{name}`"));
            ExitKind::Success
        }
        Ok(false) => unknown_tool(name),
        Err(error) => registry_failure(&error),
    }
}

fn unknown_tool(name: &str) -> ExitKind {
    fail(
        ExitKind::No,
        format!("no tool with the name `{}`; `jackline tools` lists all", sanitize(name, 64)),
    )
}

fn registry_failure(error: &RegistryError) -> ExitKind {
    match error {
        RegistryError::Name(_) => fail(ExitKind::Usage, error),
        RegistryError::Broken { name, .. } => {
            fail(ExitKind::No, format!("{error}; `jackline tools remove {name}` removes it"))
        }
        RegistryError::Store(store) => {
            fail(ExitKind::Broken, format!("{error}; {}", store.remedy()))
        }
        RegistryError::File(_) => {
            fail(ExitKind::Broken, format!("{error}; check the files in the state home"))
        }
        _ => fail(ExitKind::Broken, error),
    }
}
