//! Tests of the answer that a person gives in the dialog of Claude Code. The client reports no event
//! for a No: the next event shows that the call did not run.

use serde_json::{Value, json};

use crate::hook_support::{
    RULES, SESSION, bash_finished, bash_proposed, hook_command, parse_answer, payload,
    permission_decision, stop_payload,
};
use crate::support::{CliOutput, CliWorld, run_with_input};

const REFUSED_TEXT: &str = "The user doesn't want to proceed with this tool use. The tool use was \
    rejected (eg. if it was a file edit, the new_string was NOT written to the file).";

/// Runs the hook of a client at which a person sits.
fn attended_hook(world: &CliWorld, payload: &Value) -> Value {
    let mut command = hook_command(world);
    command.env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    parse_answer(&run_with_input(&mut command, payload.to_string().as_bytes()))
}

fn propose(world: &CliWorld, call: &str) -> Option<String> {
    let answer = attended_hook(world, &bash_proposed(world, call, "make deploy"));
    permission_decision(&answer).map(ToOwned::to_owned)
}

fn prompt(world: &CliWorld, text: &str) {
    attended_hook(world, &payload(world, "UserPromptSubmit", json!({ "prompt": text })));
}

/// The batch that ends after a No with a comment: the turn continues.
fn batch_with_refusal(world: &CliWorld, call: &str) -> Value {
    let call = json!({"tool_name": "Bash", "tool_use_id": call, "tool_response": REFUSED_TEXT});
    payload(world, "PostToolBatch", json!({ "tool_calls": [call] }))
}

fn questions(world: &CliWorld) -> Vec<Value> {
    world.jackline(&["pending", "--json"]).json_lines()
}

fn allow_first(world: &CliWorld) -> CliOutput {
    let code = questions(world)[0]["code"].as_str().unwrap().to_owned();
    let run = world.jackline(&["allow", &code, "--for", "10m"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

#[test]
fn a_no_ends_the_question_and_a_grant_that_was_given_before() {
    let world = CliWorld::new(RULES);
    assert_eq!(propose(&world, "c1").as_deref(), Some("ask"));
    assert_eq!(questions(&world)[0]["waiting"]["in_client"], true);
    let shown = world.jackline(&["pending"]).stdout;
    assert!(shown.contains("the client asks you there, too"), "{shown}");
    let allowed = allow_first(&world).stdout;
    assert!(allowed.contains("the client still asks about this call"), "{allowed}");
    prompt(&world, "not now");
    prompt(&world, "go on");
    assert_eq!(propose(&world, "c2").as_deref(), Some("ask"), "the No counts");
    world.verify_and_replay(SESSION);
}

#[test]
fn a_no_ends_a_grant_that_was_given_after_it() {
    let world = CliWorld::new(RULES);
    assert_eq!(propose(&world, "c1").as_deref(), Some("ask"));
    // The client tells nothing about the No, so the grant comes before its next event.
    allow_first(&world);
    attended_hook(&world, &stop_payload(&world, false));
    assert_eq!(propose(&world, "c2").as_deref(), Some("ask"));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_no_without_a_grant_leaves_no_question() {
    let world = CliWorld::new(RULES);
    assert_eq!(propose(&world, "c1").as_deref(), Some("ask"));
    assert_eq!(questions(&world).len(), 1);
    prompt(&world, "not now");
    assert_eq!(questions(&world), [] as [Value; 0]);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_no_with_a_comment_counts_before_the_agent_tries_again() {
    let world = CliWorld::new(RULES);
    assert_eq!(propose(&world, "c1").as_deref(), Some("ask"));
    allow_first(&world);
    assert_eq!(attended_hook(&world, &batch_with_refusal(&world, "c1")), Value::Null);
    assert_eq!(questions(&world), [] as [Value; 0]);
    assert_eq!(propose(&world, "c2").as_deref(), Some("ask"));
    let records = world.records(SESSION).len();
    attended_hook(&world, &batch_with_refusal(&world, "c1"));
    assert_eq!(world.records(SESSION).len(), records, "a No is recorded once");
    world.verify_and_replay(SESSION);
}

#[test]
fn a_yes_uses_up_the_question_and_parallel_calls_leave_it_open() {
    let world = CliWorld::new(RULES);
    assert_eq!(propose(&world, "c1").as_deref(), Some("ask"));
    attended_hook(&world, &bash_proposed(&world, "c2", "ls"));
    attended_hook(&world, &bash_finished(&world, "c2", "ls"));
    assert_eq!(questions(&world).len(), 1, "another call answers nothing");
    attended_hook(&world, &bash_finished(&world, "c1", "make deploy"));
    assert_eq!(questions(&world), [] as [Value; 0]);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_terminal_that_closes_during_a_question_ends_it() {
    let world = CliWorld::new(RULES);
    assert_eq!(propose(&world, "c1").as_deref(), Some("ask"));
    allow_first(&world);
    attended_hook(&world, &payload(&world, "SessionEnd", json!({ "reason": "other" })));
    assert_eq!(world.jackline(&["pending", "--all", "--json"]).json_lines(), [] as [Value; 0]);
    attended_hook(&world, &payload(&world, "SessionStart", json!({ "source": "resume" })));
    assert_eq!(propose(&world, "c2").as_deref(), Some("ask"));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_code_typed_after_a_no_grants_nothing_and_says_why() {
    let world = CliWorld::new(RULES);
    assert_eq!(propose(&world, "c1").as_deref(), Some("ask"));
    let code = questions(&world)[0]["code"].as_str().unwrap().to_owned();
    let typed = payload(&world, "UserPromptSubmit", json!({ "prompt": code }));
    let answer = attended_hook(&world, &typed);
    let message = answer["systemMessage"].as_str().unwrap();
    assert!(message.contains("make the call again, and answer Yes"), "{message}");
    assert_eq!(propose(&world, "c2").as_deref(), Some("ask"));
    world.verify_and_replay(SESSION);
}
