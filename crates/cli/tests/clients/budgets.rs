//! What may be spent, by what the client's own transcripts say was spent.

use jackline_model::scripted::{Script, Step, Usage};
use jackline_setup::live::SUBAGENT;
use serde_json::{Value, json};

use crate::world::{World, bash, story, subagent, told_call, was_halted};

/// A call whose message took so many tokens, and that is over only when they are
/// written down: the client takes its time.
fn spending(name: &str, input: u64) -> Step {
    told_call(&format!("touch {name}")).costing(Usage { input, output: 0, ..Usage::default() })
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn tokens_of_a_session_end_it_with_its_code() {
    let world = World::new("limits: { total_tokens: 30000 }\n");
    let seen =
        world.play(Script::new([spending("a", 20_000), spending("b", 10_000), bash("touch c")]));
    assert!(was_halted(&seen), "{}", story(&seen));
    assert!(world.scratch.has("b") && !world.scratch.has("c"), "{}", story(&seen));
    let code = json!({ "code": "BUDGET_EXCEEDED", "detail": "total_tokens" });
    assert_eq!(world.stop_code(), code, "{}", story(&seen));
    let seen = world.play_on("go on", Script::new([bash("touch c")]));
    assert!(seen.requests.is_empty(), "{}", story(&seen));
    world.prove();
}

/// 3 dollars for a million tokens read.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_turn_may_cost_so_much_and_the_next_one_as_much_again() {
    let world = World::new("limits: { cost_usd: { max: 0.30, per: turn } }\n");
    let seen =
        world.play(Script::new([spending("a", 60_000), spending("b", 40_000), bash("touch c")]));
    assert!(world.scratch.has("b") && !world.scratch.has("c"), "{}", story(&seen));
    let results = seen.results(None);
    let refused = results.last().unwrap();
    assert!(refused.text.contains("0.30 of 0.30 USD of this turn are used"), "{refused:?}");
    let seen = world.play_on("go on", Script::new([spending("c", 5_000)]));
    assert!(world.scratch.has("c"), "{}", story(&seen));
    // What the client wrote down when that turn was over still counts in it: the
    // answer with the refused call, and the last one.
    let used = |pointer: &str| world.status().pointer(pointer).and_then(Value::as_u64).unwrap();
    let (session, turn) = (used("/summary/usage/input"), used("/summary/turn/usage/input"));
    assert_eq!(session - turn, 60_000 + 40_000 + 2 * 1_000, "{}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn calls_of_one_tool_are_limited_and_the_others_are_not() {
    let world = World::new("limits: { tool_calls: { Write: 1 } }\n");
    let write = |name: &str| {
        let path = world.scratch.work().join(name);
        Step::call("Write", json!({ "file_path": path, "content": "x" }))
    };
    let seen = world.play(Script::new([write("a"), write("b"), bash("touch c")]));
    assert!(world.scratch.has("a") && !world.scratch.has("b"), "{}", story(&seen));
    assert!(world.scratch.has("c") && !was_halted(&seen), "{}", story(&seen));
    let results = seen.results(None);
    let refused = results.get(1).unwrap();
    assert!(refused.text.contains("1 of 1 calls of `Write`"), "{refused:?}");
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn what_a_sub_agent_spends_ends_the_session_for_all() {
    let world = World::new("limits: { total_tokens: 30000 }\n");
    // It waits for the end to be written down, and does not find its own words.
    let over = "grep -rq 'BUDGET_[E]XCEEDED' \"$JACKLINE_HOME/sessions\"";
    let main = [
        subagent(),
        bash(&format!("until {over}; do sleep 0.02; done; touch waited")),
        bash("touch main"),
    ];
    let sub = [spending("sub-1", 30_000), bash("touch sub-2")];
    let seen = world.play(Script::new(main).part(SUBAGENT, sub));
    assert!(world.scratch.has("sub-1") && world.scratch.has("waited"), "{}", story(&seen));
    assert!(!world.scratch.has("sub-2") && !world.scratch.has("main"), "{}", story(&seen));
    let code = json!({ "code": "BUDGET_EXCEEDED", "detail": "total_tokens" });
    assert_eq!(world.stop_code(), code, "{}", story(&seen));
    world.prove();
}
