//! Tests of `jackline run`: an agent works without a client, and the run ends with one stop code.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jackline_host::clock::now;
use serde_json::Value;

use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, count_sleepers, ended_event, events_named,
    normalised_journal, poll_until, session_id, stop_code, wait_for_output,
};
use crate::support::{CliWorld, run_with_input};

#[test]
fn a_finished_run_is_proven_by_its_journal() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let run = task.run(&[]);
    assert_eq!((run.code, stop_code(&run)), (Some(0), "OBJECTIVE_ACHIEVED".into()), "{run:?}");
    let ended = ended_event(&run);
    assert_eq!(ended["outcome"]["value"], "It is written.");
    assert_eq!(ended["evidence"]["files_changed"], serde_json::json!(["report.md"]));
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn after_an_early_stop_the_agent_is_told_what_is_missing() {
    let world = CliWorld::new("");
    let script = REPORT_SCRIPT.replace("steps:\n", "steps:\n  - text: Done!\n");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]);
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let stops: Vec<bool> =
        events_named(&run, "stopping").iter().map(|it| it["allowed"].as_bool().unwrap()).collect();
    assert_eq!(stops, [false, true]);
}

#[test]
fn the_iteration_limit_waits_for_an_acknowledgement_and_continues() {
    let world = CliWorld::new("");
    // Each iteration writes a file, which counts as progress, and then stops too early.
    let step = |n: u32| {
        format!(
            "  - calls: [{{ tool: write_file, args: {{ path: n{n}, content: x }} }}]\n  - text: Done {n}.\n"
        )
    };
    let steps: String = (0..3).map(step).collect();
    let script = format!("steps:\n{steps}{}", REPORT_SCRIPT.trim_start_matches("steps:\n"));
    let definition = format!(
        "{REPORT_COMPLETION}limits: {{ iterations: 2 }}\nprogress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n"
    );
    let task = TaskDirectory::new(&world, &definition, &[("main", &script)]);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(1));
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    assert!(world.workspace().join(".jackline/CHECKPOINT.md").is_file());
    let id = session_id(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0));
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
}

#[test]
fn three_iterations_without_progress_are_a_blocker_and_removing_the_report_clears_it() {
    let world = CliWorld::new("");
    let idle = "  - text: I am done.\n".repeat(3);
    let script = format!("steps:\n{idle}{}", REPORT_SCRIPT.trim_start_matches("steps:\n"));
    let definition =
        format!("{REPORT_COMPLETION}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let task = TaskDirectory::new(&world, &definition, &[("main", &script)]);
    let run = task.run(&[]);
    assert!(stop_code(&run).contains("3 iterations in a row failed"), "{run:?}");
    let report = world.workspace().join(".jackline/BLOCKER_REPORT.md");
    assert!(report.is_file());
    fs::remove_file(report).unwrap();
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn the_advisor_is_asked_before_the_next_model_and_the_next_model_before_a_person() {
    let world = CliWorld::new("");
    let circles = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\nrepeat: true\n";
    let advice = "steps:\n  - text: Look elsewhere.\nrepeat: true\n";
    let definition = format!(
        "{REPORT_COMPLETION}loops: {{}}\nadvisor: {{ models: [{{ provider: scripted, model: advisor }}], budget: 1 }}\n"
    );
    let scripts = [("main", circles), ("second", circles), ("advisor", advice)];
    let task = TaskDirectory::new(&world, &definition, &scripts);
    let run = task.run(&[]);
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let order: Vec<String> = run
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned()
        })
        .filter(|event| ["advised", "changed"].contains(&event.as_str()))
        .collect();
    assert_eq!(order, ["advised", "changed"]);
    let log = fs::read_to_string(world.workspace().join(".jackline/safety_log.json")).unwrap();
    for kind in ["HARD_LOOP", "OUT_OF_BAND_ADVISOR", "MODEL_FALLBACK"] {
        assert!(log.contains(kind), "{kind}: {log}");
    }
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_full_context_is_summarised_and_the_work_continues_in_a_new_conversation() {
    let world = CliWorld::new("");
    let full = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\n    usage: { input: 81000, output: 10 }\n";
    let script = format!("{full}{}", REPORT_SCRIPT.trim_start_matches("steps:\n"));
    let task = TaskDirectory::new(
        &world,
        &format!("{REPORT_COMPLETION}context: {{}}\n"),
        &[("main", &script)],
    );
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "restarted")[0]["pct"], 81);
    let conversation = world.session_directory(&session_id(&run)).join("conversation.jsonl");
    let first = fs::read_to_string(conversation).unwrap();
    assert!(first.lines().next().unwrap().contains("State of the work"), "{first}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn an_overloaded_model_is_replaced_by_the_next_at_once() {
    let world = CliWorld::new("");
    let busy = "steps:\n  - status: 529\nrepeat: true\n";
    let task =
        TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", busy), ("second", REPORT_SCRIPT)]);
    let start_ms = now().boot_ms;
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let changed = events_named(&run, "changed");
    assert_eq!(changed.len(), 1);
    assert_eq!(
        (&changed[0]["to"], &changed[0]["reason"]),
        (&"scripted/second".into(), &"overload".into())
    );
    assert!(now().boot_ms < start_ms + 20_000);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_run_without_a_usable_model_ends_with_an_error() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(
        &world,
        REPORT_COMPLETION,
        &[("main", "steps:\n  - status: 401\nrepeat: true\n")],
    );
    let run = task.run(&[]);
    assert_eq!((run.code, stop_code(&run)), (Some(1), "SYSTEM_ERROR{model}".into()), "{run:?}");
    assert_eq!(
        ended_event(&run)["outcome"]["error_message"],
        "This request couldn't be completed."
    );
    world.verify_and_replay(&session_id(&run));
}

/// A model script with a command that starts a detached process and runs for minutes.
fn long_command_script(seconds: u32) -> String {
    let command = format!("setsid sleep {seconds} & touch started; sleep {seconds}; touch late");
    let rest = REPORT_SCRIPT.trim_start_matches("steps:\n");
    format!("steps:\n  - calls: [{{ tool: shell, args: {{ command: '{command}' }} }}]\n{rest}")
}

#[test]
fn a_stop_file_ends_a_command_within_a_second_with_all_its_processes() {
    let world = CliWorld::new("");
    let task =
        TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &long_command_script(297))]);
    let child = task.start(&[]);
    poll_until("the command", || world.workspace().join("started").exists());
    fs::create_dir_all(world.workspace().join(".jackline")).unwrap();
    let stopped = now().boot_ms;
    fs::write(world.workspace().join(".jackline/STOP"), "").unwrap();
    poll_until("the end of the command", || count_sleepers(297) == 0);
    let ms = now().boot_ms - stopped;
    assert!(ms < 1500, "{ms} ms");
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert!(
        !world.workspace().join("late").exists() && !world.workspace().join("report.md").exists()
    );
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_killed_run_is_resumed_and_the_model_is_told_of_the_interrupted_call() {
    let world = CliWorld::new("");
    let task =
        TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &long_command_script(298))]);
    let mut child = task.start(&[]);
    poll_until("the command", || world.workspace().join("started").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the command", || count_sleepers(298) == 0);
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let conversation = world.session_directory(&session_id(&run)).join("conversation.jsonl");
    assert!(
        fs::read_to_string(conversation).unwrap().contains("run was interrupted during this call")
    );
    world.verify_and_replay(&session_id(&run));
    let again = task.resume(&[]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("has ended: OBJECTIVE_ACHIEVED"), "{again:?}");
}

#[test]
fn a_pause_file_pauses_the_run_until_it_is_removed() {
    let world = CliWorld::new("");
    fs::create_dir_all(world.workspace().join(".jackline")).unwrap();
    let pause = world.workspace().join(".jackline/PAUSE");
    fs::write(&pause, "").unwrap();
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let child = task.start(&[]);
    poll_until("the session", || {
        fs::read_dir(world.home().join("sessions")).is_ok_and(|mut it| it.next().is_some())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(!world.workspace().join("report.md").exists());
    fs::remove_file(pause).unwrap();
    poll_until("the report", || world.workspace().join("report.md").exists());
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn two_runs_of_one_script_leave_the_same_journal() {
    let journals: Vec<String> = (0..2)
        .map(|_| {
            let world = CliWorld::new("");
            let script = REPORT_SCRIPT.replace(
                "steps:\n",
                "steps:\n  - calls: [{ tool: shell, args: { command: ls } }]\n  - text: Done!\n",
            );
            let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]);
            let run = task.run(&[]);
            world.verify_and_replay(&session_id(&run));
            normalised_journal(&world, &session_id(&run))
        })
        .collect();
    assert_eq!(journals[0], journals[1]);
}

#[test]
fn all_mistakes_in_a_task_are_reported_at_once() {
    let world = CliWorld::new("");
    let file = world.workspace().join("task.yaml");
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
fn a_missing_api_key_is_named_before_anything_runs() {
    let world = CliWorld::new("");
    let file = world.workspace().join("task.yaml");
    fs::write(&file, "prompt: x\nmodel: { provider: anthropic, name: m }\n").unwrap();
    let run = world.jackline(&["run", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("set ANTHROPIC_API_KEY"), "{}", run.stderr);
    assert!(!Path::new(&world.home()).join("sessions").exists());
    fs::write(&file, "prompt: x\n").unwrap();
    let run = world.jackline(&["run", file.to_str().unwrap()]);
    assert!(run.code == Some(2) && run.stderr.contains("no engine is available"), "{run:?}");
}

#[test]
fn an_agent_that_is_not_approved_does_nothing() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let approved = session_id(&task.run(&[]));
    let args = ["identity", "approve", &approved, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&args).code, Some(0));
    fs::remove_file(world.workspace().join("report.md")).unwrap();
    // Another definition makes it another agent.
    let task = TaskDirectory::new(
        &world,
        &format!("{REPORT_COMPLETION}limits: {{ steps: 99 }}\n"),
        &[("main", REPORT_SCRIPT)],
    );
    let run = task.run(&[]);
    assert_eq!((run.code, stop_code(&run)), (Some(1), "SYSTEM_ERROR{identity}".into()), "{run:?}");
    assert!(!world.workspace().join("report.md").exists());
    world.verify_and_replay(&session_id(&run));
    assert_eq!(
        world.jackline(&["identity", "approve", &session_id(&run), "--by", "dana"]).code,
        Some(0)
    );
    assert_eq!(stop_code(&task.run(&[])), "OBJECTIVE_ACHIEVED");
}

/// Every run left a directory among the temporary files.
#[test]
fn runs_of_a_task_that_copies_its_project_leave_one_copy() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    task.append("copy: project\n");
    fs::create_dir(task.directory.join("project")).unwrap();
    let temporary = world.root().join("temporary");
    fs::create_dir(&temporary).unwrap();
    for _ in 0..3 {
        let mut command = task.run_command(&["--json", "--no-wait"]);
        let run = run_with_input(command.arg(&task.directory).env("TMPDIR", &temporary), b"");
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
        let copies: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().collect();
        assert_eq!(copies.len(), 1, "{copies:?}");
        assert!(copies[0].path().join("report.md").is_file(), "the last copy stays for the person");
    }
}
