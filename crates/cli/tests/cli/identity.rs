//! Tests of `jackline identity`: the parts of an agent's identity, and the approvals of people.

use std::fs;

use serde_json::{Value, json};

use crate::hook_support::{
    SESSION, bash_proposed, command_in_hook_environment, hook_answer, payload,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

const DEFINITION: &str = "version: 1\nname: acme/coder\n";

fn event(session: &str, rest: &str) -> String {
    format!(r#"{{"v":1,"session":"{session}",{rest}}}"#)
}

/// Starts a session of an agent with a model, and returns the decision on its first call.
fn run_session(world: &CliWorld, name: &str, model: &str) -> String {
    let started =
        format!(r#""event":"session_started","model":"{model}","tools_hash":"sha256:aa""#);
    let call = r#""event":"tool_proposed","call":"a","tool":"Bash","args":{"command":"ls"}"#;
    world.stdio(&[event(name, &started), event(name, call)]).decisions().pop().unwrap()
}

fn show_identity(world: &CliWorld, name: &str) -> Value {
    let run = world.jackline(&["identity", "show", name, "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

fn approve_identity(world: &CliWorld, name: &str) -> CliOutput {
    world.jackline(&["identity", "approve", name, "--by", "dana", "--why", "looked at"])
}

#[test]
fn an_identity_has_a_checksum_and_names_its_unknown_parts() {
    let world = CliWorld::new(DEFINITION);
    assert_eq!(run_session(&world, "one", "m1"), "allow");
    let identity = show_identity(&world, "one");
    assert_eq!(
        identity["parts"],
        json!({"prompt": null, "tools": "sha256:aa", "model": "m1", "parameters": null})
    );
    assert_eq!(identity["unknown"], json!(["prompt", "parameters"]));
    assert_eq!(
        (&identity["demanded"], &identity["approved"], &identity["role"]),
        (&false.into(), &false.into(), &Value::Null)
    );
    run_session(&world, "two", "m1");
    run_session(&world, "three", "m2");
    assert_eq!(show_identity(&world, "two")["checksum"], identity["checksum"]);
    assert_ne!(show_identity(&world, "three")["checksum"], identity["checksum"]);
    // The allowed roles are not a part of the identity. Everything else in the definition is.
    let write_definition = |more: &str| {
        fs::write(world.workspace().join("jackline.yaml"), format!("{DEFINITION}{more}")).unwrap();
    };
    write_definition("identity: {roles: [developer]}\n");
    run_session(&world, "four", "m1");
    assert_eq!(show_identity(&world, "four")["checksum"], identity["checksum"]);
    write_definition("limits: {steps: 9}\n");
    run_session(&world, "five", "m1");
    assert_ne!(show_identity(&world, "five")["checksum"], identity["checksum"]);
    let run = world.jackline(&["identity", "show", "one"]);
    assert!(run.stdout.contains("not required"), "{run:?}");
}

/// Such an approval is for any agent whose client reports nothing.
#[test]
fn an_agent_without_known_parts_is_approved_only_after_a_confirmation() {
    let world = CliWorld::new(DEFINITION);
    world.stdio(&[event("bare", r#""event":"session_started""#)]);
    let run = world.jackline(&["identity", "approve", "bare"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("this approves every agent that reports none of them"), "{run:?}");
    assert!(run.stderr.contains("pass --yes"), "{run:?}");
    assert!(world.jackline(&["identity", "list", "--json"]).stdout.is_empty());
    let run = world.jackline(&["identity", "approve", "bare", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.starts_with("warning: the client of session `bare` reported"), "{run:?}");
}

#[test]
fn a_person_approves_an_identity_and_revokes_the_approval() {
    let world = CliWorld::new(DEFINITION);
    run_session(&world, "one", "m1");
    let run = approve_identity(&world, "one");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run_session(&world, "other", "m2"), "deny");
    assert_eq!(run_session(&world, "again", "m1"), "allow");
    let identity = show_identity(&world, "other");
    assert_eq!((&identity["demanded"], &identity["approved"]), (&true.into(), &false.into()));
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
    // Without any approval, no approval is required.
    assert_eq!(run_session(&world, "third", "m2"), "allow");
    let log = fs::read_to_string(world.workspace().join(".jackline/safety_log.json")).unwrap();
    assert!(log.contains("IDENTITY_MISMATCH"), "{log}");
}

#[test]
fn an_approval_is_bound_to_its_workflow() {
    let world = CliWorld::new(&format!(
        "{DEFINITION}identity: {{roles: [developer], workflow: nightly}}\n"
    ));
    let work = |name: &str| {
        let started = r#""event":"session_started","model":"m1","role":"developer""#;
        let call = r#""event":"tool_proposed","call":"a","tool":"Bash","args":{"command":"ls"}"#;
        world.stdio(&[event(name, started), event(name, call)]).decisions().pop().unwrap()
    };
    assert_eq!(work("one"), "allow");
    assert_eq!(approve_identity(&world, "one").code, Some(0));
    assert_eq!(work("two"), "allow");
    fs::write(
        world.workspace().join("jackline.yaml"),
        format!("{DEFINITION}identity: {{roles: [developer], workflow: release}}\n"),
    )
    .unwrap();
    // The same agent, approved for another workflow.
    assert_eq!(show_identity(&world, "two")["approved"], true);
    assert_eq!(work("three"), "deny");
}

#[test]
fn unreadable_approvals_deny_every_call() {
    let world = CliWorld::new(DEFINITION);
    run_session(&world, "one", "m1");
    fs::write(world.home().join("approvals"), "{\n").unwrap();
    assert_eq!(run_session(&world, "two", "m1"), "deny");
    let run = world.jackline(&["identity", "show", "two"]);
    assert!(run.stdout.contains("can't be read"), "{run:?}");
    // An approval by a person replaces the unreadable file.
    assert_eq!(approve_identity(&world, "one").code, Some(0));
    assert_eq!(run_session(&world, "three", "m1"), "allow");
}

#[test]
fn an_attestation_names_the_agent() {
    let world = CliWorld::new(DEFINITION);
    run_session(&world, "one", "m1");
    assert_eq!(world.jackline(&["attest", "--new-key"]).code, Some(0));
    let out = world.root().join("one.att");
    let out = out.to_str().unwrap();
    assert_eq!(world.jackline(&["attest", "one", "--out", out]).code, Some(0));
    let run = world.jackline(&["verify", "--attestation", out, "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &report["holds"]), (Some(0), &true.into()), "{run:?}");
    let agent = &report["predicate"]["agent"];
    assert_eq!(agent["checksum"], show_identity(&world, "one")["checksum"]);
    assert_eq!(agent["unknown"], json!(["prompt", "parameters"]));
}

#[test]
fn a_hook_lets_agents_work_under_an_empty_identity() {
    let world = CliWorld::new("version: 1\nidentity: {}\n");
    let started = payload(&world, "SessionStart", json!({"source": "startup"}));
    assert_eq!(hook_answer(&world, &started), Value::Null);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "ls")), Value::Null);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_hook_names_the_role_of_its_agent() {
    let world = CliWorld::new("version: 1\nidentity: { roles: [release] }\n");
    let send = |words: &[&str], payload: &Value| {
        let mut command = command_in_hook_environment(&world, JACKLINE, words);
        run_with_input(&mut command, payload.to_string().as_bytes())
    };
    let started = payload(&world, "SessionStart", json!({"source": "startup"}));
    let proposed = |call: &str| bash_proposed(&world, call, "ls");
    let without_role = ["hook", "claude", "--sealed"];
    send(&without_role, &started);
    let denied = send(&without_role, &proposed("c1"));
    assert!(denied.stdout.contains("`jackline init --role ROLE`"), "{denied:?}");
    // The role applies from the next start of the client on, as the installer writes it.
    let with_role = ["hook", "claude", "--role", "release", "--sealed"];
    send(&with_role, &started);
    let allowed = send(&with_role, &proposed("c2"));
    assert_eq!((allowed.code, allowed.stdout.as_str()), (Some(0), "jackline:1:"), "{allowed:?}");
    assert_eq!(show_identity(&world, SESSION)["role"], "release");
    // Other command lines take the option, too.
    let free = send(&["hook", "--role", "intern", "claude"], &started);
    assert_eq!(free.code, Some(0), "{free:?}");
    assert_eq!(show_identity(&world, SESSION)["role"], "intern");
    world.verify_and_replay(SESSION);
}
