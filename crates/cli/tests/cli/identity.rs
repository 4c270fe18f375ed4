//! `jackline identity`: what an agent is made of, and who lets it work.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Run, World};

const DEFINITION: &str = "version: 1\nname: acme/coder\n";

fn event(session: &str, rest: &str) -> String {
    format!(r#"{{"v":1,"session":"{session}",{rest}}}"#)
}

/// A session of an agent with a model, and what its first call is answered.
fn session(world: &World, name: &str, model: &str) -> String {
    let started =
        format!(r#""event":"session_started","model":"{model}","tools_hash":"sha256:aa""#);
    let call = r#""event":"tool_proposed","call":"a","tool":"Bash","args":{"command":"ls"}"#;
    world.stdio(&[event(name, &started), event(name, call)]).answers().pop().unwrap()
}

fn show(world: &World, name: &str) -> Value {
    let run = world.jackline(&["identity", "show", name, "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

fn approve(world: &World, name: &str) -> Run {
    world.jackline(&["identity", "approve", name, "--by", "dana", "--why", "looked at"])
}

#[test]
fn a_checksum_is_told_with_what_is_unknown_of_it() {
    let world = World::new(DEFINITION);
    assert_eq!(session(&world, "one", "m1"), "allow");
    let told = show(&world, "one");
    assert_eq!(
        told["parts"],
        json!({"prompt": null, "tools": "sha256:aa", "model": "m1", "parameters": null})
    );
    assert_eq!(told["unknown"], json!(["prompt", "parameters"]));
    assert_eq!(
        (&told["demanded"], &told["approved"], &told["role"]),
        (&false.into(), &false.into(), &Value::Null)
    );
    session(&world, "two", "m1");
    session(&world, "three", "m2");
    assert_eq!(show(&world, "two")["checksum"], told["checksum"]);
    assert_ne!(show(&world, "three")["checksum"], told["checksum"]);
    // Who may work is no part of what the agent is; everything else of the definition is.
    let with = |more: &str| {
        fs::write(world.work().join("jackline.yaml"), format!("{DEFINITION}{more}")).unwrap();
    };
    with("identity: {roles: [developer]}\n");
    session(&world, "four", "m1");
    assert_eq!(show(&world, "four")["checksum"], told["checksum"]);
    with("limits: {steps: 9}\n");
    session(&world, "five", "m1");
    assert_ne!(show(&world, "five")["checksum"], told["checksum"]);
    let run = world.jackline(&["identity", "show", "one"]);
    assert!(run.stdout.contains("none is demanded"), "{run:?}");
}

#[test]
fn a_person_approves_and_takes_it_back() {
    let world = World::new(DEFINITION);
    session(&world, "one", "m1");
    let run = approve(&world, "one");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(session(&world, "other", "m2"), "deny");
    assert_eq!(session(&world, "again", "m1"), "allow");
    let told = show(&world, "other");
    assert_eq!((&told["demanded"], &told["approved"]), (&true.into(), &false.into()));
    let listed = world.jackline(&["identity", "list", "--json"]);
    let pin: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&pin["definition"], &pin["by"], &pin["why"]),
        (&"acme/coder".into(), &"dana".into(), &"looked at".into())
    );
    let checksum = pin["checksum"].as_str().unwrap();
    assert_eq!(world.jackline(&["identity", "revoke", "abc"]).code, Some(2));
    assert_eq!(world.jackline(&["identity", "revoke", "00000000"]).code, Some(2));
    let run = world.jackline(&["identity", "revoke", &checksum[..10]]);
    assert_eq!(run.code, Some(0), "{run:?}");
    // With the last approval goes the demand.
    assert_eq!(session(&world, "third", "m2"), "allow");
    let log = fs::read_to_string(world.work().join(".jackline/safety_log.json")).unwrap();
    assert!(log.contains("IDENTITY_MISMATCH"), "{log}");
}

#[test]
fn an_approval_is_bound_to_its_workflow() {
    let world =
        World::new(&format!("{DEFINITION}identity: {{roles: [developer], workflow: nightly}}\n"));
    let work = |name: &str| {
        let started = r#""event":"session_started","role":"developer""#;
        let call = r#""event":"tool_proposed","call":"a","tool":"Bash","args":{"command":"ls"}"#;
        world.stdio(&[event(name, started), event(name, call)]).answers().pop().unwrap()
    };
    assert_eq!(work("one"), "allow");
    assert_eq!(approve(&world, "one").code, Some(0));
    assert_eq!(work("two"), "allow");
    fs::write(
        world.work().join("jackline.yaml"),
        format!("{DEFINITION}identity: {{roles: [developer], workflow: release}}\n"),
    )
    .unwrap();
    // The same agent, approved for something else.
    assert_eq!(show(&world, "two")["approved"], true);
    assert_eq!(work("three"), "deny");
}

#[test]
fn approvals_that_nobody_can_read_shut_the_gate() {
    let world = World::new(DEFINITION);
    session(&world, "one", "m1");
    fs::write(world.home().join("approvals"), "{\n").unwrap();
    assert_eq!(session(&world, "two", "m1"), "deny");
    let run = world.jackline(&["identity", "show", "two"]);
    assert!(run.stdout.contains("can't be read"), "{run:?}");
    // An approval by a person makes it whole again.
    assert_eq!(approve(&world, "one").code, Some(0));
    assert_eq!(session(&world, "three", "m1"), "allow");
}

#[test]
fn an_attestation_names_the_agent() {
    let world = World::new(DEFINITION);
    session(&world, "one", "m1");
    assert_eq!(world.jackline(&["attest", "--new-key"]).code, Some(0));
    let out = world.root().join("one.att");
    let out = out.to_str().unwrap();
    assert_eq!(world.jackline(&["attest", "one", "--out", out]).code, Some(0));
    let run = world.jackline(&["verify", "--attestation", out, "--json"]);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &told["holds"]), (Some(0), &true.into()), "{run:?}");
    let agent = &told["predicate"]["agent"];
    assert_eq!(agent["checksum"], show(&world, "one")["checksum"]);
    assert_eq!(agent["unknown"], json!(["prompt", "parameters"]));
}
