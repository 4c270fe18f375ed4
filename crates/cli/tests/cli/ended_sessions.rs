//! Tests of what the commands for a person say about a session that has ended, as every session of
//! a client without a terminal does.

use std::fs;

use serde_json::{Value, json};

use crate::hook_support::{
    RULES, SESSION, bash_proposed, hook_answer, payload, permission_decision, stop_payload,
};
use crate::support::CliWorld;

/// Plays a session of Claude Code whose call needs an approval, up to its end.
fn end_asking_session(world: &CliWorld) {
    hook_answer(world, &payload(world, "SessionStart", json!({"source": "startup"})));
    hook_answer(world, &payload(world, "UserPromptSubmit", json!({"prompt": "ship it"})));
    let asked = hook_answer(world, &bash_proposed(world, "c1", "make deploy"));
    assert_eq!(permission_decision(&asked), Some("deny"));
    hook_answer(world, &stop_payload(world, false));
    hook_answer(world, &payload(world, "SessionEnd", json!({"reason": "other"})));
}

fn pending_code(world: &CliWorld) -> String {
    let listed = world.jackline(&["pending", "--all", "--json"]).json_lines();
    listed[0]["code"].as_str().unwrap().to_owned()
}

#[test]
fn pending_says_one_true_thing_about_an_ended_session() {
    let world = CliWorld::new(RULES);
    let nothing = world.jackline(&["pending"]);
    assert_eq!(nothing.stdout, "nothing waits for a person\n");
    end_asking_session(&world);
    let shown = world.jackline(&["pending"]);
    assert_eq!(
        shown.stdout,
        "no running session in this directory waits for you; 1 open question of an ended session: \
         `jackline pending --all`\n"
    );
}

#[test]
fn an_answer_names_only_the_command_of_the_client() {
    for answer in ["allow", "refuse"] {
        let world = CliWorld::new(RULES);
        end_asking_session(&world);
        let run = world.jackline(&[answer, &pending_code(&world)]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let expected =
            format!("session {SESSION} has ended; continue it with `claude --resume {SESSION}`\n");
        assert!(run.stdout.contains(&expected), "{run:?}");
        assert!(!run.stdout.contains("mcp"), "{run:?}");
        world.verify_and_replay(SESSION);
    }
    // A program of the user has no command that we know.
    let world = CliWorld::new(RULES);
    let events = [
        json!({"event": "session_started", "session": "s"}),
        json!({"event": "tool_proposed", "session": "s", "call": "c1", "tool": "Bash",
            "args": {"command": "make deploy"}}),
        json!({"event": "session_ended", "session": "s"}),
    ];
    world.stdio(&events.map(|event| event.to_string()));
    let run = world.jackline(&["allow", &pending_code(&world)]);
    let expected = "session s has ended; continue it with the program that started it\n";
    assert!(run.stdout.contains(expected), "{run:?}");
}

#[test]
fn a_reload_of_an_ended_session_needs_no_reset() {
    let world = CliWorld::new(RULES);
    end_asking_session(&world);
    let continued = format!("continue it with `claude --resume {SESSION}`\n");
    let same = world.jackline(&["reload", SESSION]);
    assert_eq!(same.code, Some(1), "{same:?}");
    assert!(same.stderr.contains("already uses the current definition"), "{same:?}");
    assert!(same.stderr.ends_with(&continued), "{same:?}");

    let relaxed = RULES.replace("ask: A person", "warn: A person").replace("{ ask:", "{ warn:");
    fs::write(world.workspace().join("jackline.yaml"), relaxed).unwrap();
    let reload = world.jackline(&["reload", SESSION]);
    assert_eq!(reload.code, Some(0), "{reload:?}");
    assert!(reload.stdout.contains("it uses the current definition"), "{reload:?}");
    assert!(reload.stdout.ends_with(&continued), "{reload:?}");
    for run in [&same, &reload] {
        assert!(!format!("{}{}", run.stdout, run.stderr).contains("reset"), "{run:?}");
    }
    // The advice is enough: the continued session works under the new definition.
    hook_answer(&world, &payload(&world, "SessionStart", json!({"source": "resume"})));
    hook_answer(&world, &payload(&world, "UserPromptSubmit", json!({"prompt": "go on"})));
    let again = hook_answer(&world, &bash_proposed(&world, "c2", "make deploy"));
    assert_ne!(permission_decision(&again), Some("deny"), "{again}");
    assert_ne!(again, Value::Null, "the rule warns now");
    world.verify_and_replay(SESSION);
}
