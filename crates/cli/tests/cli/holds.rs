//! Two things can hold a session at once, a person and a blocker: each has its own word, and a
//! word that makes no sense now changes nothing.

use std::fs;

use crate::run_support::{REPORT, Task, WORKS, code, session};
use crate::support::{Run, World};

fn ends(run: &Run, code: i32, said: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(said),
        "expected {code} and `{said}`: {run:#?}"
    );
}

/// A run that brought nothing three times, was left with a blocker, and would then work.
fn stuck(world: &World) -> (Task<'_>, String) {
    let idle = "  - text: I am done.\n".repeat(3);
    let script = format!("steps:\n{idle}{}", WORKS.trim_start_matches("steps:\n"));
    let task = Task::new(world, &format!("{REPORT}progress: {{}}\n"), &[("main", &script)]);
    let run = task.run(&[]);
    assert!(code(&run).contains("3 iterations in a row failed"), "{run:?}");
    let id = session(&run);
    (task, id)
}

fn report(world: &World) -> bool {
    world.work().join(".jackline/BLOCKER_REPORT.md").is_file()
}

#[test]
fn clearing_the_blocker_leaves_a_persons_pause() {
    let world = World::new("");
    let (task, id) = stuck(&world);
    ends(&world.jackline(&["pause", &id, "--by", "dana", "--why", "mine"]), 0, "is paused");
    assert!(report(&world));
    ends(&world.jackline(&["status", &id]), 0, "`jackline clear` for the blocker");
    ends(&world.jackline(&["clear", &id]), 0, "has its blocker cleared, and is still paused");
    assert!(!report(&world), "what it says is over");
    ends(&world.jackline(&["status", &id]), 0, "dana: mine");
    let left = task.resume(&[&id]);
    assert!(code(&left).starts_with("left: it waits for a person: mine"), "{left:?}");
    ends(&world.jackline(&["clear", &id]), 1, "nothing blocks this session");
    ends(&world.jackline(&["resume", &id]), 0, "goes on");
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&id);
}

#[test]
fn resuming_leaves_the_blocker_and_its_report() {
    let world = World::new("");
    let (task, id) = stuck(&world);
    let read = || fs::read_to_string(world.work().join(".jackline/BLOCKER_REPORT.md")).unwrap();
    let before = read();
    ends(&world.jackline(&["pause", &id]), 0, "is paused");
    ends(&world.jackline(&["resume", &id]), 0, "is still blocked");
    assert_eq!(read(), before);
    ends(&world.jackline(&["status", &id]), 0, "or `jackline clear`");
    let left = task.resume(&[&id]);
    assert!(code(&left).contains("3 iterations in a row failed"), "{left:?}");
    ends(&world.jackline(&["clear", &id]), 0, "goes on: its blocker is cleared");
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&id);
}

/// The gate refuses three stops that say the same; a person who clears what came of them lets
/// the agent try again.
#[test]
fn after_a_blocker_is_cleared_the_next_refused_stop_is_not_the_last() {
    let world = World::new("");
    let idle = "  - text: I am done.\n".repeat(4);
    let script = format!("steps:\n{idle}{}", WORKS.trim_start_matches("steps:\n"));
    let task = Task::new(&world, &format!("{REPORT}progress: {{}}\n"), &[("main", &script)]);
    let id = session(&task.run(&[]));
    ends(&world.jackline(&["clear", &id]), 0, "goes on");
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&id);
}

#[test]
fn what_has_ended_keeps_its_code_when_a_person_closes_it() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let id = session(&task.run(&[]));
    ends(&world.jackline(&["stop", &id]), 0, "only `jackline reset` opens it again");
    ends(&world.jackline(&["status", &id]), 0, "OBJECTIVE_ACHIEVED");
    // Nor is one that was stopped stopped again.
    let events = [r#"{"session":"s","event":"session_started"}"#];
    assert_eq!(world.stdio(&events).answers(), ["allow"]);
    ends(&world.jackline(&["stop", "s"]), 0, "is stopped");
    ends(&world.jackline(&["stop", "s"]), 1, "this session is over: HUMAN_REQUESTED");
    world.prove(&id);
    world.prove("s");
}

/// A session that waits at its checkpoint.
fn at_checkpoint(world: &World, session: &str) {
    let events = ["session_started", "iteration_ended"];
    let events = events.map(|event| format!(r#"{{"session":"{session}","event":"{event}"}}"#));
    assert_eq!(world.stdio(&events).answers(), ["allow", "pause"]);
}

#[test]
fn what_has_ended_says_so_to_every_word_and_names_what_opens_it() {
    let world = World::new("version: 1\nlimits: { iterations: 1 }\n");
    for id in ["s", "run-x"] {
        at_checkpoint(&world, id);
        world.stdio(&[format!(r#"{{"session":"{id}","event":"session_ended"}}"#)]);
        let anew = format!("`jackline reset {id}` opens it anew");
        let says = |args: &[&str], code: i32, what: &str| {
            let run = world.jackline(args);
            ends(&run, code, "has ended with CAPPED{iterations}");
            ends(&run, code, what);
            ends(&run, code, &anew);
            for untrue in ["tell the agent", "ack` goes on", "resume` goes on", "goes on:"] {
                assert!(!format!("{}{}", run.stdout, run.stderr).contains(untrue), "{run:?}");
            }
        };
        let status = || world.jackline(&["status", id]);
        ends(&status(), 0, "it has ended; `jackline reset` opens it anew");
        // Only where somebody can come back there is something to acknowledge for them.
        assert_eq!(status().stdout.contains("`jackline ack`"), id == "s", "{:?}", status());
        says(&["resume", id], 1, "a checkpoint has to be acknowledged");
        let held = if id == "s" { "comes back to it is held" } else { "paused or not" };
        says(&["pause", id], 0, held);
        says(&["ack", id], 0, "its checkpoint is acknowledged");
        says(&["resume", id], 0, "a pause of it is lifted");
        assert!(!status().stdout.contains("to go on"), "{:?}", status());
        ends(&world.jackline(&["reset", id]), 0, "is open again");
        world.prove(id);
    }
}

#[test]
fn a_persons_pause_over_a_checkpoint_has_its_own_word() {
    let world = World::new("version: 1\nlimits: { iterations: 1 }\n");
    at_checkpoint(&world, "s");
    ends(&world.jackline(&["pause", "s", "--by", "dana", "--why", "mine"]), 0, "is paused");
    ends(&world.jackline(&["status", "s"]), 0, "`jackline ack` for the checkpoint");
    ends(&world.jackline(&["resume", "s"]), 0, "`jackline ack` goes on");
    ends(&world.jackline(&["resume", "s"]), 1, "a checkpoint has to be acknowledged");
    ends(&world.jackline(&["pause", "s", "--by", "dana"]), 0, "is paused");
    ends(&world.jackline(&["ack", "s"]), 0, "acknowledged, and is still paused");
    ends(&world.jackline(&["status", "s"]), 0, "or `jackline resume`");
    ends(&world.jackline(&["resume", "s"]), 0, "goes on");
    world.prove("s");
}
