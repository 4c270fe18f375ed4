//! What a person says where they talk to the agent, and what they are shown there.

use serde_json::{Value, json};

use crate::hook_support::{RULES, SESSION, bash, hear, payload, permission};
use crate::support::World;

fn prompt(world: &World, text: &str) -> Value {
    hear(world, &payload(world, "UserPromptSubmit", json!({ "prompt": text })))
}

/// The code that the person is shown.
fn code(said: &Value) -> String {
    let message = said["systemMessage"].as_str().unwrap();
    let rest = message.split_once("`jackline allow ").unwrap().1;
    rest.split('`').next().unwrap().to_owned()
}

#[test]
fn a_code_typed_as_a_prompt_lets_exactly_this_call_pass_once() {
    let world = World::new(RULES);
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    assert_eq!(permission(&asked), Some("deny"));
    let said = prompt(&world, &format!(" {}\n", code(&asked).to_uppercase()));
    let told = "A person lets exactly this call pass once: Bash `make deploy`. Make it again.";
    let specific = json!({ "hookEventName": "UserPromptSubmit", "additionalContext": told });
    assert_eq!(said, json!({ "hookSpecificOutput": specific }));
    // Another directory, another line: not this call.
    assert_eq!(permission(&hear(&world, &bash(&world, "c2", "make deploy FORCE=1"))), Some("deny"));
    assert_eq!(hear(&world, &bash(&world, "c3", "make deploy")), Value::Null);
    assert_eq!(permission(&hear(&world, &bash(&world, "c4", "make deploy"))), Some("deny"));
    world.prove(SESSION);
}

#[test]
fn a_code_may_refuse_too() {
    let world = World::new(RULES);
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    let said = prompt(&world, &format!("refuse {}", code(&asked)));
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert_eq!(told, "A person refused exactly this call: Bash `make deploy`. Find another way.");
    let again = hear(&world, &bash(&world, "c2", "make deploy"));
    let reason = again["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("a person refused exactly this call"), "{again}");
    world.prove(SESSION);
}

#[test]
fn what_only_looks_like_a_code_is_a_prompt() {
    let world = World::new(RULES);
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    let code = code(&asked);
    for text in [format!("what is {code}?"), format!("{code} please"), "jl-".to_owned()] {
        assert_eq!(prompt(&world, &text), Value::Null, "{text}");
    }
    let said = prompt(&world, "jl-000000");
    let nothing = "jackline: nothing waits under jl-000000 in this session";
    assert_eq!(said, json!({ "systemMessage": nothing }));
    assert_eq!(permission(&hear(&world, &bash(&world, "c2", "make deploy"))), Some("deny"));
    world.prove(SESSION);
}

#[test]
fn a_desktop_is_told_through_the_clients_terminal() {
    let world = World::new(&format!("notify: {{ desktop: true }}\n{RULES}"));
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    let sequence = asked["terminalSequence"].as_str().unwrap();
    assert!(sequence.starts_with("\u{1b}]9;jackline: "), "{sequence:?}");
    assert!(sequence.ends_with('\u{7}'), "{sequence:?}");
    let inside = &sequence[4..sequence.len() - 1];
    assert!(!inside.contains(char::is_control) && inside.contains("make deploy"), "{sequence:?}");
    // A call that passes tells nobody.
    assert_eq!(hear(&world, &bash(&world, "c2", "make test")), Value::Null);
}
