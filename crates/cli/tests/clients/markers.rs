//! A person steers by files alone, and the client stops at the next gate.

use jackline_clients::claude::CLIENT;
use jackline_model::scripted::Script;
use serde_json::{Value, json};

use crate::world::{JACKLINE, World, bash, hooks, story, was_halted};

/// They hold in every mode.
const DEFINITION: &str = "mode: observe\n";

/// A person puts a file there in the moment in which the second call is proposed.
fn meanwhile(world: &World, marker: &str) {
    let first = format!("mkdir -p .jackline; touch .jackline/{marker}");
    let guard = world.wrapped("touch\\ two", &first);
    let seen = world.play_guarded(&guard, script(["one", "two", "three"]));
    assert!(world.scratch.has("one") && !world.scratch.has("two"), "{}", story(&seen));
    assert!(was_halted(&seen) && seen.of(None).count() == 2, "{}", story(&seen));
    assert_eq!(world.stop_code(), json!({ "code": "HUMAN_REQUESTED" }), "{}", story(&seen));
    // The hooks of those who play on put nothing there.
    world.scratch.install(CLIENT.installation, &hooks(JACKLINE)).unwrap();
}

fn script<const N: usize>(names: [&str; N]) -> Script {
    Script::new(names.map(|name| bash(&format!("touch {name}"))))
}

fn remove(world: &World, marker: &str) {
    std::fs::remove_file(world.scratch.work().join(".jackline").join(marker)).unwrap();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_file_ends_the_run_at_the_next_gate() {
    let world = World::new(DEFINITION);
    meanwhile(&world, "STOP");
    // Over is over, until a person has removed it and opened the session.
    remove(&world, "STOP");
    let seen = world.play_on("go on", script(["two"]));
    assert!(seen.requests.is_empty() && !world.scratch.has("two"), "{}", story(&seen));
    world.person(&["reset"]);
    let seen = world.play_on("go on", script(["two"]));
    assert!(world.scratch.has("two"), "{}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_file_keeps_a_run_from_beginning() {
    let world = World::new(DEFINITION);
    world.scratch.write(".jackline/STOP", "").unwrap();
    let seen = world.play(script(["one"]));
    assert!(seen.requests.is_empty() && !world.scratch.has("one"), "{}", story(&seen));
    assert!(seen.told_person("HUMAN_REQUESTED"), "{}", story(&seen));
    // Which file it is was said when the client began.
    let names = |line: &Value| line.to_string().contains("`.jackline/STOP` is there");
    assert!(seen.said.iter().any(names), "{:#?}", seen.said);
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_pause_file_holds_the_run_while_it_is_there() {
    let world = World::new(DEFINITION);
    meanwhile(&world, "PAUSE");
    // No message helps while it is there.
    let seen = world.play_on("go on", script(["two", "three"]));
    assert!(was_halted(&seen) && !world.scratch.has("two"), "{}", story(&seen));
    assert!(seen.told_person("`.jackline/PAUSE` is there"), "{}", story(&seen));
    remove(&world, "PAUSE");
    let seen = world.play_on("go on", script(["two", "three"]));
    assert!(world.scratch.has("two") && world.scratch.has("three"), "{}", story(&seen));
    assert!(!was_halted(&seen), "{}", story(&seen));
    world.prove();
}
