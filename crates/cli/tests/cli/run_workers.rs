//! Tests of `jackline run` with agent programs without a memory: the prompt of each start, and
//! programs that fail, are paused, or take too long.

use std::fs;

use jackline_host::clock::now;
use serde_json::{Value, json};

use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, count_sleepers, create_control_file,
    ended_event, events_named, poll_until, session_id, stop_code, wait_for_line, wait_for_output,
};
use crate::support::{CliOutput, CliWorld, run_with_input};

/// The prompt of all these tests.
const TASK_PROMPT: &str = "write report.md";

/// A worker that writes its prompt to a new file next to the workspace, and then runs a command.
/// `$n` counts its starts.
fn recording_worker(action: &str) -> String {
    format!("n=$(ls .. | grep -c '^prompt-'); printf %s \"$1\" > ../prompt-$n; {action}")
}

/// Returns the prompt of each start of the worker.
fn worker_prompts(world: &CliWorld) -> Vec<String> {
    let prompt = |n: usize| fs::read_to_string(world.root().join(format!("prompt-{n}"))).ok();
    (0..).map_while(prompt).collect()
}

/// Checks that the second prompt contains the task again, and all of these texts.
fn assert_second_prompt(world: &CliWorld, expected: &[&str]) {
    let prompts = worker_prompts(world);
    assert_eq!((prompts.len(), prompts[0].as_str()), (2, TASK_PROMPT), "{prompts:#?}");
    let second = &prompts[1];
    assert!(second.starts_with(TASK_PROMPT), "{second}");
    for text in expected {
        assert!(second.contains(text), "{text}: {second}");
    }
}

fn stop_refusal(run: &CliOutput) -> String {
    events_named(run, "stopping")[0]["why"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_without_memory_gets_its_task_with_every_start() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_worker(
        &world,
        REPORT_COMPLETION,
        &recording_worker("[ $n = 0 ] || echo done > report.md"),
    );
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_second_prompt(&world, &["State of the work", &stop_refusal(&run)]);
    world.verify_and_replay(&session_id(&run));
}

/// Jackline cannot see the calls of such a program, so the check runs after each of its starts.
#[test]
fn a_check_by_command_runs_after_each_start_of_a_program() {
    let world = CliWorld::new("");
    let check =
        "completion: { command: 'echo >> ../checks; test $(ls .. | grep -c ^prompt-) = 3' }\n";
    let run = TaskDirectory::with_worker(
        &world,
        &format!("{check}progress: {{}}\n"),
        &recording_worker(":"),
    )
    .run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(worker_prompts(&world).len(), 3);
    let checks = fs::read_to_string(world.root().join("checks")).unwrap();
    assert_eq!(checks.lines().count(), 3, "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn files_that_a_program_writes_are_progress_without_visible_calls() {
    let world = CliWorld::new("");
    let definition =
        format!("{REPORT_COMPLETION}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let writes = recording_worker("touch n$n; [ $n -lt 4 ] || echo done > report.md");
    let run = TaskDirectory::with_worker(&world, &definition, &writes).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let ended_iterations = events_named(&run, "iteration_ended");
    assert_eq!(ended_iterations.len(), 4, "{run:?}");
    assert!(
        ended_iterations.iter().all(|iteration| iteration.get("failure").is_none()),
        "{ended_iterations:?}"
    );
    // The evidence states that the code was modified.
    assert_eq!(events_named(&run, "ended")[0]["evidence"]["code_modified"], true, "{run:?}");
    world.verify_and_replay(&session_id(&run));
    let world = CliWorld::new("");
    let run = TaskDirectory::with_worker(&world, &definition, "true").run(&[]);
    assert!(stop_code(&run).contains("3 iterations in a row failed"), "{run:?}");
    let ended_iterations = events_named(&run, "iteration_ended");
    assert_eq!(ended_iterations[0]["failure"], "nothing was changed", "{ended_iterations:?}");
}

#[test]
fn after_a_pause_a_program_gets_its_task_and_the_reason_of_the_blocked_stop() {
    let world = CliWorld::new("");
    let definition = format!("{REPORT_COMPLETION}limits: {{ iterations: 1 }}\n");
    let task = TaskDirectory::with_worker(
        &world,
        &definition,
        &recording_worker("[ $n = 0 ] || echo done > report.md"),
    );
    let run = task.run(&[]);
    let id = session_id(&run);
    assert!(stop_code(&run).contains("1 of 1 iterations"), "{run:?}");
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0));
    let again = task.resume(&[&id]);
    assert_eq!(stop_code(&again), "OBJECTIVE_ACHIEVED", "{again:?}");
    assert_second_prompt(&world, &[&stop_refusal(&run)]);
    world.verify_and_replay(&id);
}

#[test]
fn after_a_checkpoint_a_program_is_not_told_that_no_iterations_are_left() {
    let world = CliWorld::new("");
    let definition = format!("{REPORT_COMPLETION}limits: {{ iterations: 1 }}\n");
    let task = TaskDirectory::with_worker(
        &world,
        &definition,
        &recording_worker("[ $n = 0 ] || echo done > report.md"),
    );
    let mut child = task.start(&[]);
    let output = wait_for_line(&mut child, "\"for\":\"person\"");
    assert_eq!(world.jackline(&["ack"]).code, Some(0));
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{output}{run:?}");
    assert_second_prompt(&world, &["A person has checked the work", "report.md"]);
    let second = &worker_prompts(&world)[1];
    assert!(!second.contains("of 1 iterations") && !second.contains("jackline ack"), "{second}");
    // The second iteration ended the run. `status` counts only iterations that ended before.
    let evidence = &ended_event(&run)["evidence"];
    assert_eq!((&evidence["iterations"], &evidence["iterations_ended"]), (&2.into(), &1.into()));
    let status = world.jackline(&["status", "--json", &session_id(&run)]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["safety"]["iteration_count"], 1, "{status}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_run_at_a_checkpoint_reports_the_same_iterations_as_its_status() {
    let world = CliWorld::new("");
    let definition = format!("{REPORT_COMPLETION}limits: {{ iterations: 2 }}\n");
    let task = TaskDirectory::with_worker(&world, &definition, "true");
    let run = task.run(&[]);
    let evidence = &ended_event(&run)["evidence"];
    assert_eq!((&evidence["iterations"], &evidence["iterations_ended"]), (&2.into(), &2.into()));
}

#[test]
fn the_cost_of_a_program_without_hooks_is_unknown() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, "echo done > report.md");
    let run = task.run(&[]);
    let evidence = &ended_event(&run)["evidence"];
    assert_eq!(
        (&evidence["cost_micros"], &evidence["tokens_unknown"]),
        (&Value::Null, &true.into())
    );
    let output = run_with_input(task.run_command(&["--no-wait"]).arg(&task.directory), b"").stdout;
    assert!(output.contains(", tokens and cost unknown, ") && !output.contains(" $"), "{output}");
    assert!(output.contains("1 iteration (0 of them ended)"), "{output}");
}

#[test]
fn a_stop_during_a_wait_for_a_person_does_not_report_that_the_run_continues() {
    for by_file in [true, false] {
        let world = CliWorld::new("");
        create_control_file(&world, "PAUSE");
        let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, "echo done > report.md");
        let mut child = task.start(&[]);
        let output = wait_for_line(&mut child, "\"for\":\"person\"");
        if by_file {
            create_control_file(&world, "STOP");
        } else {
            assert_eq!(world.jackline(&["stop"]).code, Some(0));
        }
        let run = wait_for_output(child);
        assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{output}{run:?}");
        assert_eq!(events_named(&run, "goes_on"), Vec::<Value>::new(), "{run:?}");
        assert!(!world.workspace().join("report.md").exists());
        world.verify_and_replay(&session_id(&run));
    }
}

#[test]
fn a_stop_ends_a_program_and_all_its_children() {
    let world = CliWorld::new("");
    // Both processes write until they are ended. One of them is in its own session.
    let beats = "while :; do date +%s%3N >> ../beats; sleep 0.02; done";
    let line = format!("setsid sh -c '{beats}' & touch started; {beats}");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line);
    let child = task.start(&[]);
    poll_until("the program", || world.workspace().join("started").exists());
    poll_until("its children", || world.root().join("beats").exists());
    let driver = child.id();
    let stopped = now().wall.as_ms();
    create_control_file(&world, "STOP");
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(other_processes_in(&world.workspace(), driver), Vec::<String>::new(), "{run:?}");
    let beats = fs::read_to_string(world.root().join("beats")).unwrap();
    // The last line may be incomplete.
    let last = beats.lines().filter_map(|beat| beat.parse::<i64>().ok()).max().unwrap();
    assert!(last - stopped < 1500, "{} ms", last - stopped);
}

/// Returns the processes that work in a directory, except one.
fn other_processes_in(directory: &std::path::Path, excluded: u32) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let is_inside = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    };
    let names = fs::read_dir("/proc").unwrap().flatten().filter(is_inside).map(name);
    names.filter(|name| *name != excluded.to_string()).collect()
}

#[test]
fn after_a_kill_a_program_gets_its_task_and_is_told_of_the_interruption() {
    let world = CliWorld::new("");
    let line =
        recording_worker("if [ $n = 0 ]; then touch started; sleep 283; fi; echo done > report.md");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line);
    let mut child = task.start(&[]);
    poll_until("the worker", || world.workspace().join("started").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the worker", || count_sleepers(283) == 0);
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_second_prompt(&world, &["after an interruption"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_pause_file_ends_a_program_without_hooks_and_it_is_started_again_later() {
    let world = CliWorld::new("");
    let line =
        recording_worker("if [ $n = 0 ]; then touch started; sleep 282; fi; echo done > report.md");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line);
    let mut child = task.start(&[]);
    poll_until("the worker", || world.workspace().join("started").exists());
    create_control_file(&world, "PAUSE");
    let output = wait_for_line(&mut child, "\"for\":\"person\"");
    assert_eq!(count_sleepers(282), 0, "{output}");
    assert!(!world.workspace().join("report.md").exists());
    fs::remove_file(world.workspace().join(".jackline/PAUSE")).unwrap();
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{output}{run:?}");
    assert_second_prompt(&world, &["after an interruption", "A person has checked the work"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_pause_by_command_ends_a_program_without_hooks_too() {
    let world = CliWorld::new("");
    let line =
        recording_worker("if [ $n = 0 ]; then touch started; sleep 280; fi; echo done > report.md");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line);
    let mut child = task.start(&[]);
    poll_until("the worker", || world.workspace().join("started").exists());
    assert_eq!(world.jackline(&["pause", "--why", "look first"]).code, Some(0));
    let output = wait_for_line(&mut child, "\"for\":\"person\"");
    assert_eq!(count_sleepers(280), 0, "{output}");
    assert_eq!(world.jackline(&["resume"]).code, Some(0));
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{output}{run:?}");
    assert_second_prompt(&world, &["after an interruption", "A person has checked the work"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn an_advisor_sees_the_output_of_a_program_and_the_program_gets_the_advice() {
    let world = CliWorld::new("");
    let line = recording_worker("echo I tried $n; [ $n -lt 3 ] || echo done > report.md");
    let definition = format!(
        "{REPORT_COMPLETION}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n\
         advisor: {{ models: [{{ provider: scripted, model: advisor }}] }}\n"
    );
    let task = TaskDirectory::with_worker(&world, &definition, &line);
    task.append("scripts: { advisor: advisor.yaml }\n");
    let advice =
        "steps: [{ text: I see nothing. }]\nparts: { I tried 2: [{ text: Use a pen. }] }\n";
    fs::write(task.directory.join("advisor.yaml"), advice).unwrap();
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "advised")[0]["instruction"], "Use a pen.", "{run:?}");
    let prompts = worker_prompts(&world);
    let last = prompts.last().unwrap();
    assert_eq!(prompts.len(), 4, "{prompts:#?}");
    assert!(last.starts_with(TASK_PROMPT) && last.contains("Use a pen."), "{last}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn the_run_waits_for_a_used_up_plan_until_the_time_that_a_program_prints() {
    let world = CliWorld::new("");
    let action = "[ $n = 0 ] || { echo done > report.md; exit 0; }; \
                echo \"usage limit reached|$(($(date +%s) + 2))\"; exit 1";
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &recording_worker(action));
    let start_ms = now().boot_ms;
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(now().boot_ms - start_ms >= 1000, "{run:?}");
    let waiting = &events_named(&run, "waiting")[0];
    assert_eq!(waiting["for"], "model", "{run:?}");
    assert!(waiting["ms"].as_u64().unwrap() <= 2000, "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_plan_that_is_used_up_beyond_the_time_limit_ends_the_run() {
    let world = CliWorld::new("");
    let definition = format!("{REPORT_COMPLETION}limits: {{ wall_seconds: 1 }}\n");
    let run = TaskDirectory::with_worker(&world, &definition, "echo usage limit reached; exit 1")
        .run(&[]);
    assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn an_overloaded_program_is_started_again_within_its_budget() {
    let world = CliWorld::new("");
    let line = recording_worker(
        "[ $n -lt 2 ] || { echo done > report.md; exit 0; }; echo error: 529; exit 1",
    );
    let command = json!(["sh", "-c", line, "worker"]);
    let task = TaskDirectory::with_models(
        &world,
        REPORT_COMPLETION,
        &[format!("worker: {command}, budget: 2")],
    );
    let run = task.run(&[]);
    assert_eq!(
        (stop_code(&run), worker_prompts(&world).len()),
        ("SYSTEM_ERROR{worker}".into(), 2),
        "{run:?}"
    );
    assert_eq!(events_named(&run, "waiting").len(), 2, "{run:?}");
    let task = TaskDirectory::with_models(
        &world,
        REPORT_COMPLETION,
        &[format!("worker: {command}, budget: 9")],
    );
    let run = task.run(&[]);
    assert_eq!(
        (stop_code(&run), worker_prompts(&world).len()),
        ("OBJECTIVE_ACHIEVED".into(), 3),
        "{run:?}"
    );
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_program_that_always_fails_is_given_up_after_three_starts() {
    let world = CliWorld::new("");
    let run =
        TaskDirectory::with_worker(&world, REPORT_COMPLETION, &recording_worker("exit 7")).run(&[]);
    assert_eq!(stop_code(&run), "SYSTEM_ERROR{worker}", "{run:?}");
    assert_eq!(worker_prompts(&world), [TASK_PROMPT; 3], "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_model_that_takes_over_from_a_program_gets_the_state_of_the_work() {
    let world = CliWorld::new("");
    let command = json!(["sh", "-c", "echo error: 529; exit 1", "worker"]);
    let models = [
        format!("worker: {command}"),
        "provider: scripted, model: second, window: 100000".to_owned(),
    ];
    let task = TaskDirectory::with_models(&world, REPORT_COMPLETION, &models);
    task.append("scripts: { second: second.yaml }\n");
    let works = REPORT_SCRIPT.trim_start_matches("steps:\n");
    let script =
        format!("steps: [{{ text: I know nothing. }}]\nparts:\n  State of the work:\n{works}");
    fs::write(task.directory.join("second.yaml"), script).unwrap();
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "asking").len(), 3, "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_program_is_ended_at_the_time_limit_of_the_session() {
    let world = CliWorld::new("");
    let definition = format!("{REPORT_COMPLETION}limits: {{ wall_seconds: 2 }}\n");
    let task = TaskDirectory::with_worker(&world, &definition, "sleep 281; echo done > report.md");
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    assert_eq!(count_sleepers(281), 0);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn after_the_deadline_no_program_is_started() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_worker(
        &world,
        REPORT_COMPLETION,
        "echo x > started; echo done > report.md",
    );
    let run = task.run(&["--deadline", "2001-01-01T00:00:00Z"]);
    assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{deadline}", "{run:?}");
    assert!(!world.workspace().join("started").exists(), "{run:?}");
    assert_eq!(ended_event(&run)["evidence"]["iterations"], 0, "{run:?}");
    assert_eq!(events_named(&run, "iteration").len(), 0, "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_program_with_another_command_line_is_another_agent() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_models(&world, REPORT_COMPLETION, &[]);
    let run_with = |line: &str| {
        let command = json!(["sh", "-c", line, "worker"]);
        let text = format!(
            "prompt: {TASK_PROMPT}\ndefinition: jackline.yaml\nmodel: {{ worker: {command} }}\n"
        );
        fs::write(task.directory.join("task.yaml"), text).unwrap();
        task.run(&[])
    };
    let approved = session_id(&run_with("echo done > report.md"));
    let identity = world.jackline(&["identity", "show", &approved]).stdout;
    assert!(identity.contains("unknown"), "{identity}");
    let args = ["identity", "approve", &approved, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&args).code, Some(0));
    assert_eq!(stop_code(&run_with("echo done > report.md")), "OBJECTIVE_ACHIEVED");
    let run = run_with("echo other > report.md");
    assert_eq!((run.code, stop_code(&run)), (Some(1), "SYSTEM_ERROR{identity}".into()), "{run:?}");
}
