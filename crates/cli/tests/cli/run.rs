//! `jackline run`: an agent works on its own, and ends with one stop code.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jackline_host::clock::now;
use serde_json::Value;

use crate::run_support::{
    REPORT, Task, WORKS, code, end_of, ended, normalised, session, sleepers, told, until,
};
use crate::support::World;

#[test]
fn what_is_asked_for_is_done_and_the_journal_proves_it() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let run = task.run(&[]);
    assert_eq!((run.code, code(&run)), (Some(0), "OBJECTIVE_ACHIEVED".into()), "{run:?}");
    let ended = ended(&run);
    assert_eq!(ended["outcome"]["value"], "It is written.");
    assert_eq!(ended["evidence"]["files_changed"], serde_json::json!(["report.md"]));
    world.prove(&session(&run));
}

#[test]
fn a_stop_that_comes_too_early_goes_on_with_what_is_missing() {
    let world = World::new("");
    let script = WORKS.replace("steps:\n", "steps:\n  - text: Done!\n");
    let task = Task::new(&world, REPORT, &[("main", &script)]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let stops: Vec<bool> =
        told(&run, "stopping").iter().map(|it| it["allowed"].as_bool().unwrap()).collect();
    assert_eq!(stops, [false, true]);
}

#[test]
fn the_iteration_cap_waits_for_an_acknowledgement_and_goes_on() {
    let world = World::new("");
    // Each iteration writes something, so that it is progress, and stops too early.
    let step = |n: u32| {
        format!(
            "  - calls: [{{ tool: write_file, args: {{ path: n{n}, content: x }} }}]\n  - text: Done {n}.\n"
        )
    };
    let steps: String = (0..3).map(step).collect();
    let script = format!("steps:\n{steps}{}", WORKS.trim_start_matches("steps:\n"));
    let definition = format!(
        "{REPORT}limits: {{ iterations: 2 }}\nprogress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n"
    );
    let task = Task::new(&world, &definition, &[("main", &script)]);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(1));
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    assert!(world.work().join(".jackline/CHECKPOINT.md").is_file());
    let id = session(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0));
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&id);
}

#[test]
fn three_iterations_that_bring_nothing_are_a_blocker_and_removing_the_report_goes_on() {
    let world = World::new("");
    let idle = "  - text: I am done.\n".repeat(3);
    let script = format!("steps:\n{idle}{}", WORKS.trim_start_matches("steps:\n"));
    let definition = format!("{REPORT}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let task = Task::new(&world, &definition, &[("main", &script)]);
    let run = task.run(&[]);
    assert!(code(&run).contains("3 iterations in a row failed"), "{run:?}");
    let report = world.work().join(".jackline/BLOCKER_REPORT.md");
    assert!(report.is_file());
    fs::remove_file(report).unwrap();
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn an_advisor_is_asked_before_the_next_model_and_that_before_a_person() {
    let world = World::new("");
    let circles = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\nrepeat: true\n";
    let advice = "steps:\n  - text: Look elsewhere.\nrepeat: true\n";
    let definition = format!(
        "{REPORT}loops: {{}}\nadvisor: {{ models: [{{ provider: scripted, model: advisor }}], budget: 1 }}\n"
    );
    let scripts = [("main", circles), ("second", circles), ("advisor", advice)];
    let task = Task::new(&world, &definition, &scripts);
    let run = task.run(&[]);
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let order: Vec<String> = run
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned()
        })
        .filter(|event| ["advised", "changed"].contains(&event.as_str()))
        .collect();
    assert_eq!(order, ["advised", "changed"]);
    let log = fs::read_to_string(world.work().join(".jackline/safety_log.json")).unwrap();
    for kind in ["HARD_LOOP", "OUT_OF_BAND_ADVISOR", "MODEL_FALLBACK"] {
        assert!(log.contains(kind), "{kind}: {log}");
    }
    world.prove(&session(&run));
}

#[test]
fn a_full_context_is_briefed_and_the_work_goes_on_in_a_new_conversation() {
    let world = World::new("");
    let full = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\n    usage: { input: 81000, output: 10 }\n";
    let script = format!("{full}{}", WORKS.trim_start_matches("steps:\n"));
    let task = Task::new(&world, &format!("{REPORT}context: {{}}\n"), &[("main", &script)]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "restarted")[0]["pct"], 81);
    let kept = world.directory(&session(&run)).join("conversation.jsonl");
    let first = fs::read_to_string(kept).unwrap();
    assert!(first.lines().next().unwrap().contains("Where the work stands"), "{first}");
    world.prove(&session(&run));
}

#[test]
fn an_overloaded_model_is_followed_by_the_next_at_once() {
    let world = World::new("");
    let busy = "steps:\n  - status: 529\nrepeat: true\n";
    let task = Task::new(&world, REPORT, &[("main", busy), ("second", WORKS)]);
    let began = now().boot_ms;
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let changed = told(&run, "changed");
    assert_eq!(changed.len(), 1);
    assert_eq!(
        (&changed[0]["to"], &changed[0]["reason"]),
        (&"scripted/second".into(), &"overload".into())
    );
    assert!(now().boot_ms < began + 20_000);
    world.prove(&session(&run));
}

#[test]
fn where_nobody_can_answer_the_session_says_so() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", "steps:\n  - status: 401\nrepeat: true\n")]);
    let run = task.run(&[]);
    assert_eq!((run.code, code(&run)), (Some(1), "SYSTEM_ERROR{model}".into()), "{run:?}");
    assert_eq!(ended(&run)["outcome"]["error_message"], "This request couldn't be completed.");
    world.prove(&session(&run));
}

/// A command that leaves its session, and would go on for minutes.
fn sleeps(seconds: u32) -> String {
    let line = format!("setsid sleep {seconds} & touch began; sleep {seconds}; touch late");
    let rest = WORKS.trim_start_matches("steps:\n");
    format!("steps:\n  - calls: [{{ tool: shell, args: {{ command: '{line}' }} }}]\n{rest}")
}

#[test]
fn a_stop_file_ends_a_command_within_a_second_and_leaves_nobody() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", &sleeps(297))]);
    let child = task.start(&[]);
    until("the command", || world.work().join("began").exists());
    fs::create_dir_all(world.work().join(".jackline")).unwrap();
    let stopped = now().boot_ms;
    fs::write(world.work().join(".jackline/STOP"), "").unwrap();
    until("the end of the command", || sleepers(297) == 0);
    let ms = now().boot_ms - stopped;
    assert!(ms < 1500, "{ms} ms");
    let run = end_of(child);
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert!(!world.work().join("late").exists() && !world.work().join("report.md").exists());
    world.prove(&session(&run));
}

#[test]
fn a_run_that_was_killed_goes_on_and_knows_what_was_cut_off() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", &sleeps(298))]);
    let mut child = task.start(&[]);
    until("the command", || world.work().join("began").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || sleepers(298) == 0);
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let kept = world.directory(&session(&run)).join("conversation.jsonl");
    assert!(fs::read_to_string(kept).unwrap().contains("cut off while this ran"));
    world.prove(&session(&run));
    let again = task.resume(&[]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("is over: OBJECTIVE_ACHIEVED"), "{again:?}");
}

#[test]
fn a_pause_file_holds_the_run_until_it_is_removed() {
    let world = World::new("");
    fs::create_dir_all(world.work().join(".jackline")).unwrap();
    let pause = world.work().join(".jackline/PAUSE");
    fs::write(&pause, "").unwrap();
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let child = task.start(&[]);
    until("the session", || {
        fs::read_dir(world.home().join("sessions")).is_ok_and(|mut it| it.next().is_some())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(!world.work().join("report.md").exists());
    fs::remove_file(pause).unwrap();
    until("the report", || world.work().join("report.md").exists());
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn two_runs_of_one_script_leave_the_same_journal() {
    let journals: Vec<String> = (0..2)
        .map(|_| {
            let world = World::new("");
            let script = WORKS.replace(
                "steps:\n",
                "steps:\n  - calls: [{ tool: shell, args: { command: ls } }]\n  - text: Done!\n",
            );
            let task = Task::new(&world, REPORT, &[("main", &script)]);
            let run = task.run(&[]);
            world.prove(&session(&run));
            normalised(&world, &session(&run))
        })
        .collect();
    assert_eq!(journals[0], journals[1]);
}

#[test]
fn everything_that_is_wrong_with_a_task_is_said_at_once() {
    let world = World::new("");
    let file = world.work().join("task.yaml");
    fs::write(&file, "promt: x\nmodel: { script: nowhere.yaml }\ntools: [read_fil]\ncopy: gone\n")
        .unwrap();
    let run = world.jackline(&["run", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    for part in [
        "did you mean `prompt`?",
        "needs a `prompt`",
        "nowhere.yaml",
        "`read_file`",
        "`copy` names",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

#[test]
fn a_key_that_is_missing_is_named_before_anything_is_done() {
    let world = World::new("");
    let file = world.work().join("task.yaml");
    fs::write(&file, "prompt: x\nmodel: { provider: anthropic, name: m }\n").unwrap();
    let run = world.jackline(&["run", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("set ANTHROPIC_API_KEY"), "{}", run.stderr);
    assert!(!Path::new(&world.home()).join("sessions").exists());
    fs::write(&file, "prompt: x\n").unwrap();
    let run = world.jackline(&["run", file.to_str().unwrap()]);
    assert!(run.code == Some(2) && run.stderr.contains("nobody is there to work"), "{run:?}");
}

#[test]
fn an_agent_that_is_not_the_approved_one_does_nothing() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let approved = session(&task.run(&[]));
    let words = ["identity", "approve", &approved, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&words).code, Some(0));
    fs::remove_file(world.work().join("report.md")).unwrap();
    // Another definition makes another agent of it.
    let task = Task::new(&world, &format!("{REPORT}limits: {{ steps: 99 }}\n"), &[("main", WORKS)]);
    let run = task.run(&[]);
    assert_eq!((run.code, code(&run)), (Some(1), "SYSTEM_ERROR{identity}".into()), "{run:?}");
    assert!(!world.work().join("report.md").exists());
    world.prove(&session(&run));
    assert_eq!(
        world.jackline(&["identity", "approve", &session(&run), "--by", "dana"]).code,
        Some(0)
    );
    assert_eq!(code(&task.run(&[])), "OBJECTIVE_ACHIEVED");
}
