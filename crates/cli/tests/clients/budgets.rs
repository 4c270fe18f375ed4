//! Tests of budgets with the real client: the usage comes from the transcripts of the client.

use jackline_model::scripted::{ModelScript, ScriptStep, ScriptUsage};
use jackline_setup::live::SUBAGENT_PROMPT;
use serde_json::{Value, json};

use crate::world::{
    ClientWorld, bash, describe_outcome, recorded_call, start_subagent, was_halted,
};

/// A call whose message used the given tokens. It ends only when the client has written the usage
/// to its transcript.
fn spending_call(name: &str, input: u64) -> ScriptStep {
    recorded_call(&format!("touch {name}")).with_usage(ScriptUsage {
        input,
        output: 0,
        ..ScriptUsage::default()
    })
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_token_limit_of_a_session_ends_it_with_its_code() {
    let world = ClientWorld::new("limits: { total_tokens: 30000 }\n");
    let seen = world.play(ModelScript::new([
        spending_call("a", 20_000),
        spending_call("b", 10_000),
        bash("touch c"),
    ]));
    assert!(was_halted(&seen), "{}", describe_outcome(&seen));
    assert!(
        world.scratch.has_path("b") && !world.scratch.has_path("c"),
        "{}",
        describe_outcome(&seen)
    );
    let code = json!({ "code": "BUDGET_EXCEEDED", "detail": "total_tokens" });
    assert_eq!(world.stop_code(), code, "{}", describe_outcome(&seen));
    let seen = world.resume_and_play("go on", ModelScript::new([bash("touch c")]));
    assert!(seen.requests.is_empty(), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

/// One million input tokens cost 3 dollars.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_cost_limit_of_a_turn_applies_to_each_turn() {
    let world = ClientWorld::new("limits: { cost_usd: { max: 0.30, per: turn } }\n");
    let seen = world.play(ModelScript::new([
        spending_call("a", 60_000),
        spending_call("b", 40_000),
        bash("touch c"),
    ]));
    assert!(
        world.scratch.has_path("b") && !world.scratch.has_path("c"),
        "{}",
        describe_outcome(&seen)
    );
    let results = seen.tool_results(None);
    let refused = results.last().unwrap();
    assert!(refused.text.contains("0.30 of 0.30 USD of this turn are used"), "{refused:?}");
    let seen = world.resume_and_play("go on", ModelScript::new([spending_call("c", 5_000)]));
    assert!(world.scratch.has_path("c"), "{}", describe_outcome(&seen));
    // Answers that the client writes after the end of the turn still count for that turn: the
    // answer with the refused call, and the last answer.
    let used = |pointer: &str| world.status().pointer(pointer).and_then(Value::as_u64).unwrap();
    let (session, turn) = (used("/summary/usage/input"), used("/summary/turn/usage/input"));
    assert_eq!(session - turn, 60_000 + 40_000 + 2 * 1_000, "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn calls_of_one_tool_are_limited_and_calls_of_others_are_not() {
    let world = ClientWorld::new("limits: { tool_calls: { Write: 1 } }\n");
    let write = |name: &str| {
        let path = world.scratch.work().join(name);
        ScriptStep::call("Write", json!({ "file_path": path, "content": "x" }))
    };
    let seen = world.play(ModelScript::new([write("a"), write("b"), bash("touch c")]));
    assert!(
        world.scratch.has_path("a") && !world.scratch.has_path("b"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(world.scratch.has_path("c") && !was_halted(&seen), "{}", describe_outcome(&seen));
    let results = seen.tool_results(None);
    let refused = results.get(1).unwrap();
    assert!(refused.text.contains("1 of 1 calls of `Write`"), "{refused:?}");
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_usage_of_a_sub_agent_can_end_the_session() {
    let world = ClientWorld::new("limits: { total_tokens: 30000 }\n");
    // Waits for the stop code in the journal. The pattern does not match its own text.
    let is_ended = "grep -rq 'BUDGET_[E]XCEEDED' \"$JACKLINE_HOME/sessions\"";
    let main = [
        start_subagent(),
        bash(&format!("until {is_ended}; do sleep 0.02; done; touch waited")),
        bash("touch main"),
    ];
    let sub = [spending_call("sub-1", 30_000), bash("touch sub-2")];
    let seen = world.play(ModelScript::new(main).part(SUBAGENT_PROMPT, sub));
    assert!(
        world.scratch.has_path("sub-1") && world.scratch.has_path("waited"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(
        !world.scratch.has_path("sub-2") && !world.scratch.has_path("main"),
        "{}",
        describe_outcome(&seen)
    );
    let code = json!({ "code": "BUDGET_EXCEEDED", "detail": "total_tokens" });
    assert_eq!(world.stop_code(), code, "{}", describe_outcome(&seen));
    world.verify_and_replay();
}
