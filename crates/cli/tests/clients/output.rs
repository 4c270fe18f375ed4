//! Tests of tool outputs that are too long for a context, as the model sees them.

use jackline_model::scripted::{ModelScript, ScriptStep};
use serde_json::json;

use crate::world::{ClientWorld, bash, describe_outcome};

/// A command that prints more than 300 KB with known first and last lines.
const LONG_OUTPUT_COMMAND: &str = "seq 1 60000";

/// Returns the file that the note names.
fn stored_file(text: &str) -> &str {
    let (_, rest) =
        text.split_once("the whole output is stored in `").unwrap_or_else(|| panic!("{text}"));
    rest.split_once('`').unwrap().0
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_model_sees_both_ends_of_a_long_output_and_can_read_the_rest() {
    let world = ClientWorld::new("mode: enforce\n");
    let seen = world.play(ModelScript::new([bash(LONG_OUTPUT_COMMAND)]));
    let results = seen.tool_results(None);
    let text = &results.first().unwrap().text;
    assert!(
        text.starts_with("1\n2\n3\n") && text.contains("\n59999\n60000"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(text.contains("of 348894 bytes are not shown") && text.len() < 31_000, "{text}");
    assert!(!text.contains("persisted-output"), "{text}");
    let file = stored_file(text).to_owned();
    let read = ScriptStep::call("Read", json!({ "file_path": file, "offset": 30000, "limit": 2 }));
    let seen = world.resume_and_play("go on", ModelScript::new([read]));
    assert!(seen.showed_model("30001"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_output_that_the_guard_stored_can_be_read_too() {
    let world = ClientWorld::new("io: { output: { max_bytes: 4096 } }\n");
    world.scratch.write("much.txt", &"a needle in a haystack\n".repeat(5000)).unwrap();
    let grep = json!({ "pattern": "needle", "output_mode": "content", "head_limit": 0 });
    let seen = world.play(ModelScript::new([bash("seq 1 4000"), ScriptStep::call("Grep", grep)]));
    let results = seen.tool_results(None);
    assert_eq!(results.len(), 2, "{}", describe_outcome(&seen));
    for result in &results {
        assert!(result.text.len() < 4096 + 500, "{}", result.text);
    }
    let texts: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("\n3999\n4000")), "{}", describe_outcome(&seen));
    let file = stored_file(texts.iter().find(|text| text.contains("\n4000")).unwrap()).to_owned();
    let read = ScriptStep::call("Read", json!({ "file_path": file, "offset": 2000, "limit": 2 }));
    let seen = world.resume_and_play("go on", ModelScript::new([read]));
    assert!(seen.showed_model("2001"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn observe_mode_does_not_change_what_the_model_sees() {
    let definition = "mode: observe\nio: { output: { max_bytes: 4096 } }\n";
    let world = ClientWorld::new(definition);
    let seen = world.play(ModelScript::new([bash("seq 1 4000; pwd"), bash(LONG_OUTPUT_COMMAND)]));
    let results = seen.tool_results(None);
    let first = &results.first().unwrap().text;
    assert!(first.contains("\n2000\n2001\n"), "{first}");
    assert!(first.contains(world.scratch.work().to_str().unwrap()), "{first}");
    // The client itself limits this output.
    assert!(
        results.get(1).unwrap().text.contains("persisted-output"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(!seen.showed_model("jackline:"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn paths_in_the_workspace_are_relative_for_the_model() {
    let world = ClientWorld::new("mode: enforce\n");
    let seen = world.play(ModelScript::new([bash("echo \"$PWD/src/a.rs:1: no\"")]));
    let results = seen.tool_results(None);
    assert!(
        results.first().unwrap().text.starts_with("src/a.rs:1: no"),
        "{}",
        describe_outcome(&seen)
    );
    world.verify_and_replay();
}
