//! An agent that goes round in circles: it is told, then held, then ended.

use jackline_model::scripted::{Script, Step};
use serde_json::json;

use crate::world::{World, and_bash, bash, story, was_halted};

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn under_strict_three_alike_are_overridden_and_the_next_ends_the_run() {
    let world = World::new("loops: { profile: strict }\n");
    let mut steps = vec![bash("cat absent"); 3];
    // What changes no file changes nothing about it.
    steps.extend([bash("echo between"), bash("cat absent"), bash("touch after")]);
    let seen = world.play(Script::new(steps));
    // Told with the third result, which the model saw when it went on.
    let told: Vec<bool> =
        seen.of(None).map(|request| request.shows("do not propose it again")).collect();
    assert_eq!(told, [false, false, false, true, true], "{}", story(&seen));
    assert!(!world.scratch.has("after"), "{}", story(&seen));
    assert!(was_halted(&seen), "{}", story(&seen));
    assert!(seen.told_person("SYSTEM_ERROR{loop}"), "{}", story(&seen));
    let code = json!({ "code": "SYSTEM_ERROR", "detail": "loop", "signature": "Bash(cat absent)" });
    assert_eq!(world.stop_code(), code, "{}", story(&seen));
    let report = world.scratch.read(".jackline/BLOCKER_REPORT.md").unwrap();
    assert!(report.contains("what was repeated: `Bash(cat absent)`"), "{report}");

    // It stays over, whatever a person says to the agent, until they open it.
    let seen = world.play_on("go on", Script::new([bash("touch after")]));
    assert_eq!(seen.requests.len(), 0, "{}", story(&seen));
    assert!(seen.told_person("jackline reset"), "{}", story(&seen));
    world.person(&["reset"]);
    let seen = world.play_on("go on", Script::new([bash("touch after")]));
    assert!(world.scratch.has("after"), "{}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn graded_tells_the_third_and_pauses_at_the_fifth() {
    let world = World::new("loops: {}\n");
    let mut steps = vec![bash("echo a"); 5];
    steps.push(bash("touch after"));
    let seen = world.play(Script::new(steps));
    let told: Vec<bool> = seen.of(None).map(|request| request.shows("3 times")).collect();
    assert_eq!(told, [false, false, false, true, true], "{}", story(&seen));
    assert!(was_halted(&seen) && !world.scratch.has("after"), "{}", story(&seen));
    assert!(seen.told_person("the session is paused"), "{}", story(&seen));
    assert!(seen.told_person(".jackline/BLOCKER_REPORT.md"), "{}", story(&seen));
    assert_eq!(world.safety(), ["SOFT_LOOP: continued_monitoring", "HARD_LOOP: paused"]);

    // A person who says something starts the counters anew.
    let seen = world.play_on("try otherwise", Script::new([bash("echo a"), bash("touch after")]));
    assert!(world.scratch.has("after") && !was_halted(&seen), "{}", story(&seen));
    assert!(!world.scratch.has(".jackline/BLOCKER_REPORT.md"), "{}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn hammering_a_denied_call_climbs_the_ladder() {
    let world = World::new(
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
    let seen = world.play(Script::new(steps));
    let results = seen.results(None);
    assert!(results.iter().all(|result| result.is_error && result.text.contains("Not from here.")));
    let told: Vec<bool> = results.iter().map(|it| it.text.contains("it will be refused")).collect();
    assert_eq!(told, [false, false, true, false], "{}", story(&seen));
    assert!(was_halted(&seen) && !world.scratch.has("after"), "{}", story(&seen));
    assert!(seen.told_person("the session is paused"), "{}", story(&seen));

    // A message with many calls gets to the top: five are refused by the rule, and ten
    // more because of the pause.
    let many = (0..15).fold(Step::default(), |step, _| and_bash(step, "deploy now"));
    let seen = world.play_on("try again", Script::new([many, bash("touch after")]));
    assert!(was_halted(&seen) && !world.scratch.has("after"), "{}", story(&seen));
    let code = json!({ "code": "SYSTEM_ERROR", "detail": "loop", "signature": "Bash(deploy now)" });
    assert_eq!(world.stop_code(), code, "{}", story(&seen));
    assert_eq!(world.safety().last().map(String::as_str), Some("INFINITE_LOOP: stopped"));
    world.prove();
}
