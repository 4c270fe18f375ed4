//! Two people who steer one session at the same moment: one of them is first, and the other is
//! told what that one did.

use std::sync::Barrier;

use jackline_engine::event::Control;
use jackline_engine::{Action, EventKind};
use jackline_journal::EventRecord;
use serde_json::{Value, json};

use crate::support::{Run, World, feed};

/// How often they meet in one session.
const ROUNDS: usize = 4;

/// What became of a word.
#[derive(Debug)]
struct Word {
    done: bool,
    record: u64,
    objection: String,
}

fn word(run: &Run) -> Word {
    let said: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let done = said["done"].as_bool().unwrap();
    assert_eq!((run.code, run.stderr.as_str()), (Some(i32::from(!done)), ""), "{run:?}");
    let objections = said["objections"].as_array().unwrap();
    assert_eq!(objections.is_empty(), done, "{run:?}");
    let of = |key: &str| objections.first().map(|it| it[key].as_str().unwrap_or_default());
    assert!(matches!(of("subtype"), None | Some("no_effect" | "session_over")), "{run:?}");
    let objection = of("message").unwrap_or_default().to_owned();
    Word { done, record: said["record"].as_u64().unwrap(), objection }
}

/// Two people say something to a session at the same moment.
fn both(world: &World, session: &str, words: [&str; 2]) -> [Word; 2] {
    let start = Barrier::new(2);
    let say = |by: &str, command: &str| {
        let mut process = world.person();
        process.args([command, session, "--by", by, "--json"]);
        start.wait();
        word(&feed(&mut process, b""))
    };
    let [one, other] = words;
    std::thread::scope(|scope| {
        let dana = scope.spawn(|| say("dana", one));
        let alex = scope.spawn(|| say("alex", other));
        [dana.join().unwrap(), alex.join().unwrap()]
    })
}

/// Both say the same: it takes effect once, and who was second is told so.
fn once(world: &World, session: &str, command: &str, told: &str) {
    let [dana, alex] = both(world, session, [command, command]);
    assert!(dana.done ^ alex.done, "{command}: {dana:?}, {alex:?}");
    let (first, second) = if dana.done { (dana, alex) } else { (alex, dana) };
    assert!(first.record < second.record, "{first:?}, {second:?}");
    assert!(second.objection.contains(told), "{command}: {second:?}");
}

/// How often a word took effect, as the journal says.
fn took(world: &World, session: &str, wanted: Action) -> usize {
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
fn of_two_people_one_is_first_and_the_other_is_told() {
    let world = World::new("limits: { iterations: 1 }\n");
    for session in ["s1", "s2", "s3"] {
        let ended = json!({"session": session, "event": "iteration_ended"}).to_string();
        world.stdio(&[json!({"session": session, "event": "session_started"}).to_string()]);
        for _ in 0..ROUNDS {
            once(&world, session, "pause", "the session is paused already, by `");
            once(&world, session, "resume", "the session is not paused");
            // The pause takes effect; the other only where there was one to lift.
            let [pause, resume] = both(&world, session, ["pause", "resume"]);
            assert!(pause.done, "{pause:?}");
            assert_eq!(resume.done, pause.record < resume.record, "{pause:?}, {resume:?}");
            if !resume.done {
                assert_eq!(world.jackline(&["resume", session]).code, Some(0));
            }
        }
        assert_eq!(world.stdio(&[&ended]).answers(), ["pause"]);
        once(&world, session, "ack", "no checkpoint waits to be acknowledged");
        let [stop, pause] = both(&world, session, ["stop", "pause"]);
        assert!(stop.done, "{stop:?}");
        assert_eq!(pause.done, pause.record < stop.record, "{stop:?}, {pause:?}");
        let pauses = 2 * ROUNDS + usize::from(pause.done);
        let expected = [
            (Action::Pause, pauses),
            (Action::Resume, 2 * ROUNDS),
            (Action::Acknowledge, 1),
            (Action::Stop, 1),
        ];
        for (action, count) in expected {
            assert_eq!(took(&world, session, action), count, "{action:?}");
        }
        world.prove(session);
    }
}
