//! Tests of control files with the real client: the client stops at the next gate.

use jackline_clients::claude::CLIENT;
use jackline_model::scripted::ModelScript;
use serde_json::{Value, json};

use crate::world::{ClientWorld, JACKLINE, bash, describe_outcome, guard_hooks, was_halted};

/// Control files work in every mode.
const DEFINITION: &str = "mode: observe\n";

/// A person creates the control file while the second call is proposed.
fn create_file_during_call(world: &ClientWorld, marker: &str) {
    let first = format!("mkdir -p .jackline; touch .jackline/{marker}");
    let guard = world.wrapper_hooks("touch\\ two", &first);
    let seen = world.play_guarded(&guard, script(["one", "two", "three"]));
    assert!(
        world.scratch.has_path("one") && !world.scratch.has_path("two"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(
        was_halted(&seen) && seen.requests_of(None).count() == 2,
        "{}",
        describe_outcome(&seen)
    );
    assert_eq!(
        world.stop_code(),
        json!({ "code": "HUMAN_REQUESTED" }),
        "{}",
        describe_outcome(&seen)
    );
    // Restores the normal hooks, which create no control file.
    world.scratch.install(CLIENT.installation, &guard_hooks(JACKLINE)).unwrap();
}

fn script<const N: usize>(names: [&str; N]) -> ModelScript {
    ModelScript::new(names.map(|name| bash(&format!("touch {name}"))))
}

fn remove(world: &ClientWorld, marker: &str) {
    std::fs::remove_file(world.scratch.work().join(".jackline").join(marker)).unwrap();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_file_ends_the_run_at_the_next_gate() {
    let world = ClientWorld::new(DEFINITION);
    create_file_during_call(&world, "STOP");
    // The session stays stopped until a person removes the file and resets the session.
    remove(&world, "STOP");
    let seen = world.resume_and_play("go on", script(["two"]));
    assert!(
        seen.requests.is_empty() && !world.scratch.has_path("two"),
        "{}",
        describe_outcome(&seen)
    );
    world.run_as_person(&["reset"]);
    let seen = world.resume_and_play("go on", script(["two"]));
    assert!(world.scratch.has_path("two"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_file_prevents_the_start_of_a_run() {
    let world = ClientWorld::new(DEFINITION);
    world.scratch.write(".jackline/STOP", "").unwrap();
    let seen = world.play(script(["one"]));
    assert!(
        seen.requests.is_empty() && !world.scratch.has_path("one"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(seen.showed_person("HUMAN_REQUESTED"), "{}", describe_outcome(&seen));
    // The message at the start of the client names the file.
    let names_file = |line: &Value| line.to_string().contains("`.jackline/STOP` exists");
    assert!(seen.output_lines.iter().any(names_file), "{:#?}", seen.output_lines);
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_pause_file_pauses_the_run_while_it_exists() {
    let world = ClientWorld::new(DEFINITION);
    create_file_during_call(&world, "PAUSE");
    // A message of a person does not resume while the file exists.
    let seen = world.resume_and_play("go on", script(["two", "three"]));
    assert!(was_halted(&seen) && !world.scratch.has_path("two"), "{}", describe_outcome(&seen));
    assert!(seen.showed_person("`.jackline/PAUSE` exists"), "{}", describe_outcome(&seen));
    remove(&world, "PAUSE");
    let seen = world.resume_and_play("go on", script(["two", "three"]));
    assert!(
        world.scratch.has_path("two") && world.scratch.has_path("three"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(!was_halted(&seen), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}
