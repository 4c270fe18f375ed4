//! Tests of `jackline stdio` with results that are too long to be shown at once.

use std::fs;

use serde_json::{Value, json};

use crate::support::CliWorld;

/// Reports a call and its result, and returns the verdict on the result.
fn verdict_on_result(world: &CliWorld, tool: &str, args: &Value, result: &str) -> Value {
    let proposed =
        json!({"session": "s", "event": "tool_proposed", "call": "c", "tool": tool, "args": args});
    let finished = json!({"session": "s", "event": "tool_finished", "call": "c", "status": "ok", "result": result});
    let run = world.stdio(&[proposed.to_string(), finished.to_string()]);
    run.json_lines().pop().unwrap()
}

fn lines(count: usize) -> String {
    (1..=count).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat()
}

#[test]
fn a_read_of_900_lines_is_shown_as_a_page_of_500() {
    let world = CliWorld::new("mode: enforce\n");
    let text = lines(900);
    let verdict = verdict_on_result(&world, "read_file", &json!({"path": "a.txt"}), &text);
    let page = &verdict["page"];
    let shown = usize::try_from(page["shown"].as_u64().unwrap()).unwrap();
    assert!(text.get(..shown).unwrap().ends_with("line 500\n"));
    let numbers = ["lines_shown", "lines_remaining", "next_offset"].map(|field| &page[field]);
    assert_eq!(numbers, [&json!(500), &json!(400), &json!(501)]);
    assert_eq!((&page["has_more"], &page["enforced"]), (&json!(true), &json!(true)));
    assert_eq!(verdict["decision"], "rewrite");
    assert_eq!(fs::read_to_string(page["file"].as_str().unwrap()).unwrap(), text);
    world.verify_and_replay("s");
}

#[test]
fn the_next_page_continues_with_the_lines_of_the_file() {
    let world = CliWorld::new("mode: enforce\n");
    let args = json!({"path": "a.txt", "offset": 501});
    let verdict = verdict_on_result(&world, "read_file", &args, &lines(600));
    assert_eq!(verdict["page"]["next_offset"], 1001);
}

#[test]
fn an_output_of_200_kb_is_shown_as_a_page_of_64_kib() {
    let world = CliWorld::new("mode: enforce\n");
    let text = "x".repeat(200_000);
    let verdict = verdict_on_result(&world, "Bash", &json!({"command": "make"}), &text);
    let page = &verdict["page"];
    assert_eq!((&page["bytes"], &page["shown"]), (&json!(200_000), &json!(65_536)));
    assert_eq!((&page["has_more"], &page["lines_remaining"]), (&json!(true), &json!(0)));
    assert_eq!((&page["next_offset"], &page["next_line_offset"]), (&json!(1), &json!(65_536)));
    world.verify_and_replay("s");
}

#[test]
fn observe_mode_records_the_page_and_stores_nothing() {
    let world = CliWorld::new("mode: observe\n");
    let verdict = verdict_on_result(&world, "read_file", &json!({"path": "a.txt"}), &lines(900));
    assert_eq!(verdict["enforced"], false);
    assert_eq!((&verdict["page"]["enforced"], verdict["page"].get("file")), (&json!(false), None));
    assert!(!world.session_directory("s").join("spill").exists());
}
