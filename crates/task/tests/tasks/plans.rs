//! Plans: parsed, rehearsed as a whole, and run as a transaction.

use std::fs;

use jackline_task::{ArtifactKind, Task};
use serde_json::json;

use crate::world::{TaskWorld, task};

fn plans(plans: &[&str]) -> Task {
    Task { artifact: ArtifactKind::Plan, ..task(plans) }
}

const WRITES: &str = r#"{"action_type": "SYNTHESIZE", "tool_calls": [
  {"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}},
  {"name": "list_dir", "arguments": {}}]}"#;

#[test]
fn a_plan_runs_step_by_step() {
    let world = TaskWorld::new("");
    let done = world.run(&plans(&[&format!("Here:\n```json\n{WRITES}\n```")]));
    let value = done.value().unwrap_or_else(|| panic!("{:?}", done.report.internal));
    assert_eq!(value[0]["created"], true);
    assert_eq!(value[1]["entries"][0]["name"], "a.txt");
}

#[test]
fn an_invalid_plan_is_refused_with_all_violations() {
    let world = TaskWorld::new("");
    let wrong = r#"{"action_type": "DANCE", "tool_calls": [{"name": 7}]}"#;
    let done = world.run(&plans(&[wrong, WRITES]));
    assert!(done.report.internal.is_ok());
    assert!(done.violations().iter().all(|it| it == "plan_invalid"));
    assert!(done.violations().len() >= 2, "{:?}", done.violations());
    let unknown = r#"{"action_type": "STOP", "tool_calls": [{"name": "fly", "arguments": {}}]}"#;
    let done = world.run(&plans(&[unknown, WRITES]));
    assert_eq!(done.violations(), ["unknown_tool"]);
}

#[test]
fn arguments_that_a_tool_does_not_accept_are_reported_before_the_first_step_runs() {
    let world = TaskWorld::new("");
    let bad = r#"{"action_type": "SYNTHESIZE", "tool_calls": [
      {"name": "write_file", "arguments": {"path": "one", "content": "1"}},
      {"name": "write_file", "arguments": {"pth": "a", "content": 5}}]}"#;
    let done = world.run(&plans(&[bad, WRITES]));
    assert!(done.report.internal.is_ok(), "{:?}", done.report.internal);
    assert!(done.violations().iter().all(|it| it == "plan_invalid"), "{:?}", done.violations());
    let lanes = done.report.trace.lanes;
    assert_eq!((lanes.guardrail.used, lanes.execution.used), (1, 0));
    let failures = &done.report.trace.attempt_failures;
    assert!(failures.iter().all(|it| it.error_message.starts_with("step 2: ")), "{failures:?}");
    // Only the steps of the second plan ran.
    let events = world.events(&done.report.session);
    assert_eq!(events.iter().filter(|it| *it == "tool_proposed").count(), 2);
    // A number in quotes is accepted, as when the step runs.
    let quoted = r#"{"action_type": "SEARCH", "tool_calls": [
      {"name": "list_dir", "arguments": {"path": null, "offset": "1"}}]}"#;
    let done = TaskWorld::new("").run(&plans(&[quoted]));
    assert!(done.report.internal.is_ok(), "{:?}", done.report.internal);
}

#[test]
fn a_step_that_would_be_denied_later_is_reported_before_the_first_one_runs() {
    let definition = "policies: [ sequential_dependency: { write_file: [list_dir] } ]\n";
    let world = TaskWorld::new(definition);
    let step =
        |name: &str, arguments: &str| format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    let plan = |steps: &[String]| {
        format!(r#"{{"action_type":"SYNTHESIZE","tool_calls":[{}]}}"#, steps.join(","))
    };
    fs::write(world.work().join("b.txt"), "b").unwrap();
    let (list, read) = (step("list_dir", "{}"), step("read_file", r#"{"path":"b.txt"}"#));
    let write = step("write_file", r#"{"path":"a.txt","content":"x"}"#);
    let bad = plan(&[read.clone(), write.clone()]);
    let good = plan(&[list, read, write]);
    let done = world.run(&plans(&[&bad, &good]));
    assert!(done.report.internal.is_ok(), "{:?}", done.report.internal);
    let failure = &done.report.trace.attempt_failures[0];
    assert!(failure.error_message.starts_with("step 2: "), "{failure:?}");
    // The reads of the refused plan never ran. The good plan proposed list, read and write.
    let events = world.events(&done.report.session);
    assert_eq!(events.iter().filter(|it| *it == "tool_proposed").count(), 3);
}

#[test]
fn a_plan_that_fails_is_undone() {
    let world = TaskWorld::new("");
    let fails = r#"{"action_type": "SYNTHESIZE", "tool_calls": [
      {"name": "write_file", "arguments": {"path": "left.txt", "content": "x"}},
      {"name": "read_file", "arguments": {"path": "missing.txt"}}]}"#;
    let done = world.run(&plans(&[fails, WRITES]));
    assert!(done.report.internal.is_ok());
    assert_eq!(world.files().keys().collect::<Vec<_>>(), ["a.txt"]);
    assert_eq!(
        done.value().unwrap()[1]["entries"],
        json!([{ "name": "a.txt", "kind": "file", "size": 1 }])
    );
}
