//! `jackline hook claude`: what the agent is shown instead of what a tool gave back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::hook_support::{SESSION, bash, hear, merge, payload, ran};
use crate::support::World;

/// Pages of 4 KiB, to be quick.
const SHORT: &str = "io: { output: { max_bytes: 4096 } }\n";

const UPDATED: &str = "/hookSpecificOutput/updatedToolOutput";

/// A tool that has run, after it was proposed.
fn returned(world: &World, tool: &str, response: &Value) -> Value {
    let of = |event: &str, beyond: Value| {
        let mut told = payload(world, event, json!({"tool_name": tool, "tool_use_id": "c1"}));
        merge(&mut told, json!({"tool_input": {"pattern": "x"}}));
        merge(&mut told, beyond);
        hear(world, &told)
    };
    assert_eq!(of("PreToolUse", json!({})), Value::Null);
    of("PostToolUse", json!({"tool_response": response}))
}

fn printed(world: &World, line: &str, response: Value) -> Value {
    assert_eq!(hear(world, &bash(world, "c1", line)), Value::Null);
    let mut told = ran(world, "c1", line);
    merge(&mut told["tool_response"], response);
    hear(world, &told)
}

fn lines(count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|line| format!("line {line} is here\n")).collect();
    lines.concat()
}

/// The verdict of the last record.
fn verdict(world: &World) -> Value {
    serde_json::from_str(&world.records(SESSION).last().unwrap().verdict_json).unwrap()
}

#[test]
fn a_long_search_becomes_a_page_and_all_of_it_lies_in_a_file() {
    let world = World::new(SHORT);
    let whole = lines(1000);
    let response = json!({"mode": "content", "numFiles": 0, "filenames": [], "content": whole, "numLines": 1000});
    let heard = returned(&world, "Grep", &response);
    let shown = heard.pointer(UPDATED).unwrap();
    let file = world.directory(SESSION).join("spill/1.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text = shown["content"].as_str().unwrap();
    let (page, note) = text.split_once("[jackline: ").unwrap();
    assert!(whole.starts_with(page) && page.ends_with("is here\n"), "{page}");
    let missing = whole.len() - page.len();
    let says = format!("{missing} of {} bytes are not shown; all of it lies in `", whole.len());
    assert!(note.starts_with(&says) && note.contains(file.to_str().unwrap()), "{note}");
    assert!(text.len() <= 4096, "{}", text.len());
    // The rest has the tool's own shape.
    let mut same = shown.clone();
    same["content"] = response["content"].clone();
    assert_eq!(same, response);
    let page = json!({"bytes": whole.len(), "shown": page.len(), "file": file, "enforced": true});
    let verdict = verdict(&world);
    assert_eq!((&verdict["decision"], &verdict["page"]), (&json!("rewrite"), &page));
    world.prove(SESSION);
}

#[test]
fn of_a_command_both_ends_are_shown() {
    let world = World::new(SHORT);
    let heard = printed(&world, "make", json!({"stdout": lines(1000), "stderr": "error: no\n"}));
    let shown = heard.pointer(UPDATED).unwrap();
    let text = shown["stdout"].as_str().unwrap();
    assert!(text.starts_with("line 0 is here\n") && text.ends_with("error: no\n"), "{text}");
    assert_eq!(text.matches("[jackline: ").count(), 1, "{text}");
    assert_eq!((&shown["stderr"], &shown["interrupted"]), (&json!(""), &json!(false)));
    let kept = fs::read_to_string(world.directory(SESSION).join("spill/1.txt")).unwrap();
    assert_eq!(kept, format!("{}\nerror: no\n", lines(1000)));
    world.prove(SESSION);
}

#[test]
fn what_the_client_has_put_aside_is_shown_from_both_ends() {
    let world = World::new("mode: enforce\n");
    let (file, whole) = (world.root().join("b1.txt"), lines(10_000));
    fs::write(&file, &whole).unwrap();
    let stdout = whole.get(..30_000).unwrap();
    let persisted =
        json!({"stdout": stdout, "persistedOutputPath": file, "persistedOutputSize": whole.len()});
    let heard = printed(&world, "make", persisted);
    let shown = heard.pointer(UPDATED).unwrap();
    let text = shown["stdout"].as_str().unwrap();
    assert!(text.len() <= 30_000, "the client would cut it again: {}", text.len());
    assert!(text.ends_with("line 9999 is here\n") && text.contains(file.to_str().unwrap()));
    assert_eq!(shown.get("persistedOutputPath"), None);
    assert!(!world.directory(SESSION).join("spill").exists(), "nothing is kept twice");
    // One that the definition does not call long is the client's own matter.
    fs::write(&file, lines(3000)).unwrap();
    let persisted =
        json!({"stdout": stdout, "persistedOutputPath": file, "persistedOutputSize": 1});
    assert_eq!(printed(&world, "make", persisted), Value::Null);
    world.prove(SESSION);
}

#[test]
fn what_an_mcp_server_gives_back_is_left_to_who_stands_before_it() {
    let world = World::new(SHORT);
    let items = json!([{"type": "text", "text": lines(1000)}]);
    assert_eq!(returned(&world, "mcp__a__b", &items), Value::Null);
    assert_eq!(returned(&world, "mcp__a__b", &json!(lines(1000))), Value::Null);
    world.prove(SESSION);
}

#[test]
fn paths_within_the_workspace_are_relative_where_the_agent_is_in_it() {
    let world = World::new("mode: enforce\n");
    let work = world.work().display().to_string();
    let said = json!({"stdout": format!("{work}/src/a.rs:1\n/etc/{work}"), "stderr": format!("in {work}")});
    let shown = printed(&world, "make", said.clone());
    let expected = json!([format!("src/a.rs:1\n/etc/{work}"), "in ."]);
    let stream = |name: &str| shown.pointer(UPDATED).unwrap()[name].clone();
    assert_eq!(json!([stream("stdout"), stream("stderr")]), expected);
    assert_eq!(verdict(&world)["page"]["relative"], true);
    // Elsewhere the same name would be another file.
    fs::create_dir(world.work().join("sub")).unwrap();
    let mut below = ran(&world, "c1", "make");
    merge(&mut below["tool_response"], said.clone());
    merge(&mut below, json!({"cwd": world.work().join("sub"), "tool_use_id": "c2"}));
    assert_eq!(hear(&world, &below).pointer(UPDATED), None);
    world.prove(SESSION);

    let world = World::new("io: { output: { relative_paths: false } }\n");
    let said = json!({"stdout": format!("{}/a", world.work().display())});
    assert_eq!(printed(&world, "make", said), Value::Null);
}

#[test]
fn what_only_observes_shows_everything_and_keeps_nothing() {
    let world = World::new(&format!("mode: observe\n{SHORT}"));
    let said = json!({"stdout": format!("{}{}/a", lines(1000), world.work().display())});
    assert_eq!(printed(&world, "make", said), Value::Null);
    assert!(!world.directory(SESSION).join("spill").exists());
    let verdict = verdict(&world);
    assert_eq!((&verdict["decision"], &verdict["enforced"]), (&json!("rewrite"), &json!(false)));
    world.prove(SESSION);
}

#[test]
fn what_can_not_be_kept_is_left_as_it_is_and_the_agent_is_told() {
    let world = World::new(SHORT);
    assert_eq!(hear(&world, &bash(&world, "c0", "true")), Value::Null);
    fs::write(world.directory(SESSION).join("spill"), "in the way").unwrap();
    let heard = printed(&world, "make", json!({"stdout": lines(1000)}));
    assert_eq!(heard.pointer(UPDATED), None);
    let told = heard["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(told.contains("could not be kept in a file"), "{told}");
    world.prove(SESSION);
}

#[test]
fn a_file_that_was_read_is_left_alone() {
    let world = World::new(SHORT);
    let path = world.work().join("a");
    let file = json!({"filePath": path, "content": lines(1000), "numLines": 1000, "startLine": 1, "totalLines": 1000});
    assert_eq!(returned(&world, "Read", &json!({"type": "text", "file": file})), Value::Null);
}
