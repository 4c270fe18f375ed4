//! Tests of a session that waits for a person, with its report file: the agent cannot remove the
//! report, and a person can.

use jackline_model::scripted::{ModelScript, ScriptStep};
use serde_json::json;

use crate::world::{ClientWorld, and_bash, bash, describe_outcome, was_halted};

const BLOCKER: &str = ".jackline/BLOCKER_REPORT.md";
const CHECKPOINT: &str = ".jackline/CHECKPOINT.md";

/// Every call without a change is a failed iteration.
const ONE_STEP_ITERATIONS: &str = "progress: { steps_per_iteration: 1 }\n";

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn three_failed_iterations_pause_until_a_person_removes_the_report() {
    let world = ClientWorld::new(ONE_STEP_ITERATIONS);
    let last = and_bash(bash("touch after"), &format!("rm -f {BLOCKER}"));
    let seen = world.play(ModelScript::new([bash("echo 1"), bash("echo 2"), bash("echo 3"), last]));
    assert!(was_halted(&seen) && !world.scratch.has_path("after"), "{}", describe_outcome(&seen));
    assert!(seen.showed_person("3 iterations in a row failed"), "{}", describe_outcome(&seen));
    let report = world.scratch.read(BLOCKER).unwrap();
    for fragment in ["is paused and waits for you", "in the last one nothing was changed"] {
        assert!(report.contains(fragment), "{report}");
    }
    assert_eq!(world.stop_code(), json!({ "code": "CAPPED", "detail": "progress" }));

    std::fs::remove_file(world.scratch.work().join(BLOCKER)).unwrap();
    let seen = world.resume_and_play("go on", ModelScript::new([bash("touch after")]));
    assert!(world.scratch.has_path("after"), "{}", describe_outcome(&seen));
    // The agent was told the reason of the pause, and that the report is protected.
    let results = seen.tool_results(None);
    for fragment in ["3 iterations in a row failed", "`.jackline/BLOCKER_REPORT.md` is protected"] {
        assert!(results.iter().any(|result| result.text.contains(fragment)), "{results:?}");
    }
    // The removal of the report ended the pause, not the message.
    assert_eq!(world.safety_log_entries(), ["NO_PROGRESS: paused", "CONTROL: resumed"]);
    let log = world.scratch.read(".jackline/safety_log.json").unwrap();
    assert!(log.contains("clear_blocker") && log.contains("\"removed\""), "{log}");
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_report_that_a_script_of_the_agent_removes_is_restored() {
    let world = ClientWorld::new(ONE_STEP_ITERATIONS);
    // The script assembles the file name at run time, so no rule can see it before.
    let script = "import os, time\n\
                  while not os.path.exists('now'): time.sleep(0.02)\n\
                  os.remove('.jack' + 'line/BLOCKER' + '_REPORT.md')\n\
                  open('removed', 'w')\n";
    world.scratch.write("tool.py", script).unwrap();
    let background = json!({ "command": "python3 tool.py", "description": "a step of the script",
        "run_in_background": true });
    let steps = [
        // The changes of a background command are unknown, so this iteration does not fail.
        ScriptStep::call("Bash", background),
        bash("echo 1"),
        bash("echo 2"),
        bash("echo 3"),
        and_bash(bash("echo 4"), "touch after"),
    ];
    // At the last gate, the report exists and the script is running.
    let meanwhile = "touch now; until [ -e removed ]; do sleep 0.02; done";
    let seen = world
        .play_guarded(&world.wrapper_hooks("touch\\ after", meanwhile), ModelScript::new(steps));
    assert!(
        world.scratch.has_path("removed") && !world.scratch.has_path("after"),
        "{}",
        describe_outcome(&seen)
    );
    let report = world.scratch.read(BLOCKER);
    assert!(report.is_some_and(|it| it.contains("waits for you")), "{}", describe_outcome(&seen));
    let results = seen.tool_results(None);
    let last = results.last().unwrap();
    assert!(last.is_error && last.text.contains("the previous content is restored"), "{last:?}");
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_iteration_limit_waits_for_an_acknowledgement() {
    let world = ClientWorld::new(
        "
limits: { iterations: 2 }
iterations_extension: 1
progress: { steps_per_iteration: 2 }
",
    );
    let touch = |names: &[&str]| {
        let steps: Vec<ScriptStep> =
            names.iter().map(|name| bash(&format!("touch {name}"))).collect();
        ModelScript::new(steps)
    };
    let seen = world.play(touch(&["a", "b", "c", "d", "e"]));
    assert!(was_halted(&seen), "{}", describe_outcome(&seen));
    assert!(
        world.scratch.has_path("d") && !world.scratch.has_path("e"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(seen.showed_person("2 of 2 iterations"), "{}", describe_outcome(&seen));
    let report = world.scratch.read(CHECKPOINT).unwrap();
    assert!(report.contains("Acknowledge and resume: `jackline ack"), "{report}");
    assert_eq!(world.stop_code(), json!({ "code": "CAPPED", "detail": "iterations" }));

    // A message alone does not continue the session.
    let seen = world.resume_and_play("go on", touch(&["e"]));
    assert!(was_halted(&seen) && !world.scratch.has_path("e"), "{}", describe_outcome(&seen));
    world.run_as_person(&["ack"]);
    assert!(!world.scratch.has_path(CHECKPOINT));
    let seen = world.resume_and_play("go on", touch(&["e", "f", "g"]));
    assert!(
        world.scratch.has_path("f") && !world.scratch.has_path("g"),
        "{}",
        describe_outcome(&seen)
    );
    assert!(seen.showed_person("3 of 3 iterations"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}
