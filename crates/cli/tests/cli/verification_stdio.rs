//! A completion check by command, from the definition to the stop: trust, runs
//! that are quick or slow or die, and what makes them begin anew.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{JACKLINE, World, lines};
use crate::words::{
    finish, message, propose, run, started, stop, stream, tell, tell_one, wait_for, wait_until,
    words,
};

/// So that a test may ask as often as it likes.
const PATIENT: &str = "completion_cap: { blocks: 1000, same: 1000 }\n";

/// A workspace whose definition a person trusts.
fn trusted(completion: &str) -> World {
    let world = World::new(&format!("{PATIENT}completion: {completion}\n"));
    let run = world.jackline(&["trust", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    world
}

/// The runs of a session's checks that have an end.
fn results(world: &World, session: &str) -> usize {
    let runs = fs::read_dir(world.directory(session).join("checks"));
    let ended = |run: &PathBuf| run.join("result").exists();
    runs.map_or(0, |runs| runs.map(|run| run.unwrap().path()).filter(ended).count())
}

/// Stops until nothing is running any more.
fn settled(world: &World, session: &str) -> Value {
    loop {
        let before = results(world, session);
        let verdict = tell_one(world, session, stop());
        if words(&verdict) != "deny verification_running" {
            return verdict;
        }
        wait_until("a check that ends", || results(world, session) > before);
    }
}

/// How often the command began.
fn runs(world: &World) -> usize {
    let log = world.work().join("ran");
    if log.exists() { lines(&log).len() } else { 0 }
}

#[test]
fn a_repositorys_command_runs_once_a_person_trusts_it() {
    let world = World::new(&format!("{PATIENT}completion: {{ command: echo >> ran }}\n"));
    let verdict = &tell(&world, "before", &[started(), stop()])[1];
    assert_eq!(words(verdict), "deny untrusted_command");
    assert_eq!(
        message(verdict),
        "The check `echo >> ran` was not run: a person has to say `jackline trust` for this \
         definition first."
    );
    let shown = world.jackline(&["trust", "--yes"]);
    assert!(shown.stdout.contains("would run on this machine:\n  `echo >> ran`\n"), "{shown:?}");
    assert_eq!(words(&tell_one(&world, "before", stop())), "deny untrusted_command");
    assert_eq!(runs(&world), 0);

    let verdict = settled(&world, "after");
    assert_eq!(
        (words(&verdict).as_str(), &verdict["completion"]),
        ("allow", &json!({"result": "complete"}))
    );
    assert_eq!(runs(&world), 1);

    // Trust is for what was shown.
    let other = format!("{PATIENT}completion: {{ command: echo >> ran; true }}\n");
    fs::write(world.work().join("jackline.yaml"), other).unwrap();
    assert_eq!(words(&tell_one(&world, "changed", stop())), "deny untrusted_command");
    assert_eq!(runs(&world), 1);
    ["before", "after", "changed"].iter().for_each(|session| world.prove(session));
}

#[test]
fn a_failing_command_blocks_with_its_status_and_the_end_of_its_output() {
    let world = trusted("{ command: 'seq 1 9999; echo 3 failed >&2; exit 3' }");
    let verdict = settled(&world, "s");
    assert_eq!(words(&verdict), "deny checker");
    let said = message(&verdict);
    assert!(said.starts_with(
        "The check `seq 1 9999; echo 3 failed >&2; exit 3` failed with exit status 3. It ended with:\n"
    ));
    assert!(said.ends_with("\n9998\n9999\n3 failed") && said.len() < 1200, "{said}");
    assert_eq!(verdict["completion"]["result"], "incomplete");
    world.prove("s");
}

#[test]
fn a_slow_command_is_running_until_it_has_ended() {
    let world = trusted("{ command: 'echo >> ran; until test -e go; do sleep 0.01; done' }");
    for _ in 0..3 {
        let verdict = tell_one(&world, "s", stop());
        assert_eq!(words(&verdict), "deny verification_running");
        assert!(message(&verdict).starts_with("Verification running: `"));
    }
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(settled(&world, "s")["completion"], json!({"result": "complete"}));
    assert_eq!(runs(&world), 1);
    world.prove("s");
}

/// Saying the same is no sign of a stuck gate here, and yet it ends.
#[test]
fn waiting_for_a_slow_command_is_capped_by_the_blocks_of_a_turn() {
    let world = World::new("completion: { command: 'until test -e go; do sleep 0.01; done' }\n");
    world.jackline(&["trust", "--yes"]);
    let stops: Vec<_> = (0..6).map(|_| stop()).collect();
    let verdicts = tell(&world, "s", &stops);
    assert_eq!(words(&verdicts[4]), "deny verification_running");
    assert_eq!(words(&verdicts[5]), "allow");
    assert_eq!(verdicts[5]["completion"]["result"], "capped");
    fs::write(world.work().join("go"), "").unwrap();
    world.prove("s");
}

#[test]
fn a_command_that_takes_too_long_or_dies_says_so() {
    let world = trusted("{ command: { run: 'echo begun; sleep 1000', timeout_seconds: 1 } }");
    let verdict = settled(&world, "s");
    assert_eq!(words(&verdict), "deny checker");
    assert_eq!(
        message(&verdict),
        "The check `echo begun; sleep 1000` took too long and was ended. It ended with:\nbegun"
    );
    world.prove("s");

    let world = trusted("{ command: 'echo bye; kill -9 $$' }");
    let verdict = settled(&world, "s");
    assert_eq!(
        message(&verdict),
        "The check `echo bye; kill -9 $$` was ended by a signal. It ended with:\nbye"
    );
    world.prove("s");
}

#[test]
fn a_failure_is_reported_until_the_agent_acts_and_is_then_checked_anew() {
    let world = trusted("{ command: 'echo >> ran; test -e fixed' }");
    assert_eq!(words(&settled(&world, "s")), "deny checker");
    fs::write(world.work().join("fixed"), "").unwrap();
    // Nothing was done yet, as far as the gate knows.
    assert_eq!(words(&settled(&world, "s")), "deny checker");
    assert_eq!(runs(&world), 1);
    tell(&world, "s", &[run("c", "echo yes > fixed"), finish("c")]);
    assert_eq!(settled(&world, "s")["completion"], json!({"result": "complete"}));
    assert_eq!(runs(&world), 2);
    world.prove("s");
}

/// An agent program without hooks calls nothing that anybody could see.
#[test]
fn a_check_that_failed_begins_anew_once_an_iteration_is_over() {
    let world = trusted("{ command: 'echo >> ran; test -e fixed' }");
    let iteration = || json!({"event": "iteration_ended", "files_changed": 1});
    assert_eq!(words(&settled(&world, "s")), "deny checker");
    tell(&world, "s", &[iteration()]);
    assert_eq!(words(&settled(&world, "s")), "deny checker");
    assert_eq!(runs(&world), 2);
    fs::write(world.work().join("fixed"), "").unwrap();
    tell(&world, "s", &[iteration()]);
    assert_eq!(words(&settled(&world, "s")), "allow");
    assert_eq!(runs(&world), 3);
    // Nothing was done after the stop that was let through.
    let ended = &tell(&world, "s", &[iteration(), json!({"event": "session_ended"})])[1];
    assert_eq!(ended["completion"], json!({"result": "complete"}));
    assert_eq!(runs(&world), 3);
    world.prove("s");
}

#[test]
fn a_pass_holds_until_the_workspace_changes() {
    let world = trusted("{ command: 'echo >> ran; test ! -e broken' }");
    for _ in 0..2 {
        assert_eq!(words(&settled(&world, "s")), "allow");
        tell(&world, "s", &[run("r", "cat jackline.yaml"), finish("r")]);
    }
    assert_eq!(runs(&world), 1);
    let edit = propose("w", "Write", &json!({"file_path": "broken", "content": ""}));
    tell(&world, "s", &[edit]);
    fs::write(world.work().join("broken"), "").unwrap();
    tell(&world, "s", &[finish("w")]);
    assert_eq!(words(&settled(&world, "s")), "deny checker");
    assert_eq!(runs(&world), 2);
    world.prove("s");
}

#[test]
fn a_pass_of_what_was_changed_meanwhile_is_worth_nothing() {
    let world = trusted(
        "{ command: 'echo >> ran; until test -e go; do sleep 0.01; done; test ! -e broken' }",
    );
    assert_eq!(words(&tell_one(&world, "s", stop())), "deny verification_running");
    tell(&world, "s", &[run("c", "echo no > broken"), finish("c")]);
    fs::write(world.work().join("go"), "").unwrap();
    wait_until("the first run", || results(&world, "s") == 1);
    fs::write(world.work().join("broken"), "").unwrap();
    assert_eq!(words(&settled(&world, "s")), "deny checker");
    assert_eq!(runs(&world), 2);
    world.prove("s");
}

#[test]
fn a_command_waits_for_the_files_that_are_wanted_with_it() {
    let world = trusted("{ all: [ files: [report.md], command: echo >> ran ] }");
    let verdict = tell_one(&world, "s", stop());
    assert_eq!(words(&verdict), "deny missing_files");
    assert_eq!(message(&verdict), "The required file `report.md` is missing.");
    assert_eq!(runs(&world), 0);
    fs::write(world.work().join("report.md"), "done").unwrap();
    assert_eq!(words(&settled(&world, "s")), "allow");
    assert_eq!(runs(&world), 1);
    world.prove("s");
}

#[test]
fn a_command_is_spared_where_a_file_is_enough() {
    let world = trusted("{ any: [ files: [report.md], command: echo >> ran; false ] }");
    fs::write(world.work().join("report.md"), "done").unwrap();
    assert_eq!(words(&settled(&world, "s")), "allow");
    assert_eq!(runs(&world), 0);
    fs::remove_file(world.work().join("report.md")).unwrap();
    let verdict = settled(&world, "s");
    assert_eq!(
        message(&verdict),
        "The required file `report.md` is missing. The check `echo >> ran; false` failed with exit \
         status 1."
    );
    world.prove("s");
}

/// Whoever asked is killed before it could write anything down.
#[test]
fn a_gate_that_is_killed_leaves_its_run_to_the_next_one() {
    let world = trusted("{ command: 'echo >> ran; until test -e go; do sleep 0.01; done' }");
    let mut gate = world
        .command(JACKLINE)
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = gate.stdin.take().unwrap();
    stdin.write_all(stream("s", &[stop()]).as_bytes()).unwrap();
    wait_for(&world.work().join("ran"));
    gate.kill().unwrap();
    gate.wait().unwrap();

    assert_eq!(words(&tell_one(&world, "s", stop())), "deny verification_running");
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(words(&settled(&world, "s")), "allow");
    assert_eq!(runs(&world), 1);
    world.prove("s");
}

#[test]
fn a_run_whose_supervisor_dies_is_a_broken_guard_and_begins_anew() {
    let line = "echo $PPID >> ran; until test -e go; do sleep 0.01; done";
    let world = trusted(&format!("{{ command: '{line}' }}"));
    assert_eq!(words(&tell_one(&world, "s", stop())), "deny verification_running");
    wait_for(&world.work().join("ran"));
    let supervisor = lines(&world.work().join("ran")).remove(0);
    assert!(world.command("kill").args(["-9", &supervisor]).status().unwrap().success());
    wait_until("its lock", || words(&tell_one(&world, "s", stop())) != "deny verification_running");
    let verdict = tell_one(&world, "s", stop());
    assert_eq!(words(&verdict), "deny checker_broken");
    assert_eq!(
        message(&verdict),
        format!(
            "The guard is broken, not the work: `{line}` can't be run: the verification did not \
             finish; it can be started again."
        )
    );
    fs::write(world.work().join("go"), "").unwrap();
    tell(&world, "s", &[run("c", "ls"), finish("c")]);
    assert_eq!(words(&settled(&world, "s")), "allow");
    assert_eq!(runs(&world), 2);
    world.prove("s");
}

#[test]
fn an_agent_that_leaves_is_not_waited_for() {
    let world = trusted("{ command: 'echo >> ran; until test -e go; do sleep 0.01; done' }");
    let end = || json!({"event": "session_ended"});
    let verdict = tell_one(&world, "at-once", end());
    assert_eq!((words(&verdict).as_str(), runs(&world)), ("allow", 0));
    assert_eq!(verdict["completion"]["result"], "incomplete");

    let verdicts = tell(&world, "while-running", &[stop(), end()]);
    assert_eq!(verdicts[1]["completion"]["result"], "incomplete");

    tell(&world, "after", &[stop()]);
    fs::write(world.work().join("go"), "").unwrap();
    wait_until("the run", || results(&world, "after") == 1);
    let verdict = tell_one(&world, "after", end());
    assert_eq!(verdict["completion"], json!({"result": "complete"}));
    ["at-once", "while-running", "after"].iter().for_each(|session| world.prove(session));
}

#[test]
fn two_gates_at_once_start_it_once() {
    let world = trusted("{ command: 'echo >> ran; until test -e go; do sleep 0.01; done' }");
    tell_one(&world, "s", started());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(words(&tell_one(&world, "s", stop())), "deny verification_running");
            });
        }
    });
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(words(&settled(&world, "s")), "allow");
    assert_eq!(runs(&world), 1);
    world.prove("s");
}
