//! Tests of `jackline hook claude`: the agent gets a shortened tool output.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::hook_support::{SESSION, bash_finished, bash_proposed, hook_answer, merge, payload};
use crate::support::CliWorld;

/// Pages of 4 KiB, to keep the tests fast.
const SHORT_PAGES: &str = "io: { output: { max_bytes: 4096 } }\n";

const UPDATED_OUTPUT_POINTER: &str = "/hookSpecificOutput/updatedToolOutput";

/// Proposes and finishes a tool call, and returns the answer to the result.
fn answer_to_result(world: &CliWorld, tool: &str, response: &Value) -> Value {
    let send = |event: &str, extra: Value| {
        let mut event_payload =
            payload(world, event, json!({"tool_name": tool, "tool_use_id": "c1"}));
        merge(&mut event_payload, json!({"tool_input": {"pattern": "x"}}));
        merge(&mut event_payload, extra);
        hook_answer(world, &event_payload)
    };
    assert_eq!(send("PreToolUse", json!({})), Value::Null);
    send("PostToolUse", json!({"tool_response": response}))
}

fn answer_to_command_output(world: &CliWorld, line: &str, response: Value) -> Value {
    assert_eq!(hook_answer(world, &bash_proposed(world, "c1", line)), Value::Null);
    let mut result = bash_finished(world, "c1", line);
    merge(&mut result["tool_response"], response);
    hook_answer(world, &result)
}

fn numbered_lines(count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|line| format!("line {line} is here\n")).collect();
    lines.concat()
}

/// Returns the verdict of the last record.
fn last_verdict(world: &CliWorld) -> Value {
    serde_json::from_str(&world.records(SESSION).last().unwrap().verdict_json).unwrap()
}

#[test]
fn a_long_search_result_becomes_a_page_and_a_file_with_the_whole_output() {
    let world = CliWorld::new(SHORT_PAGES);
    let whole = numbered_lines(1000);
    let response = json!({"mode": "content", "numFiles": 0, "filenames": [], "content": whole, "numLines": 1000});
    let answer = answer_to_result(&world, "Grep", &response);
    let output = answer.pointer(UPDATED_OUTPUT_POINTER).unwrap();
    let file = world.session_directory(SESSION).join("spill/1.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text = output["content"].as_str().unwrap();
    let (page, note) = text.split_once("[jackline: ").unwrap();
    assert!(whole.starts_with(page) && page.ends_with("is here\n"), "{page}");
    let missing = whole.len() - page.len();
    let start = format!(
        "{missing} of {} bytes are not shown; the whole output is stored in `",
        whole.len()
    );
    assert!(note.starts_with(&start) && note.contains(file.to_str().unwrap()), "{note}");
    assert!(text.len() <= 4096, "{}", text.len());
    // The other fields are unchanged.
    let mut same = output.clone();
    same["content"] = response["content"].clone();
    assert_eq!(same, response);
    let lines = page.lines().count();
    let page = json!({
        "bytes": whole.len(), "shown": page.len(), "lines_shown": lines,
        "lines_remaining": 1000 - lines, "has_more": true, "next_offset": lines + 1,
        "file": file, "enforced": true,
    });
    let verdict = last_verdict(&world);
    assert_eq!((&verdict["decision"], &verdict["page"]), (&json!("rewrite"), &page));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_search_that_finds_nothing_gets_guidance() {
    let context = |tool: &str, response: Value| {
        let world = CliWorld::new("mode: enforce\n");
        let answer = answer_to_result(&world, tool, &response);
        world.verify_and_replay(SESSION);
        answer.pointer("/hookSpecificOutput/additionalContext").cloned().unwrap_or_default()
    };
    let none = json!({"mode": "files_with_matches", "numFiles": 0, "filenames": []});
    let guidance = context("Grep", none);
    let guidance = guidance.as_str().unwrap();
    assert!(guidance.contains("`Grep` found no matches.\n\n-> List the directory"), "{guidance}");
    let none = json!({"durationMs": 4, "numFiles": 0, "filenames": [], "truncated": false});
    assert!(context("Glob", none).as_str().unwrap().contains("`Glob` found no names."));
    let found = json!({"mode": "files_with_matches", "numFiles": 1, "filenames": ["a.md"]});
    assert_eq!(context("Grep", found), Value::Null);
}

#[test]
fn a_structured_output_is_checked_before_it_is_handed_over() {
    let world = CliWorld::new(
        "mode: enforce\ncompletion: { files: [report.md] }\noutputs: { report: { schema: \
         { type: object, required: [sum], properties: { sum: { type: integer } } } } }\n",
    );
    let send = |event: &str, call: &str, extra: Value| {
        let about =
            json!({"tool_name": "StructuredOutput", "tool_use_id": call, "tool_input": extra});
        hook_answer(&world, &payload(&world, event, about))
    };
    let refused = send("PreToolUse", "c1", json!({"sum": "many"}));
    let reason = refused["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("the output `report` can't be used: `/sum`: expected"), "{reason}");
    let accepted = send("PreToolUse", "c2", json!({"sum": 3}));
    let context = accepted["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("The required file `report.md` is missing."), "{context}");
    assert_eq!(accepted.pointer("/hookSpecificOutput/permissionDecision"), None);
    let records = world.records(SESSION).len();
    assert_eq!(send("PostToolUse", "c2", json!({"sum": 3})), Value::Null);
    assert_eq!(world.records(SESSION).len(), records);
    fs::write(world.workspace().join("report.md"), "sum: 3").unwrap();
    assert_eq!(send("PreToolUse", "c3", json!({"sum": 3})), Value::Null);
    world.verify_and_replay(SESSION);
}

#[test]
fn both_ends_of_a_command_output_are_shown() {
    let world = CliWorld::new(SHORT_PAGES);
    let answer = answer_to_command_output(
        &world,
        "make",
        json!({"stdout": numbered_lines(1000), "stderr": "error: no\n"}),
    );
    let output = answer.pointer(UPDATED_OUTPUT_POINTER).unwrap();
    let text = output["stdout"].as_str().unwrap();
    assert!(text.starts_with("line 0 is here\n") && text.ends_with("error: no\n"), "{text}");
    assert_eq!(text.matches("[jackline: ").count(), 1, "{text}");
    assert_eq!((&output["stderr"], &output["interrupted"]), (&json!(""), &json!(false)));
    let stored = fs::read_to_string(world.session_directory(SESSION).join("spill/1.txt")).unwrap();
    assert_eq!(stored, format!("{}\nerror: no\n", numbered_lines(1000)));
    world.verify_and_replay(SESSION);
}

#[test]
fn an_output_that_the_client_stored_is_shown_from_both_ends() {
    let world = CliWorld::new("mode: enforce\n");
    let (file, whole) = (world.root().join("b1.txt"), numbered_lines(10_000));
    fs::write(&file, &whole).unwrap();
    let stdout = whole.get(..30_000).unwrap();
    let persisted =
        json!({"stdout": stdout, "persistedOutputPath": file, "persistedOutputSize": whole.len()});
    let answer = answer_to_command_output(&world, "make", persisted);
    let output = answer.pointer(UPDATED_OUTPUT_POINTER).unwrap();
    let text = output["stdout"].as_str().unwrap();
    assert!(text.len() <= 30_000, "the client would cut it again: {}", text.len());
    assert!(text.ends_with("line 9999 is here\n") && text.contains(file.to_str().unwrap()));
    assert_eq!(output.get("persistedOutputPath"), None);
    assert!(
        !world.session_directory(SESSION).join("spill").exists(),
        "the output must not be stored twice"
    );
    // An output within the limit of the definition is left to the client.
    fs::write(&file, numbered_lines(3000)).unwrap();
    let persisted =
        json!({"stdout": stdout, "persistedOutputPath": file, "persistedOutputSize": 1});
    assert_eq!(answer_to_command_output(&world, "make", persisted), Value::Null);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_result_of_an_mcp_server_is_left_to_the_proxy() {
    let world = CliWorld::new(SHORT_PAGES);
    let items = json!([{"type": "text", "text": numbered_lines(1000)}]);
    assert_eq!(answer_to_result(&world, "mcp__a__b", &items), Value::Null);
    assert_eq!(answer_to_result(&world, "mcp__a__b", &json!(numbered_lines(1000))), Value::Null);
    world.verify_and_replay(SESSION);
}

#[test]
fn paths_in_the_workspace_become_relative_if_the_agent_is_in_its_root() {
    let world = CliWorld::new("mode: enforce\n");
    let work = world.workspace().display().to_string();
    let response = json!({"stdout": format!("{work}/src/a.rs:1\n/etc/{work}"), "stderr": format!("in {work}")});
    let answer = answer_to_command_output(&world, "make", response.clone());
    let expected = json!([format!("src/a.rs:1\n/etc/{work}"), "in ."]);
    let stream = |name: &str| answer.pointer(UPDATED_OUTPUT_POINTER).unwrap()[name].clone();
    assert_eq!(json!([stream("stdout"), stream("stderr")]), expected);
    assert_eq!(last_verdict(&world)["page"]["relative"], true);
    // In another directory the relative path would name another file.
    fs::create_dir(world.workspace().join("sub")).unwrap();
    let mut below = bash_finished(&world, "c1", "make");
    merge(&mut below["tool_response"], response.clone());
    merge(&mut below, json!({"cwd": world.workspace().join("sub"), "tool_use_id": "c2"}));
    assert_eq!(hook_answer(&world, &below).pointer(UPDATED_OUTPUT_POINTER), None);
    world.verify_and_replay(SESSION);

    let world = CliWorld::new("io: { output: { relative_paths: false } }\n");
    let response = json!({"stdout": format!("{}/a", world.workspace().display())});
    assert_eq!(answer_to_command_output(&world, "make", response), Value::Null);
}

#[test]
fn observe_mode_shows_everything_and_stores_nothing() {
    let world = CliWorld::new(&format!("mode: observe\n{SHORT_PAGES}"));
    let response =
        json!({"stdout": format!("{}{}/a", numbered_lines(1000), world.workspace().display())});
    assert_eq!(answer_to_command_output(&world, "make", response), Value::Null);
    assert!(!world.session_directory(SESSION).join("spill").exists());
    let verdict = last_verdict(&world);
    assert_eq!((&verdict["decision"], &verdict["enforced"]), (&json!("rewrite"), &json!(false)));
    world.verify_and_replay(SESSION);
}

#[test]
fn an_output_that_cannot_be_stored_is_unchanged_and_the_agent_is_told() {
    let world = CliWorld::new(SHORT_PAGES);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c0", "true")), Value::Null);
    fs::write(world.session_directory(SESSION).join("spill"), "in the way").unwrap();
    let answer = answer_to_command_output(&world, "make", json!({"stdout": numbered_lines(1000)}));
    assert_eq!(answer.pointer(UPDATED_OUTPUT_POINTER), None);
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("could not be saved to a file"), "{context}");
    world.verify_and_replay(SESSION);
}

#[test]
fn the_result_of_a_file_read_is_not_changed() {
    let world = CliWorld::new(SHORT_PAGES);
    let path = world.workspace().join("a");
    let file = json!({"filePath": path, "content": numbered_lines(1000), "numLines": 1000, "startLine": 1, "totalLines": 1000});
    assert_eq!(
        answer_to_result(&world, "Read", &json!({"type": "text", "file": file})),
        Value::Null
    );
}
