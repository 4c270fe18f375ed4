//! `jackline run` with a completion check by command that takes its time: it is waited for, and
//! whoever ends or holds the run does not have to.

use std::fs;

use jackline_engine::EventKind;
use jackline_host::clock::now;

use crate::run_support::{
    Task, WORKS, code, end_of, ended, mark, session, sleepers, told, until, wait_for_line,
};
use crate::support::World;

/// Says that it is done, works once that is not believed, and says so again.
const TRIES: &str = "steps:\n  - text: Done!\n  - calls: [{ tool: write_file, args: { path: report.md, content: done } }]\n  - text: It is written.\n";

/// A check that lasts so long, in sessions of their own and deaf to the word to end.
fn lasts(seconds: u32) -> String {
    format!(
        "completion: {{ command: \"setsid sh -c 'setsid sleep {seconds} & exit' & (trap '' TERM; \
         exec setsid sleep {seconds}) & sleep {seconds}\" }}\n"
    )
}

fn stops_proposed(world: &World, session: &str) -> usize {
    let records = world.records(session);
    records.iter().filter(|it| matches!(it.event.kind, EventKind::StopProposed(_))).count()
}

#[test]
fn a_slow_check_is_waited_for_and_heard() {
    let world = World::new("");
    // As many stops as there are: two for the check that fails, and two for the other.
    let definition = "completion: { command: 'sleep 2; test -e report.md' }\n\
                      completion_cap: { blocks: 4, same: 4 }\n";
    let run = Task::new(&world, definition, &[("main", TRIES)]).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let refused = told(&run, "stopping");
    assert!(refused[0]["why"].as_str().unwrap().contains("failed with exit status 1"), "{run:?}");
    assert_eq!(stops_proposed(&world, &session(&run)), 4, "{run:?}");
    assert_eq!(told(&run, "waiting").len(), 2, "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn a_stop_ends_a_check_with_all_that_it_started() {
    for by_file in [true, false] {
        let world = World::new("");
        let mut child = Task::new(&world, &lasts(293), &[("main", WORKS)]).start(&[]);
        wait_for_line(&mut child, "\"waiting\"");
        until("the check", || sleepers(293) == 3);
        let stopped = now().boot_ms;
        if by_file {
            mark(&world, "STOP");
        } else {
            assert_eq!(world.jackline(&["stop"]).code, Some(0));
        }
        let run = end_of(child);
        let ms = now().boot_ms - stopped;
        assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
        assert_eq!(sleepers(293), 0, "{ms} ms");
        // A second, and as much again where others are at work on the machine.
        assert!(ms < 2000, "{ms} ms");
        world.prove(&session(&run));
    }
}

#[test]
fn a_check_ends_with_the_time_of_the_run() {
    let world = World::new("");
    let definition = format!("{}limits: {{ wall_seconds: 2 }}\n", lasts(294));
    let run = Task::new(&world, &definition, &[("main", WORKS)]).run(&[]);
    assert_eq!(code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    assert_eq!(sleepers(294), 0);
    let ms = ended(&run)["evidence"]["elapsed_ms"].as_u64().unwrap();
    assert!((2000..10_000).contains(&ms), "{ms} ms");
    world.prove(&session(&run));
}

#[test]
fn a_pause_does_not_wait_for_a_check() {
    let world = World::new("");
    let task = Task::new(&world, &lasts(295), &[("main", WORKS)]);
    let mut child = task.start(&["--no-wait"]);
    wait_for_line(&mut child, "\"waiting\"");
    mark(&world, "PAUSE");
    let run = end_of(child);
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let id = session(&run);
    // It can go on, so its check does; a stop ends both.
    until("the check", || sleepers(295) == 3);
    fs::remove_file(world.work().join(".jackline/PAUSE")).unwrap();
    mark(&world, "STOP");
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(sleepers(295), 0);
    world.prove(&id);
}
