//! Tests of two people who control one session at the same moment: one command is first, and the
//! other person is told what the first one did.

use std::sync::Barrier;

use jackline_engine::event::Control;
use jackline_engine::{ControlAction, EventKind};
use jackline_journal::EventRecord;
use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, run_with_input};

/// How many times two commands are sent to one session.
const ROUNDS: usize = 4;

/// The result of a control command.
#[derive(Debug)]
struct ControlResult {
    done: bool,
    record: u64,
    violation: String,
}

fn parse_result(run: &CliOutput) -> ControlResult {
    let output: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let done = output["done"].as_bool().unwrap();
    assert_eq!((run.code, run.stderr.as_str()), (Some(i32::from(!done)), ""), "{run:?}");
    let violations = output["objections"].as_array().unwrap();
    assert_eq!(violations.is_empty(), done, "{run:?}");
    let first_violation =
        |key: &str| violations.first().map(|it| it[key].as_str().unwrap_or_default());
    assert!(
        matches!(first_violation("subtype"), None | Some("no_effect" | "session_over")),
        "{run:?}"
    );
    let objection = first_violation("message").unwrap_or_default().to_owned();
    ControlResult { done, record: output["record"].as_u64().unwrap(), violation: objection }
}

/// Two people send a command to a session at the same moment.
fn send_both(world: &CliWorld, session: &str, commands: [&str; 2]) -> [ControlResult; 2] {
    let start = Barrier::new(2);
    let send = |by: &str, command: &str| {
        let mut process = world.person_command();
        process.args([command, session, "--by", by, "--json"]);
        start.wait();
        parse_result(&run_with_input(&mut process, b""))
    };
    let [one, other] = commands;
    std::thread::scope(|scope| {
        let dana = scope.spawn(|| send("dana", one));
        let alex = scope.spawn(|| send("alex", other));
        [dana.join().unwrap(), alex.join().unwrap()]
    })
}

/// Both people send the same command. It takes effect once, and the second person is told so.
fn assert_takes_effect_once(world: &CliWorld, session: &str, command: &str, expected: &str) {
    let [dana, alex] = send_both(world, session, [command, command]);
    assert!(dana.done ^ alex.done, "{command}: {dana:?}, {alex:?}");
    let (first, second) = if dana.done { (dana, alex) } else { (alex, dana) };
    assert!(first.record < second.record, "{first:?}, {second:?}");
    assert!(second.violation.contains(expected), "{command}: {second:?}");
}

/// Counts how many times an action took effect, according to the journal.
fn count_effective(world: &CliWorld, session: &str, wanted: ControlAction) -> usize {
    let records = world.records(session);
    let is_wanted = |record: &&EventRecord| match record.event.kind {
        EventKind::Control(Control { action, .. }) => {
            action == wanted && record.verdict.violations.is_empty()
        }
        _ => false,
    };
    records.iter().filter(is_wanted).count()
}

#[test]
fn of_two_simultaneous_commands_one_is_first_and_the_other_is_told() {
    let world = CliWorld::new("limits: { iterations: 1 }\n");
    for session in ["s1", "s2", "s3"] {
        let ended = json!({"session": session, "event": "iteration_ended"}).to_string();
        world.stdio(&[json!({"session": session, "event": "session_started"}).to_string()]);
        for _ in 0..ROUNDS {
            assert_takes_effect_once(
                &world,
                session,
                "pause",
                "the session is already paused by `",
            );
            assert_takes_effect_once(&world, session, "resume", "the session is not paused");
            // The pause always takes effect. The resume takes effect only if it comes second.
            let [pause, resume] = send_both(&world, session, ["pause", "resume"]);
            assert!(pause.done, "{pause:?}");
            assert_eq!(resume.done, pause.record < resume.record, "{pause:?}, {resume:?}");
            if !resume.done {
                assert_eq!(world.jackline(&["resume", session]).code, Some(0));
            }
        }
        assert_eq!(world.stdio(&[&ended]).decisions(), ["pause"]);
        assert_takes_effect_once(
            &world,
            session,
            "ack",
            "no checkpoint is waiting for an acknowledgement",
        );
        let [stop, pause] = send_both(&world, session, ["stop", "pause"]);
        assert!(stop.done, "{stop:?}");
        assert_eq!(pause.done, pause.record < stop.record, "{stop:?}, {pause:?}");
        let pauses = 2 * ROUNDS + usize::from(pause.done);
        let expected = [
            (ControlAction::Pause, pauses),
            (ControlAction::Resume, 2 * ROUNDS),
            (ControlAction::Acknowledge, 1),
            (ControlAction::Stop, 1),
        ];
        for (action, count) in expected {
            assert_eq!(count_effective(&world, session, action), count, "{action:?}");
        }
        world.verify_and_replay(session);
    }
}
