//! Changed code is tested before the agent may stop.

use jackline_model::scripted::{Script, Step};
use serde_json::json;

use crate::world::{World, bash, story};

const TESTS: &str = "import unittest, sums


class Sums(unittest.TestCase):
    def test_two_and_two(self):
        self.assertEqual(sums.add(2, 2), 4)
";

/// The preset for agents on their own demands it, and says how.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn changed_code_is_tested_before_an_autonomous_agent_stops() {
    let world = World::new("extends: [autonomous]\n");
    world.scratch.write("pyproject.toml", "").unwrap();
    world.scratch.write("test_sums.py", TESTS).unwrap();
    let write = |sum: &str| {
        let path = world.scratch.work().join("sums.py");
        let content = format!("def add(a, b):\n    return {sum}\n");
        Step::call("Write", json!({ "file_path": path, "content": content }))
    };
    let test = || bash("python3 -m unittest");
    let seen = world.play(Script::new([
        write("a"),
        Step::say("I am done."),
        test(),
        Step::say("It is tested, so I am done."),
        write("a + b"),
        test(),
        Step::say("Now I am done."),
    ]));
    let when = |text: &str| seen.of(None).position(|request| request.shows(text));
    // Untested at first, with the command that such a project has; then tested and
    // wrong, with the command that was run.
    let untested = "no tests were run since. Run them now with: `pytest`";
    assert_eq!(when(untested), Some(2), "{}", story(&seen));
    let failing = "The tests fail. Mend that, then run them again with: `python3 -m unittest`";
    assert_eq!(when(failing), Some(4), "{}", story(&seen));
    assert_eq!(seen.of(None).count(), 7, "{}", story(&seen));
    assert_eq!(world.stop_code(), json!({ "code": "OBJECTIVE_ACHIEVED" }), "{}", story(&seen));
    assert_eq!(world.safety(), ["DIRTY_BIT_VIOLATION: injected_test_prompt"; 2]);
    world.prove();
}
