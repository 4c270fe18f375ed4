//! Tests that an agent must test changed code before it may stop.

use jackline_model::scripted::{ModelScript, ScriptStep};
use serde_json::json;

use crate::world::{ClientWorld, bash, describe_outcome};

const TESTS: &str = "import unittest, sums


class Sums(unittest.TestCase):
    def test_two_and_two(self):
        self.assertEqual(sums.add(2, 2), 4)
";

/// The preset for autonomous agents requires tests, and the feedback names the test command.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn changed_code_is_tested_before_an_autonomous_agent_stops() {
    let world = ClientWorld::new("extends: [autonomous]\n");
    world.scratch.write("pyproject.toml", "").unwrap();
    world.scratch.write("test_sums.py", TESTS).unwrap();
    let write = |sum: &str| {
        let path = world.scratch.work().join("sums.py");
        let content = format!("def add(a, b):\n    return {sum}\n");
        ScriptStep::call("Write", json!({ "file_path": path, "content": content }))
    };
    let test = || bash("python3 -m unittest");
    let seen = world.play(ModelScript::new([
        write("a"),
        ScriptStep::say("I am done."),
        test(),
        ScriptStep::say("It is tested, so I am done."),
        write("a + b"),
        test(),
        ScriptStep::say("Now I am done."),
    ]));
    let when = |text: &str| seen.requests_of(None).position(|request| request.has_text(text));
    // First the code is untested, and the feedback names the usual test command of the project.
    // Then the tests fail, and the feedback names the command that was run.
    let untested = "no tests ran since the last change. Run them now with: `pytest`";
    assert_eq!(when(untested), Some(2), "{}", describe_outcome(&seen));
    let failing = "The tests fail. Fix them, then run them again with: `python3 -m unittest`";
    assert_eq!(when(failing), Some(4), "{}", describe_outcome(&seen));
    assert_eq!(seen.requests_of(None).count(), 7, "{}", describe_outcome(&seen));
    assert_eq!(
        world.stop_code(),
        json!({ "code": "OBJECTIVE_ACHIEVED" }),
        "{}",
        describe_outcome(&seen)
    );
    assert_eq!(world.safety_log_entries(), ["DIRTY_BIT_VIOLATION: injected_test_prompt"; 2]);
    world.verify_and_replay();
}
