//! Compares the tools that the client offers to its model with the list of tools in our dialect. A
//! tool that is missing in the list counts as unknown, so the guards deny it.

use std::collections::BTreeSet;

use jackline_clients::claude::CLIENT;
use jackline_model::scripted::{ModelScript, RecordedRequest, ScriptStep};
use serde_json::Value;

use crate::interactive::Terminal;
use crate::world::{ClientWorld, describe_outcome};

/// The client sends this entry while it has not loaded all tools. Its description says that the
/// model must never call it.
const PLACEHOLDER: &str = "DeferredToolPlaceholder";

/// A definition that accepts only tools that are known.
const DEFINITION: &str = "version: 1\nunknown_tools: client\n";

/// The client then sends all tools with their schemas in its first request.
const ALL_TOOLS: (&str, &str) = ("ENABLE_TOOL_SEARCH", "false");

/// The names of the tools in the first request to the model.
fn offered_tools(requests: &[RecordedRequest]) -> BTreeSet<String> {
    let first = requests.iter().find(|request| request.is_of_part(None)).unwrap();
    let tools = first.body.get("tools").and_then(Value::as_array).unwrap();
    let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap().to_owned();
    tools.iter().map(name).filter(|name| name != PLACEHOLDER).collect()
}

/// Checks that our list contains all names.
fn check_names(names: &BTreeSet<String>) {
    let known = CLIENT.dialect.tools();
    let is_known = |name: &&String| {
        known.names.contains(&name.as_str())
            || known.prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let missing: Vec<&String> = names.iter().filter(|name| !is_known(name)).collect();
    assert!(
        missing.is_empty(),
        "the client has tools that `CLAUDE_TOOLS` in crates/clients/src/claude/dialect.rs does not \
         list: {missing:?}"
    );
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_list_contains_each_tool_of_a_client_without_a_person() {
    let world = ClientWorld::new(DEFINITION);
    let seen = world.play(ModelScript::new([ScriptStep::say("noted")]));
    // Some tools are not in the request until the model searches for them. The client prints the
    // names of all tools.
    let is_start = |line: &&Value| line.get("subtype") == Some(&"init".into());
    let start = seen.output_lines.iter().find(is_start);
    let printed = start.and_then(|line| line.get("tools")?.as_array());
    let printed = printed.unwrap_or_else(|| panic!("{}", describe_outcome(&seen)));
    let printed = printed.iter().filter_map(Value::as_str).map(ToOwned::to_owned);
    let mut names = offered_tools(&seen.requests);
    assert!(names.contains("Bash") && names.contains("ToolSearch"), "{names:?}");
    names.extend(printed);
    assert!(names.contains("TaskCreate"), "{names:?}");
    check_names(&names);
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_list_contains_each_tool_of_a_client_with_a_person() {
    let world = ClientWorld::new(DEFINITION);
    let script = ModelScript::new([ScriptStep::say("noted")]);
    let mut terminal = Terminal::start_with(&world, script, &[ALL_TOOLS]);
    terminal.prompt("first");
    terminal.wait_for_requests(1);
    let names = offered_tools(&terminal.requests());
    assert!(names.contains("AskUserQuestion") && names.contains("TaskCreate"), "{names:?}");
    check_names(&names);
    terminal.leave();
    world.verify_and_replay();
}
