//! A session that waits for a person, by its report: what the agent does to it is
//! undone, and what a person does settles it.

use jackline_model::scripted::{Script, Step};
use serde_json::json;

use crate::world::{World, and_bash, bash, story, was_halted};

const BLOCKER: &str = ".jackline/BLOCKER_REPORT.md";
const CHECKPOINT: &str = ".jackline/CHECKPOINT.md";

/// Every call that changes nothing is an iteration that failed.
const IMPATIENT: &str = "progress: { steps_per_iteration: 1 }\n";

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn three_failing_iterations_pause_until_a_person_removes_the_report() {
    let world = World::new(IMPATIENT);
    let last = and_bash(bash("touch after"), &format!("rm -f {BLOCKER}"));
    let seen = world.play(Script::new([bash("echo 1"), bash("echo 2"), bash("echo 3"), last]));
    assert!(was_halted(&seen) && !world.scratch.has("after"), "{}", story(&seen));
    assert!(seen.told_person("3 iterations in a row failed"), "{}", story(&seen));
    let report = world.scratch.read(BLOCKER).unwrap();
    for words in ["is paused, and waits for you", "in the last nothing was changed"] {
        assert!(report.contains(words), "{report}");
    }
    assert_eq!(world.stop_code(), json!({ "code": "CAPPED", "detail": "progress" }));

    std::fs::remove_file(world.scratch.work().join(BLOCKER)).unwrap();
    let seen = world.play_on("go on", Script::new([bash("touch after")]));
    assert!(world.scratch.has("after"), "{}", story(&seen));
    // The agent was told why it was held, and that the report is not its own.
    let results = seen.results(None);
    for words in ["3 iterations in a row failed", "`.jackline/BLOCKER_REPORT.md` is protected"] {
        assert!(results.iter().any(|result| result.text.contains(words)), "{results:?}");
    }
    // It was the removal that settled it, and not the message.
    assert_eq!(world.safety(), ["NO_PROGRESS: paused", "CONTROL: resumed"]);
    let log = world.scratch.read(".jackline/safety_log.json").unwrap();
    assert!(log.contains("clear_blocker") && log.contains("\"removed\""), "{log}");
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_report_that_the_agent_removes_in_secret_is_given_back() {
    let world = World::new(IMPATIENT);
    // The name is put together only when it runs: no rule sees it before.
    let script = "import os, time\n\
                  while not os.path.exists('now'): time.sleep(0.02)\n\
                  os.remove('.jack' + 'line/BLOCKER' + '_REPORT.md')\n\
                  open('removed', 'w')\n";
    world.scratch.write("tool.py", script).unwrap();
    let background = json!({ "command": "python3 tool.py", "description": "a step of the script",
        "run_in_background": true });
    let steps = [
        // Nobody sees what it changes, so this one does not fail.
        Step::call("Bash", background),
        bash("echo 1"),
        bash("echo 2"),
        bash("echo 3"),
        and_bash(bash("echo 4"), "touch after"),
    ];
    // At the last gate the report is there, and the script is at work.
    let meanwhile = "touch now; until [ -e removed ]; do sleep 0.02; done";
    let seen = world.play_guarded(&world.wrapped("touch\\ after", meanwhile), Script::new(steps));
    assert!(world.scratch.has("removed") && !world.scratch.has("after"), "{}", story(&seen));
    let report = world.scratch.read(BLOCKER);
    assert!(report.is_some_and(|it| it.contains("waits for you")), "{}", story(&seen));
    let results = seen.results(None);
    let last = results.last().unwrap();
    assert!(last.is_error && last.text.contains("it is given back as it was"), "{last:?}");
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_iteration_cap_waits_until_it_is_acknowledged() {
    let world = World::new(
        "
limits: { iterations: 2 }
iterations_extension: 1
progress: { steps_per_iteration: 2 }
",
    );
    let touch = |names: &[&str]| {
        let steps: Vec<Step> = names.iter().map(|name| bash(&format!("touch {name}"))).collect();
        Script::new(steps)
    };
    let seen = world.play(touch(&["a", "b", "c", "d", "e"]));
    assert!(was_halted(&seen), "{}", story(&seen));
    assert!(world.scratch.has("d") && !world.scratch.has("e"), "{}", story(&seen));
    assert!(seen.told_person("2 of 2 iterations"), "{}", story(&seen));
    let report = world.scratch.read(CHECKPOINT).unwrap();
    assert!(report.contains("Acknowledge: `jackline ack"), "{report}");
    assert_eq!(world.stop_code(), json!({ "code": "CAPPED", "detail": "iterations" }));

    // A message alone does not do.
    let seen = world.play_on("go on", touch(&["e"]));
    assert!(was_halted(&seen) && !world.scratch.has("e"), "{}", story(&seen));
    world.person(&["ack"]);
    assert!(!world.scratch.has(CHECKPOINT));
    let seen = world.play_on("go on", touch(&["e", "f", "g"]));
    assert!(world.scratch.has("f") && !world.scratch.has("g"), "{}", story(&seen));
    assert!(seen.told_person("3 of 3 iterations"), "{}", story(&seen));
    world.prove();
}
