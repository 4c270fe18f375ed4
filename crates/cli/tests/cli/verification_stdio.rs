//! Tests of a completion check by command, from the definition to the stop: trust, checks that are
//! quick, slow or killed, and the events that start a check again.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::session_events::{
    event_lines, send_event, send_events, session_started, shell_proposed, stop_proposed,
    tool_finished, tool_proposed, verdict_summary, violation_message, wait_for_path, wait_until,
};
use crate::support::{CliWorld, JACKLINE, read_lines};

/// A high cap, so that a test may propose any number of stops.
const HIGH_CAP: &str = "completion_cap: { blocks: 1000, same: 1000 }\n";

/// A workspace with a trusted definition.
fn trusted_world(completion: &str) -> CliWorld {
    let world = CliWorld::new(&format!("{HIGH_CAP}completion: {completion}\n"));
    let run = world.jackline(&["trust", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    world
}

/// Counts the finished checks of a session.
fn finished_checks(world: &CliWorld, session: &str) -> usize {
    let runs = fs::read_dir(world.session_directory(session).join("checks"));
    let ended = |run: &PathBuf| run.join("result").exists();
    runs.map_or(0, |runs| runs.map(|run| run.unwrap().path()).filter(ended).count())
}

/// Proposes stops until no check is running, and returns the last verdict.
fn propose_stop_until_checked(world: &CliWorld, session: &str) -> Value {
    loop {
        let before = finished_checks(world, session);
        let verdict = send_event(world, session, stop_proposed());
        if verdict_summary(&verdict) != "deny verification_running" {
            return verdict;
        }
        wait_until("a check to end", || finished_checks(world, session) > before);
    }
}

/// Counts the starts of the check command.
fn check_starts(world: &CliWorld) -> usize {
    let log = world.workspace().join("starts");
    if log.exists() { read_lines(&log).len() } else { 0 }
}

#[test]
fn a_repositorys_command_runs_once_a_person_trusts_it() {
    let world = CliWorld::new(&format!("{HIGH_CAP}completion: {{ command: echo >> starts }}\n"));
    let verdict = &send_events(&world, "before", &[session_started(), stop_proposed()])[1];
    assert_eq!(verdict_summary(verdict), "deny untrusted_command");
    assert_eq!(
        violation_message(verdict),
        "The check `echo >> starts` was not run: a person must first run `jackline trust` \
         for this definition."
    );
    let trust = world.jackline(&["trust", "--yes"]);
    assert!(
        trust.stdout.contains("would run these commands on this machine:\n  `echo >> starts`\n"),
        "{trust:?}"
    );
    // The agent was told once, and nothing else that it does would help.
    let verdict = send_event(&world, "before", stop_proposed());
    assert_eq!(verdict["decision"], "allow");
    assert_eq!(verdict["completion"]["result"], "unverified");
    assert_eq!(check_starts(&world), 0);

    let verdict = propose_stop_until_checked(&world, "after");
    assert_eq!(
        (verdict_summary(&verdict).as_str(), &verdict["completion"]),
        ("allow", &json!({"result": "complete"}))
    );
    assert_eq!(check_starts(&world), 1);

    // The trust is valid only for the definition that was shown.
    let other = format!("{HIGH_CAP}completion: {{ command: echo >> starts; true }}\n");
    fs::write(world.workspace().join("jackline.yaml"), other).unwrap();
    assert_eq!(
        verdict_summary(&send_event(&world, "changed", stop_proposed())),
        "deny untrusted_command"
    );
    assert_eq!(check_starts(&world), 1);
    ["before", "after", "changed"].iter().for_each(|session| world.verify_and_replay(session));
}

#[test]
fn a_failed_check_blocks_with_its_status_and_the_end_of_its_output() {
    let world = trusted_world("{ command: 'seq 1 9999; echo 3 failed >&2; exit 3' }");
    let verdict = propose_stop_until_checked(&world, "s");
    assert_eq!(verdict_summary(&verdict), "deny checker");
    let text = violation_message(&verdict);
    assert!(text.starts_with(
        "The check `seq 1 9999; echo 3 failed >&2; exit 3` failed with exit status 3. Last output:\n"
    ));
    assert!(text.ends_with("\n9998\n9999\n3 failed") && text.len() < 1200, "{text}");
    assert_eq!(verdict["completion"]["result"], "incomplete");
    world.verify_and_replay("s");
}

#[test]
fn a_slow_check_is_running_until_it_ends() {
    let world =
        trusted_world("{ command: 'echo >> starts; until test -e go; do sleep 0.01; done' }");
    for _ in 0..3 {
        let verdict = send_event(&world, "s", stop_proposed());
        assert_eq!(verdict_summary(&verdict), "deny verification_running");
        assert!(violation_message(&verdict).starts_with("The check `"));
    }
    fs::write(world.workspace().join("go"), "").unwrap();
    assert_eq!(
        propose_stop_until_checked(&world, "s")["completion"],
        json!({"result": "complete"})
    );
    assert_eq!(check_starts(&world), 1);
    world.verify_and_replay("s");
}

/// The same text each time does not count as repetition here, but the number of blocks is limited.
#[test]
fn waiting_for_a_slow_check_is_limited_by_the_blocks_of_a_turn() {
    let world = CliWorld::new("completion: { command: 'until test -e go; do sleep 0.01; done' }\n");
    world.jackline(&["trust", "--yes"]);
    let stops: Vec<_> = (0..6).map(|_| stop_proposed()).collect();
    let verdicts = send_events(&world, "s", &stops);
    assert_eq!(verdict_summary(&verdicts[4]), "deny verification_running");
    assert_eq!(verdict_summary(&verdicts[5]), "allow");
    assert_eq!(verdicts[5]["completion"]["result"], "capped");
    fs::write(world.workspace().join("go"), "").unwrap();
    world.verify_and_replay("s");
}

#[test]
fn a_check_that_is_timed_out_or_killed_is_reported() {
    let world =
        trusted_world("{ command: { run: 'echo running; sleep 1000', timeout_seconds: 1 } }");
    let verdict = propose_stop_until_checked(&world, "s");
    assert_eq!(verdict_summary(&verdict), "deny checker");
    assert_eq!(
        violation_message(&verdict),
        "The check `echo running; sleep 1000` timed out and was killed. Last output:\nrunning"
    );
    world.verify_and_replay("s");

    let world = trusted_world("{ command: 'echo bye; kill -9 $$' }");
    let verdict = propose_stop_until_checked(&world, "s");
    assert_eq!(
        violation_message(&verdict),
        "The check `echo bye; kill -9 $$` was killed by a signal. Last output:\nbye"
    );
    world.verify_and_replay("s");
}

#[test]
fn a_failure_is_reported_until_the_agent_acts_and_then_checked_again() {
    let world = trusted_world("{ command: 'echo >> starts; test -e fixed' }");
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "deny checker");
    fs::write(world.workspace().join("fixed"), "").unwrap();
    // As far as the gate knows, nothing was changed.
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "deny checker");
    assert_eq!(check_starts(&world), 1);
    send_events(&world, "s", &[shell_proposed("c", "echo yes > fixed"), tool_finished("c")]);
    assert_eq!(
        propose_stop_until_checked(&world, "s")["completion"],
        json!({"result": "complete"})
    );
    assert_eq!(check_starts(&world), 2);
    world.verify_and_replay("s");
}

/// The calls of an agent program without hooks are not visible, so the end of an iteration counts
/// instead.
#[test]
fn a_failed_check_runs_again_after_the_end_of_an_iteration() {
    let world = trusted_world("{ command: 'echo >> starts; test -e fixed' }");
    let iteration = || json!({"event": "iteration_ended", "files_changed": 1});
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "deny checker");
    send_events(&world, "s", &[iteration()]);
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "deny checker");
    assert_eq!(check_starts(&world), 2);
    fs::write(world.workspace().join("fixed"), "").unwrap();
    send_events(&world, "s", &[iteration()]);
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "allow");
    assert_eq!(check_starts(&world), 3);
    // Nothing was done after the allowed stop.
    let ended = &send_events(&world, "s", &[iteration(), json!({"event": "session_ended"})])[1];
    assert_eq!(ended["completion"], json!({"result": "complete"}));
    assert_eq!(check_starts(&world), 3);
    world.verify_and_replay("s");
}

#[test]
fn a_passed_check_is_valid_until_the_workspace_changes() {
    let world = trusted_world("{ command: 'echo >> starts; test ! -e broken' }");
    for _ in 0..2 {
        assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "allow");
        send_events(&world, "s", &[shell_proposed("r", "cat jackline.yaml"), tool_finished("r")]);
    }
    assert_eq!(check_starts(&world), 1);
    let edit = tool_proposed("w", "Write", &json!({"file_path": "broken", "content": ""}));
    send_events(&world, "s", &[edit]);
    fs::write(world.workspace().join("broken"), "").unwrap();
    send_events(&world, "s", &[tool_finished("w")]);
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "deny checker");
    assert_eq!(check_starts(&world), 2);
    world.verify_and_replay("s");
}

#[test]
fn a_passed_check_does_not_count_if_the_workspace_changed_meanwhile() {
    let world = trusted_world(
        "{ command: 'echo >> starts; until test -e go; do sleep 0.01; done; test ! -e broken' }",
    );
    assert_eq!(
        verdict_summary(&send_event(&world, "s", stop_proposed())),
        "deny verification_running"
    );
    send_events(&world, "s", &[shell_proposed("c", "echo no > broken"), tool_finished("c")]);
    fs::write(world.workspace().join("go"), "").unwrap();
    wait_until("the first run", || finished_checks(&world, "s") == 1);
    fs::write(world.workspace().join("broken"), "").unwrap();
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "deny checker");
    assert_eq!(check_starts(&world), 2);
    world.verify_and_replay("s");
}

#[test]
fn a_check_by_command_runs_only_after_the_required_files_exist() {
    let world = trusted_world("{ all: [ files: [report.md], command: echo >> starts ] }");
    let verdict = send_event(&world, "s", stop_proposed());
    assert_eq!(verdict_summary(&verdict), "deny missing_files");
    assert_eq!(violation_message(&verdict), "The required file `report.md` is missing.");
    assert_eq!(check_starts(&world), 0);
    fs::write(world.workspace().join("report.md"), "done").unwrap();
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "allow");
    assert_eq!(check_starts(&world), 1);
    world.verify_and_replay("s");
}

#[test]
fn a_check_by_command_does_not_run_if_a_file_is_sufficient() {
    let world = trusted_world("{ any: [ files: [report.md], command: echo >> starts; false ] }");
    fs::write(world.workspace().join("report.md"), "done").unwrap();
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "allow");
    assert_eq!(check_starts(&world), 0);
    fs::remove_file(world.workspace().join("report.md")).unwrap();
    let verdict = propose_stop_until_checked(&world, "s");
    assert_eq!(
        violation_message(&verdict),
        "One of these is enough: (1) The required file `report.md` is missing. (2) The check `echo >> \
         starts; false` failed with exit status 1."
    );
    world.verify_and_replay("s");
}

/// The gate is killed before it can record anything.
#[test]
fn a_killed_gate_leaves_its_check_to_the_next_gate() {
    let world =
        trusted_world("{ command: 'echo >> starts; until test -e go; do sleep 0.01; done' }");
    let mut gate = world
        .command(JACKLINE)
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = gate.stdin.take().unwrap();
    stdin.write_all(event_lines("s", &[stop_proposed()]).as_bytes()).unwrap();
    wait_for_path(&world.workspace().join("starts"));
    gate.kill().unwrap();
    gate.wait().unwrap();

    assert_eq!(
        verdict_summary(&send_event(&world, "s", stop_proposed())),
        "deny verification_running"
    );
    fs::write(world.workspace().join("go"), "").unwrap();
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "allow");
    assert_eq!(check_starts(&world), 1);
    world.verify_and_replay("s");
}

#[test]
fn a_check_whose_supervisor_dies_is_reported_as_broken_and_started_again() {
    let command = "echo $PPID >> starts; until test -e go; do sleep 0.01; done";
    let world = trusted_world(&format!("{{ command: '{command}' }}"));
    assert_eq!(
        verdict_summary(&send_event(&world, "s", stop_proposed())),
        "deny verification_running"
    );
    wait_for_path(&world.workspace().join("starts"));
    let supervisor = read_lines(&world.workspace().join("starts")).remove(0);
    assert!(world.command("kill").args(["-9", &supervisor]).status().unwrap().success());
    wait_until("the lock to be released", || {
        verdict_summary(&send_event(&world, "s", stop_proposed())) != "deny verification_running"
    });
    let verdict = send_event(&world, "s", stop_proposed());
    assert_eq!(verdict_summary(&verdict), "deny checker_broken");
    assert_eq!(
        violation_message(&verdict),
        format!(
            "The guard is broken, not the work: `{command}` can't be run: the verification did not \
             finish; it can be started again."
        )
    );
    fs::write(world.workspace().join("go"), "").unwrap();
    send_events(&world, "s", &[shell_proposed("c", "ls"), tool_finished("c")]);
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "allow");
    assert_eq!(check_starts(&world), 2);
    world.verify_and_replay("s");
}

#[test]
fn the_end_of_a_session_does_not_wait_for_a_check() {
    let world =
        trusted_world("{ command: 'echo >> starts; until test -e go; do sleep 0.01; done' }");
    let end = || json!({"event": "session_ended"});
    let verdict = send_event(&world, "at-once", end());
    assert_eq!((verdict_summary(&verdict).as_str(), check_starts(&world)), ("allow", 0));
    assert_eq!(verdict["completion"]["result"], "incomplete");

    let verdicts = send_events(&world, "while-running", &[stop_proposed(), end()]);
    assert_eq!(verdicts[1]["completion"]["result"], "incomplete");

    send_events(&world, "after", &[stop_proposed()]);
    fs::write(world.workspace().join("go"), "").unwrap();
    wait_until("the run", || finished_checks(&world, "after") == 1);
    let verdict = send_event(&world, "after", end());
    assert_eq!(verdict["completion"], json!({"result": "complete"}));
    ["at-once", "while-running", "after"]
        .iter()
        .for_each(|session| world.verify_and_replay(session));
}

#[test]
fn parallel_gates_start_a_check_once() {
    let world =
        trusted_world("{ command: 'echo >> starts; until test -e go; do sleep 0.01; done' }");
    send_event(&world, "s", session_started());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(
                    verdict_summary(&send_event(&world, "s", stop_proposed())),
                    "deny verification_running"
                );
            });
        }
    });
    fs::write(world.workspace().join("go"), "").unwrap();
    assert_eq!(verdict_summary(&propose_stop_until_checked(&world, "s")), "allow");
    assert_eq!(check_starts(&world), 1);
    world.verify_and_replay("s");
}
