//! Outputs that are too long for a context, as the model sees them.

use jackline_model::scripted::{Script, Step};
use serde_json::json;

use crate::world::{World, bash, story};

/// More than 300 KB, the first and the last line of it known.
const LONG: &str = "seq 1 60000";

/// The file that a note names.
fn named(text: &str) -> &str {
    let (_, rest) = text.split_once("all of it lies in `").unwrap_or_else(|| panic!("{text}"));
    rest.split_once('`').unwrap().0
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn of_a_command_that_prints_much_the_model_sees_both_ends_and_can_read_on() {
    let world = World::new("mode: enforce\n");
    let seen = world.play(Script::new([bash(LONG)]));
    let results = seen.results(None);
    let text = &results.first().unwrap().text;
    assert!(text.starts_with("1\n2\n3\n") && text.contains("\n59999\n60000"), "{}", story(&seen));
    assert!(text.contains("of 348894 bytes are not shown") && text.len() < 31_000, "{text}");
    assert!(!text.contains("persisted-output"), "{text}");
    let file = named(text).to_owned();
    let read = Step::call("Read", json!({ "file_path": file, "offset": 30000, "limit": 2 }));
    let seen = world.play_on("go on", Script::new([read]));
    assert!(seen.showed("30001"), "{}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn what_the_guard_has_put_aside_can_be_read_as_well() {
    let world = World::new("io: { output: { max_bytes: 4096 } }\n");
    world.scratch.write("much.txt", &"a needle in a haystack\n".repeat(5000)).unwrap();
    let grep = json!({ "pattern": "needle", "output_mode": "content", "head_limit": 0 });
    let seen = world.play(Script::new([bash("seq 1 4000"), Step::call("Grep", grep)]));
    let results = seen.results(None);
    assert_eq!(results.len(), 2, "{}", story(&seen));
    for result in &results {
        assert!(result.text.len() < 4096 + 500, "{}", result.text);
    }
    let texts: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("\n3999\n4000")), "{}", story(&seen));
    let file = named(texts.iter().find(|text| text.contains("\n4000")).unwrap()).to_owned();
    let read = Step::call("Read", json!({ "file_path": file, "offset": 2000, "limit": 2 }));
    let seen = world.play_on("go on", Script::new([read]));
    assert!(seen.showed("2001"), "{}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn what_only_observes_changes_nothing_that_the_model_sees() {
    let definition = "mode: observe\nio: { output: { max_bytes: 4096 } }\n";
    let world = World::new(definition);
    let seen = world.play(Script::new([bash("seq 1 4000; pwd"), bash(LONG)]));
    let results = seen.results(None);
    let first = &results.first().unwrap().text;
    assert!(first.contains("\n2000\n2001\n"), "{first}");
    assert!(first.contains(world.scratch.work().to_str().unwrap()), "{first}");
    // The client bounds it by itself.
    assert!(results.get(1).unwrap().text.contains("persisted-output"), "{}", story(&seen));
    assert!(!seen.showed("jackline:"), "{}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_model_sees_paths_of_the_workspace_relative_to_it() {
    let world = World::new("mode: enforce\n");
    let seen = world.play(Script::new([bash("echo \"$PWD/src/a.rs:1: no\"")]));
    let results = seen.results(None);
    assert!(results.first().unwrap().text.starts_with("src/a.rs:1: no"), "{}", story(&seen));
    world.prove();
}
