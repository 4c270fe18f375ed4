//! Tests of `jackline tools`: the tools that models wrote in attempts.

use std::fs;

use jackline_attempt::HealthLimits;
use jackline_engine::{Digest, Timestamp};
use jackline_task::registry::{Registry, ToolSource};
use serde_json::{Value, json};

use crate::hook_support::command_in_hook_environment;
use crate::support::{CliWorld, JACKLINE, run_with_input};

const SOURCE: &str = "fn run(page) {\n\tpage.title\u{1b}[2J\n}\n";

/// A tool that works, a tool that fails, and an unused tool.
fn world_with_tools() -> CliWorld {
    let world = CliWorld::new("");
    let registry = Registry::of_home(&world.home());
    let at = Timestamp::parse("2026-01-02T03:04:05Z").unwrap();
    let mut overlay = registry.begin();
    for name in ["bad", "good", "idle"] {
        let source = format!("// {name}\n{SOURCE}");
        let description = "The title of a page.".to_owned();
        overlay.add_tool(name, ToolSource { description, source }).unwrap();
    }
    overlay.commit(at).unwrap();
    let used = |name: &str, errors: &[Option<&str>]| {
        let version = Digest::of(format!("// {name}\n{SOURCE}").as_bytes());
        let limits = HealthLimits::default();
        for error in errors {
            registry.record_use(name, &version, *error, &limits, at).unwrap();
        }
    };
    used("good", &[None, Some("timeout"), None, None, None, Some("execution"), None]);
    used("bad", &[None, Some("execution"), Some("guardrail_retry_exhausted")]);
    used("bad", &[Some("execution"), Some("guardrail_retry_exhausted")]);
    world
}

#[test]
fn tools_are_listed_with_their_state() {
    let world = CliWorld::new("");
    let run = world.jackline(&["tools"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "no generated tools yet\n"));
    let world = world_with_tools();
    let run = world.jackline(&["tools"]);
    let version = |name: &str| Digest::of(format!("// {name}\n{SOURCE}").as_bytes()).to_string();
    let short = |name: &str| version(name)[..12].to_owned();
    let lines: Vec<Vec<&str>> = run
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect())
        .collect();
    assert_eq!(lines[0], ["name", "version", "state", "failed", "of", "last used"]);
    assert_eq!(lines[1][..5], ["bad", &short("bad"), "degraded", "80 %", "5"]);
    assert_eq!(lines[1][6], "often out of retries");
    assert_eq!(lines[2][..5], ["good", &short("good"), "durable", "16 %", "6"]);
    assert_eq!(lines[3], ["idle", &short("idle"), "new", "-", "0", "never"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));

    let run = world.jackline(&["tools", "--json"]);
    let first = &run.json_lines()[0];
    assert_eq!(
        *first,
        json!({
            "name": "bad", "description": "The title of a page.", "version": version("bad"),
            "state": "degraded", "failed_pct": 80, "samples": 5, "under_pressure": true,
            "uses": 5, "forged_at": "2026-01-02T03:04:05Z",
            "last_used": "2026-01-02T03:04:05Z",
        })
    );
}

#[test]
fn a_source_is_shown_without_control_characters_and_exactly_as_json() {
    let world = world_with_tools();
    let run = world.jackline(&["tools", "show", "idle"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stdout
            .ends_with("The title of a page.\n\n// idle\nfn run(page) {\n\tpage.title [2J\n}\n"),
        "{run:?}"
    );
    let run = world.jackline(&["tools", "show", "idle", "--json"]);
    let tool: Value = run.stdout.parse().unwrap();
    assert_eq!(tool["source"], format!("// idle\n{SOURCE}"));
}

#[test]
fn only_a_person_may_remove_a_tool() {
    let world = world_with_tools();
    let line = format!("{JACKLINE} tools remove idle; true");
    let mut shell = command_in_hook_environment(&world, "sh", &["-c", &line]);
    let run = run_with_input(shell.env("CLAUDECODE", "1"), b"");
    assert!(run.stderr.contains("only a person may run `jackline tools remove`"), "{run:?}");
    let run = world.jackline(&["tools", "remove", "idle"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "removed `idle`\n"));
    let run = world.jackline(&["tools", "remove", "idle"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr, "error: no tool with the name `idle`; `jackline tools` lists all\n");
    let run = world.jackline(&["tools", "show", "../journal"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("`../journal` is not a valid tool name"), "{run:?}");
}

#[test]
fn a_broken_entry_is_named_and_an_invalid_registry_is_an_error() {
    let world = world_with_tools();
    let entry = world.home().join("registry/tools/good.json");
    fs::write(&entry, "{").unwrap();
    let run = world.jackline(&["tools"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("bad") && run.stdout.contains("idle"), "{run:?}");
    assert!(
        run.stderr.contains("the entry of `good` is broken: it is not a valid entry"),
        "{run:?}"
    );
    let run = world.jackline(&["tools", "show", "good"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("`jackline tools remove good` removes it"), "{run:?}");
    assert_eq!(world.jackline(&["tools", "remove", "good"]).code, Some(0));
    assert_eq!(world.jackline(&["tools"]).code, Some(0));
    let registry = world.home().join("registry");
    fs::remove_dir_all(&registry).unwrap();
    fs::write(&registry, "").unwrap();
    let run = world.jackline(&["tools"]);
    assert_eq!(run.code, Some(3), "{run:?}");
}
