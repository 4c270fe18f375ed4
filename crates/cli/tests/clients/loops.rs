//! Tests of an agent in a loop: it is warned, then paused, then stopped.

use jackline_model::scripted::{ModelScript, ScriptStep};
use serde_json::json;

use crate::world::{ClientWorld, and_bash, bash, describe_outcome, was_halted};

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn in_the_strict_profile_the_third_repetition_is_warned_and_the_next_one_stops_the_session() {
    let world = ClientWorld::new("loops: { profile: strict }\n");
    let mut steps = vec![bash("cat absent"); 3];
    // A command that changes no file does not break the loop.
    steps.extend([bash("echo between"), bash("cat absent"), bash("touch after")]);
    let seen = world.play(ModelScript::new(steps));
    // The warning comes with the third result, so the next request contains it.
    let warned: Vec<bool> = seen
        .requests_of(None)
        .map(|request| request.has_text("do not propose this call again"))
        .collect();
    assert_eq!(warned, [false, false, false, true, true], "{}", describe_outcome(&seen));
    assert!(!world.scratch.has_path("after"), "{}", describe_outcome(&seen));
    assert!(was_halted(&seen), "{}", describe_outcome(&seen));
    assert!(seen.showed_person("SYSTEM_ERROR{loop}"), "{}", describe_outcome(&seen));
    let code = json!({ "code": "SYSTEM_ERROR", "detail": "loop", "signature": "Bash(cat absent)" });
    assert_eq!(world.stop_code(), code, "{}", describe_outcome(&seen));
    let report = world.scratch.read(".jackline/BLOCKER_REPORT.md").unwrap();
    assert!(report.contains("repeated call: `Bash(cat absent)`"), "{report}");

    // The session stays stopped until a person resets it.
    let seen = world.resume_and_play("go on", ModelScript::new([bash("touch after")]));
    assert_eq!(seen.requests.len(), 0, "{}", describe_outcome(&seen));
    assert!(seen.showed_person("jackline reset"), "{}", describe_outcome(&seen));
    world.run_as_person(&["reset"]);
    let seen = world.resume_and_play("go on", ModelScript::new([bash("touch after")]));
    assert!(world.scratch.has_path("after"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn in_the_graded_profile_the_third_repetition_is_warned_and_the_fifth_pauses() {
    let world = ClientWorld::new("loops: {}\n");
    let mut steps = vec![bash("echo a"); 5];
    steps.push(bash("touch after"));
    let seen = world.play(ModelScript::new(steps));
    let warned: Vec<bool> =
        seen.requests_of(None).map(|request| request.has_text("3 times")).collect();
    assert_eq!(warned, [false, false, false, true, true], "{}", describe_outcome(&seen));
    assert!(was_halted(&seen) && !world.scratch.has_path("after"), "{}", describe_outcome(&seen));
    assert!(seen.showed_person("the session is paused"), "{}", describe_outcome(&seen));
    assert!(seen.showed_person(".jackline/BLOCKER_REPORT.md"), "{}", describe_outcome(&seen));
    assert_eq!(
        world.safety_log_entries(),
        ["SOFT_LOOP: continued_monitoring", "HARD_LOOP: paused"]
    );

    // A message of a person resets the counters.
    let seen = world
        .resume_and_play("try otherwise", ModelScript::new([bash("echo a"), bash("touch after")]));
    assert!(world.scratch.has_path("after") && !was_halted(&seen), "{}", describe_outcome(&seen));
    assert!(!world.scratch.has_path(".jackline/BLOCKER_REPORT.md"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn repeating_a_denied_call_is_warned_then_paused_then_stopped() {
    let world = ClientWorld::new(
        "
loops: {}
rules:
  - name: no-deploy
    command: deploy
    deny: Not from here.
    examples: { deny: [deploy] }
",
    );
    let mut steps = vec![bash("deploy now"); 5];
    steps.push(bash("touch after"));
    let seen = world.play(ModelScript::new(steps));
    let results = seen.tool_results(None);
    assert!(results.iter().all(|result| result.is_error && result.text.contains("Not from here.")));
    let warned: Vec<bool> =
        results.iter().map(|it| it.text.contains("this call will be refused")).collect();
    assert_eq!(warned, [false, false, true, false], "{}", describe_outcome(&seen));
    assert!(was_halted(&seen) && !world.scratch.has_path("after"), "{}", describe_outcome(&seen));
    assert!(seen.showed_person("the session is paused"), "{}", describe_outcome(&seen));

    // One message with many calls reaches the last level: the rule denies five calls, and the pause
    // denies ten more.
    let many = (0..15).fold(ScriptStep::default(), |step, _| and_bash(step, "deploy now"));
    let seen = world.resume_and_play("try again", ModelScript::new([many, bash("touch after")]));
    assert!(was_halted(&seen) && !world.scratch.has_path("after"), "{}", describe_outcome(&seen));
    let code = json!({ "code": "SYSTEM_ERROR", "detail": "loop", "signature": "Bash(deploy now)" });
    assert_eq!(world.stop_code(), code, "{}", describe_outcome(&seen));
    assert_eq!(
        world.safety_log_entries().last().map(String::as_str),
        Some("INFINITE_LOOP: stopped")
    );
    world.verify_and_replay();
}
