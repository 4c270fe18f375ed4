//! Tests of `jackline run` with a slow completion check by command: the run waits for the check,
//! but a stop or a pause does not.

use std::fs;

use jackline_engine::EventKind;
use jackline_host::clock::now;

use crate::run_support::{
    REPORT_SCRIPT, TaskDirectory, count_sleepers, create_control_file, ended_event, events_named,
    poll_until, session_id, stop_code, wait_for_line, wait_for_output,
};
use crate::support::CliWorld;

/// A model script that stops too early, works after the stop was blocked, and stops again.
const EARLY_STOP_SCRIPT: &str = "steps:\n  - text: Done!\n  - calls: [{ tool: write_file, args: { path: report.md, content: done } }]\n  - text: It is written.\n";

/// A completion check that runs for the given time, in detached processes that ignore a termination
/// signal.
fn slow_check(seconds: u32) -> String {
    format!(
        "completion: {{ command: \"setsid sh -c 'setsid sleep {seconds} & exit' & (trap '' TERM; \
         exec setsid sleep {seconds}) & sleep {seconds}\" }}\n"
    )
}

fn count_stop_proposals(world: &CliWorld, session: &str) -> usize {
    let records = world.records(session);
    records.iter().filter(|it| matches!(it.event.kind, EventKind::StopProposed(_))).count()
}

#[test]
fn a_slow_check_is_waited_for_and_its_result_is_used() {
    let world = CliWorld::new("");
    // The cap is the number of proposed stops: two for the check that fails, and two for the check
    // that passes.
    let definition = "completion: { command: 'sleep 2; test -e report.md' }\n\
                      completion_cap: { blocks: 4, same: 4 }\n";
    let run = TaskDirectory::new(&world, definition, &[("main", EARLY_STOP_SCRIPT)]).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let refused = events_named(&run, "stopping");
    assert!(refused[0]["why"].as_str().unwrap().contains("failed with exit status 1"), "{run:?}");
    assert_eq!(count_stop_proposals(&world, &session_id(&run)), 4, "{run:?}");
    assert_eq!(events_named(&run, "waiting").len(), 2, "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_stop_ends_a_check_with_all_its_processes() {
    for by_file in [true, false] {
        let world = CliWorld::new("");
        let mut child =
            TaskDirectory::new(&world, &slow_check(293), &[("main", REPORT_SCRIPT)]).start(&[]);
        wait_for_line(&mut child, "\"waiting\"");
        poll_until("the check", || count_sleepers(293) == 3);
        let stopped = now().boot_ms;
        if by_file {
            create_control_file(&world, "STOP");
        } else {
            assert_eq!(world.jackline(&["stop"]).code, Some(0));
        }
        let run = wait_for_output(child);
        let ms = now().boot_ms - stopped;
        assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
        assert_eq!(count_sleepers(293), 0, "{ms} ms");
        // One second, and another one for a machine that is busy.
        assert!(ms < 2000, "{ms} ms");
        world.verify_and_replay(&session_id(&run));
    }
}

#[test]
fn a_check_ends_with_the_time_limit_of_the_run() {
    let world = CliWorld::new("");
    let definition = format!("{}limits: {{ wall_seconds: 2 }}\n", slow_check(294));
    let run = TaskDirectory::new(&world, &definition, &[("main", REPORT_SCRIPT)]).run(&[]);
    assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    assert_eq!(count_sleepers(294), 0);
    let ms = ended_event(&run)["evidence"]["elapsed_ms"].as_u64().unwrap();
    assert!((2000..10_000).contains(&ms), "{ms} ms");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_pause_does_not_wait_for_a_check() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, &slow_check(295), &[("main", REPORT_SCRIPT)]);
    let mut child = task.start(&["--no-wait"]);
    wait_for_line(&mut child, "\"waiting\"");
    create_control_file(&world, "PAUSE");
    let run = wait_for_output(child);
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let id = session_id(&run);
    // A paused run can continue, so its check continues too. A stop ends both.
    poll_until("the check", || count_sleepers(295) == 3);
    fs::remove_file(world.workspace().join(".jackline/PAUSE")).unwrap();
    create_control_file(&world, "STOP");
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(count_sleepers(295), 0);
    world.verify_and_replay(&id);
}
